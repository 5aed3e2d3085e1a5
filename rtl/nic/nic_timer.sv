// The times of the slots: contributions that do not come, results that are not acknowledged.
//
// One slot is looked at a cycle, each every 64 cycles, which is the timers' grain. A result's time runs
// while no port holds it: first rto, doubled with every resend up to 16 times that; after 16 resends the
// ranks that stayed silent are given up. A filling slot's time runs from its first contribution. What is
// due is work for the dispatch pipeline, which looks again and reports what it did; an operation that it
// could not do (a port without room) is offered again. 0 switches a timer off.
module nic_timer (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [31:0] rto_i,
    input  logic [31:0] slot_timeout_i,
    // a slot begins to fill, or is complete; a resend happened
    input  logic        begin_valid_i,
    input  logic [5:0]  begin_slot_i,
    input  logic        resent_valid_i,
    input  logic [5:0]  resent_slot_i,
    // nic_slots on scan_slot_o
    output logic [5:0]  scan_slot_o,
    input  logic        scan_filling_i,
    input  logic        scan_silent_i,
    input  logic        scan_held_i,
    // work
    output logic        op_valid_o,
    input  logic        op_ready_i,
    input  logic        op_done_i,   // the pipeline is through with it
    output logic [1:0]  op_kind_o,
    output logic [5:0]  op_slot_o
);
    localparam int unsigned TimeW = 40;
    logic [TimeW-1:0] now_q, since_mem[0:63];
    logic [4:0]       tries_mem[0:63];
    logic [5:0]       slot_q;
    logic             filling_q, silent_q, held_q, seen_q;
    logic [5:0]       seen_slot_q;
    logic [TimeW-1:0] since_q;
    logic [4:0]       tries_q;

    assign scan_slot_o = slot_q;

    // ---- what was looked at a cycle ago
    logic [TimeW-1:0] waited, limit;
    logic             due;
    assign waited = now_q - since_q;
    assign limit = {8'd0, rto_i} << (tries_q > 5'd4 ? 3'd4 : tries_q[2:0]);
    assign due = seen_q && ((filling_q && slot_timeout_i != '0 && waited >= {8'd0, slot_timeout_i}) ||
                            (silent_q && rto_i != '0 && waited >= limit));

    logic       op_valid_q, under_way_q, idle;
    logic [1:0] op_kind_q;
    logic [5:0] op_slot_q;
    assign idle = !op_valid_q && !under_way_q;
    assign op_valid_o = op_valid_q;
    assign op_kind_o = op_kind_q;
    assign op_slot_o = op_slot_q;

    always_ff @(posedge clk_i) begin
        filling_q   <= scan_filling_i;
        silent_q    <= scan_silent_i;
        held_q      <= scan_held_i;
        seen_slot_q <= slot_q;
        since_q     <= since_mem[slot_q];
        tries_q     <= tries_mem[slot_q];
        // the last of these that writes a slot is the newest news of it
        if (seen_q && held_q) since_mem[seen_slot_q] <= now_q;
        if (resent_valid_i) begin
            since_mem[resent_slot_i] <= now_q;
            tries_mem[resent_slot_i] <= tries_mem[resent_slot_i] + 5'd1;
        end
        if (begin_valid_i) begin
            since_mem[begin_slot_i] <= now_q;
            tries_mem[begin_slot_i] <= 5'd0;
        end
        if (due && idle) begin
            op_slot_q <= seen_slot_q;
            op_kind_q <= filling_q ? nic_pkg::WORK_TIMEOUT :
                tries_q == 5'd16 ? nic_pkg::WORK_SILENT : nic_pkg::WORK_RESEND;
        end
        if (!rst_ni) begin
            now_q      <= '0;
            slot_q     <= '0;
            seen_q     <= 1'b0;
            op_valid_q <= 1'b0;
            under_way_q <= 1'b0;
        end else begin
            now_q  <= now_q + 1'b1;
            slot_q <= slot_q + 1'b1;
            // news of the slot in this very cycle: its time is not what was read
            seen_q <= !(begin_valid_i && begin_slot_i == slot_q) && !(resent_valid_i && resent_slot_i == slot_q);
            if (op_valid_q) begin
                // a slot that began again has nothing due
                if (op_ready_i) op_valid_q <= 1'b0;
                else if (begin_valid_i && begin_slot_i == op_slot_q) op_valid_q <= 1'b0;
            end else if (due && idle) op_valid_q <= 1'b1;
            if (op_valid_q && op_ready_i) under_way_q <= 1'b1;
            else if (op_done_i) under_way_q <= 1'b0;
        end
    end
endmodule
