// The operations in the making: 64 slots, found by their key.
//
// A slot is free, filling, done (complete; its result is being made, sent or acknowledged) or killed
// (timed out; nic_folds frees what it held). Look-up: key in one cycle, answer in the next, held until
// the next look-up. The answer is the slot of that key, else the lowest free one. Changes in the cycle of
// an answer or later are seen by the next look-up. A slot that nobody needs any more stays findable for
// three advances of the dispatch pipeline, so that a frame whose look-up in nic_late was too early for
// this key still finds it here. A look-up every second cycle.
//
// Deadlock: a slot is left by its time-out or by completion; then it waits for the transmit ports that
// still hold its result (a stalled port keeps at most the slots whose results it has queued) and for
// acknowledgements, which the timer bounds. Nothing waits for a slot: without one a frame is no_slot.
module nic_slots (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 advance_i, // the dispatch pipeline moves
    // look-up
    input  logic                 look_valid_i,
    input  logic [nic_pkg::KEY_W-1:0] look_key_i,
    output logic                 hit_o,
    output logic                 free_o,     // not hit, but there is a free one
    output logic [5:0]           slot_o,
    output logic                 filling_o,  // what is hit
    output logic                 done_o,
    output logic                 sent_o,     // no port holds its result
    output nic_pkg::slot_t       row_o,
    output logic [31:0]          in_o,       // member indexes that have contributed
    output logic [31:0]          silent_o,   // member indexes still to acknowledge
    // a contribution for the answered slot
    input  logic                 put_valid_i,
    input  nic_pkg::slot_t       put_row_i,
    input  logic [31:0]          put_in_i,
    input  logic                 put_done_i, // it completes the slot
    input  logic                 put_payload_i,
    // the ranks still to acknowledge
    input  logic                 silent_valid_i,
    input  logic [31:0]          silent_i,
    // the answered slot's time is over
    input  logic                 kill_valid_i,
    input  logic                 killed_valid_i, // nic_folds holds nothing of it any more
    input  logic [5:0]           killed_slot_i,
    // results handed to ports, and left: network 0, network 1, host
    input  logic [2:0]           push_i,
    input  logic [5:0]           push_slot_i,
    input  logic [2:0]           left_i,
    input  logic [17:0]          left_slot_i,
    // a row of the job table changes: its slots have lost their meaning
    input  logic                 drop_valid_i,
    input  logic [4:0]           drop_row_i,
    output logic [63:0]          kill_o,         // slots whose contributions nobody will fold
    // any slot, for the timer
    input  logic [5:0]           scan_slot_i,
    output logic                 scan_filling_o,
    output logic                 scan_silent_o, // done, sent, and not acknowledged by all
    output logic                 scan_held_o,   // done, and some port still holds the result
    input  logic [5:0]           op_slot_i,
    output logic [nic_pkg::KEY_W-1:0] op_key_o,
    output logic                 pool_full_o,    // PARK contributions wait for lower ranks
    output logic                 settled_o      // no slot is between complete and sent, or killed
);
    localparam int unsigned Slots = nic_pkg::SLOTS;

    logic [nic_pkg::KEY_W-1:0]      key_mem [0:Slots-1];
    logic [nic_pkg::SLOT_ROW_W-1:0] row_mem [0:Slots-1];
    logic [31:0]                    in_mem [0:Slots-1];
    logic [4:0]                     job_mem [0:Slots-1];
    logic [31:0]                    silent_mem [0:Slots-1];
    logic [Slots-1:0] filling_q, done_q, kill_q, quiet_q, used;
    logic [Slots-1:0] pend0_q, pend1_q, pendh_q, pend;
    logic [Slots-1:0] over, z1_q, z2_q, z3_q, freed;

    assign used = filling_q | done_q | kill_q;
    assign pend = pend0_q | pend1_q | pendh_q;

    // ---- look-up
    logic [Slots-1:0] match, lowest_free, pick;
    logic [5:0]       index;
    logic             hit;
    always_comb begin
        match = '0;
        if (look_valid_i)
            for (int unsigned s = 0; s < Slots; s++)
                match[s] = used[s] && key_mem[s] == look_key_i;
    end
    assign hit = match != '0;
    assign lowest_free = ~used & (used + 64'd1);
    assign pick = hit ? match : lowest_free;
    always_comb begin
        index = '0;
        for (int unsigned b = 0; b < 6; b++)
            for (int unsigned s = 0; s < Slots; s++)
                if (((s >> b) & 1) != 0) index[b] = index[b] | pick[s];
    end

    logic             hit_q, free_q;
    logic [5:0]       slot_q;
    nic_pkg::slot_t   row_q;
    logic [31:0]      in_q, silent_q;
    logic             was_filling_q, was_done_q, was_sent_q;
    always_ff @(posedge clk_i) begin
        if (look_valid_i) begin
            hit_q         <= hit;
            free_q        <= !hit && lowest_free != '0;
            slot_q        <= index;
            row_q         <= row_mem[index];
            in_q          <= in_mem[index];
            silent_q      <= silent_mem[index];
            was_filling_q <= hit && filling_q[index];
            was_done_q    <= hit && done_q[index];
            was_sent_q    <= !pend[index];
        end
    end
    assign hit_o = hit_q;
    assign free_o = free_q;
    assign slot_o = slot_q;
    assign filling_o = was_filling_q;
    assign done_o = was_done_q;
    assign sent_o = was_sent_q;
    assign row_o = row_q;
    assign in_o = in_q;
    assign silent_o = silent_q;

    // ---- changes
    logic [Slots-1:0] here;
    assign here = 64'd1 << slot_q;

    always_ff @(posedge clk_i) begin
        if (put_valid_i) begin
            if (!hit_q) key_mem[slot_q] <= put_row_i.key;
            row_mem[slot_q] <= put_row_i;
            job_mem[slot_q] <= put_row_i.job_row;
            in_mem[slot_q]  <= put_in_i;
        end
        if (silent_valid_i) silent_mem[slot_q] <= silent_i;
    end

    // ---- the end of a slot
    assign over  = done_q & quiet_q & ~pend;
    assign freed = advance_i ? z3_q & over : '0;
    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            z1_q <= '0;
            z2_q <= '0;
            z3_q <= '0;
        end else if (advance_i) begin
            z1_q <= over & ~freed;
            z2_q <= z1_q & over & ~freed;
            z3_q <= z2_q & over & ~freed;
        end
    end

    logic [Slots-1:0] killed, pushed, put, silenced, ended, of_job;
    always_comb begin
        of_job = '0;
        if (drop_valid_i)
            for (int unsigned s = 0; s < Slots; s++) of_job[s] = used[s] && job_mem[s] == drop_row_i;
    end
    assign put = put_valid_i ? here : '0;
    assign ended = (kill_valid_i ? here : '0) | (of_job & filling_q);
    assign kill_o = ended;
    assign silenced = silent_valid_i ? here : '0;
    assign killed = killed_valid_i ? 64'd1 << killed_slot_i : '0;
    assign pushed = 64'd1 << push_slot_i;
    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            filling_q <= '0;
            done_q    <= '0;
            kill_q    <= '0;
            quiet_q   <= '0;
            pend0_q   <= '0;
            pend1_q   <= '0;
            pendh_q   <= '0;
        end else begin
            filling_q <= (filling_q | (put_done_i ? '0 : put)) & ~(put_done_i ? put : '0) & ~ended;
            done_q    <= (done_q | (put_done_i ? put : '0) | killed) & ~freed;
            kill_q    <= (kill_q | ended) & ~killed;
            quiet_q   <= ((quiet_q & ~silenced) | (silent_i == '0 ? silenced : '0) | killed |
                (of_job & done_q)) & ~freed;
            pend0_q   <= (pend0_q & ~(left_i[0] ? 64'd1 << left_slot_i[5:0] : '0)) | (push_i[0] ? pushed : '0);
            pend1_q   <= (pend1_q & ~(left_i[1] ? 64'd1 << left_slot_i[11:6] : '0)) | (push_i[1] ? pushed : '0);
            pendh_q   <= (pendh_q & ~(left_i[2] ? 64'd1 << left_slot_i[17:12] : '0)) | (push_i[2] ? pushed : '0);
        end
    end

    // ---- what the timer asks
    assign scan_filling_o = filling_q[scan_slot_i];
    assign scan_silent_o  = done_q[scan_slot_i] && !quiet_q[scan_slot_i] && !pend[scan_slot_i];
    assign scan_held_o    = done_q[scan_slot_i] && pend[scan_slot_i];
    assign op_key_o       = key_mem[op_slot_i];
    assign settled_o      = (kill_q | pend | over) == '0;

    // ---- the parking pool: contributions behind a gap of a filling slot; a barrier's have no payload
    function automatic logic [5:0] parked(input logic [31:0] have);
        logic [31:0] behind;
        behind = have & (have + 32'd1);
        parked = 6'd0;
        for (int unsigned m = 0; m < 32; m++) parked = parked + {5'd0, behind[m]};
    endfunction
    localparam int unsigned ParkW = $clog2(nic_pkg::PARK + 1);
    logic [ParkW-1:0] parked_q;
    logic [5:0]       parked_was, parked_is, parked_gone;
    logic             barrier_killed;
    assign parked_was = hit_q ? parked(in_q) : 6'd0;
    assign parked_is = put_done_i ? 6'd0 : parked(put_in_i);
    assign parked_gone = parked(in_mem[killed_slot_i]);
    assign barrier_killed = barrier_q[killed_slot_i];
    assign pool_full_o = parked_q == ParkW'(nic_pkg::PARK);
    logic [Slots-1:0] barrier_q;
    always_ff @(posedge clk_i) begin
        if (put_valid_i) barrier_q[slot_q] <= !put_payload_i;
        if (!rst_ni) parked_q <= '0;
        else
            parked_q <= parked_q +
                (put_valid_i && put_payload_i ? ParkW'(parked_is) - ParkW'(parked_was) : '0) -
                (killed_valid_i && !barrier_killed ? ParkW'(parked_gone) : '0);
    end

    // A slot is completed once, and a port has a slot's result once at a time.
    always_ff @(posedge clk_i) begin
        if (rst_ni && put_valid_i) assert (hit_q ? filling_q[slot_q] : !used[slot_q]);
        if (rst_ni && push_i[0]) assert (!pend0_q[push_slot_i]);
        if (rst_ni && push_i[1]) assert (!pend1_q[push_slot_i]);
        if (rst_ni && push_i[2]) assert (!pendh_q[push_slot_i]);
    end
endmodule
