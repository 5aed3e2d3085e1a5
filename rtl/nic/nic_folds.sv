// Which contribution is folded next: the scheduler between the slots and the merge engine.
//
// Contributions lie in their receive buffers; here is where. One may be folded when every member of the
// job with a lower rank has been folded into the slot, or when the slot is complete and all lower stored
// ones have: so always in ascending order. Slots take turns, one fold a cycle at most and every other
// cycle within a slot; a slot that the engine is busy with is passed over. A contribution is offered to
// the engine three cycles after put_valid_i when nothing is before it. A killed slot gives its buffers
// back instead, one by one, then killed_valid_o pulses.
//
// Deadlock: a fold needs the engine alone, and the engine needs a buffer's beats and the slot's own result
// memory; nothing here waits for a port, the host or another slot.
module nic_folds (
    input  logic               clk_i,
    input  logic               rst_ni,
    // a contribution was taken (payload: there is one to fold), new: it opened the slot
    input  logic               put_valid_i,
    input  logic               put_new_i,
    input  logic               put_payload_i,
    input  logic               put_done_i,   // it completes the slot
    input  logic [4:0]         put_index_i,  // member index
    input  nic_pkg::fold_t     put_i,        // first and last are found here
    input  logic [63:0]        kill_i,       // slots whose time is over
    // to the engine
    output logic               fold_valid_o,
    input  logic               fold_ready_i,
    output nic_pkg::fold_t     fold_o,
    input  logic [63:0]        busy_i,       // slots the engine works for
    // buffers that nobody will read
    output logic               free_valid_o,
    input  logic               free_ready_i,
    output logic [1:0]         free_mem_o,
    output logic [9:0]         free_buf_o,
    output logic               killed_valid_o,
    output logic [5:0]         killed_slot_o,
    output logic               idle_o        // nothing can be folded or freed now
);
    localparam int unsigned RecW = 26; // mem, buffer, offset, natural
    localparam int unsigned AllW = 38; // reduce, dtype, operator, heads, dim
    logic [RecW-1:0] rec_mem [0:2047]; // by slot and member index
    logic [AllW-1:0] all_mem [0:63];   // what a slot's contributions have in common
    logic [31:0]     in_mem  [0:63];
    logic [5:0]      next_mem[0:63];   // members below are folded, or missing for good
    logic [63:0]     ready_q, whole_q, begun_q, kill_q;

    // Whether there is something to do for a slot.
    function automatic logic can(input logic [31:0] have, input logic [5:0] next, input logic whole);
        logic [31:0] rest;
        rest = next[5] ? 32'd0 : have >> next[4:0];
        can = whole ? rest != 32'd0 : rest[0];
    endfunction

    // ---- choose a slot, round robin -------------------------------------------------------------------
    logic [63:0] able, after_q, high, pick;
    logic [5:0]  slot, sel_q;
    logic        sel_valid_q, take, go;
    assign able = ready_q & ~busy_i & ~(sel_valid_q ? 64'd1 << sel_q : 64'd0);
    assign high = able & after_q;
    assign pick = high != '0 ? high & (~high + 64'd1) : able & (~able + 64'd1);
    always_comb begin
        slot = '0;
        for (int unsigned b = 0; b < 6; b++)
            for (int unsigned s = 0; s < 64; s++)
                if (((s >> b) & 1) != 0) slot[b] = slot[b] | pick[s];
    end

    // ---- its next contribution ---------------------------------------------------------------------
    logic [31:0]     have, rest, lowest;
    logic [5:0]      next;
    logic [4:0]      index;
    logic [RecW-1:0] rec;
    logic [AllW-1:0] all;
    logic            killed, none, more, same;
    logic [31:0]     have_now;
    logic            whole_now;
    assign killed = kill_q[sel_q];
    assign have = in_mem[sel_q];
    assign next = next_mem[sel_q];
    assign rest = next[5] ? 32'd0 : have & ~((32'd1 << next[4:0]) - 32'd1);
    assign lowest = rest & (~rest + 32'd1);
    assign none = rest == 32'd0;
    always_comb begin
        index = '0;
        for (int unsigned b = 0; b < 5; b++)
            for (int unsigned m = 0; m < 32; m++)
                if (((m >> b) & 1) != 0) index[b] = index[b] | lowest[m];
    end
    assign more = (rest & ~lowest) != 32'd0;
    assign rec = rec_mem[{sel_q, index}];
    assign all = all_mem[sel_q];

    logic           fold_valid_q;
    nic_pkg::fold_t fold_q, fold_d;
    assign go = sel_valid_q && (killed ? none || free_ready_i : !fold_valid_q || fold_ready_i);
    assign take = !sel_valid_q || go;
    always_comb begin
        fold_d = '0;
        fold_d.slot = sel_q;
        {fold_d.mem, fold_d.buf_id, fold_d.off, fold_d.nat} = rec;
        {fold_d.reduce, fold_d.dtype, fold_d.rop, fold_d.heads, fold_d.dim} = all;
        fold_d.first = !begun_q[sel_q];
        fold_d.last = whole_q[sel_q] && !more;
    end
    assign fold_valid_o = fold_valid_q;
    assign fold_o = fold_q;
    assign free_valid_o = sel_valid_q && killed && !none;
    assign free_mem_o = rec[25:24];
    assign free_buf_o = rec[23:14];
    assign killed_valid_o = sel_valid_q && killed && none;
    assign killed_slot_o = sel_q;
    assign idle_o = ready_q == '0 && !sel_valid_q && !fold_valid_q;

    // ---- what is taken in the same cycle counts already
    logic [31:0] put_have, put_bit;
    logic [5:0]  put_next;
    assign same = put_valid_i && put_i.slot == sel_q;
    assign put_bit = put_payload_i ? 32'd1 << put_index_i : 32'd0;
    assign put_have = (put_new_i ? 32'd0 : in_mem[put_i.slot]) | put_bit;
    assign put_next = put_new_i ? 6'd0 : same && go && !none ? {1'b0, index} + 6'd1 : next_mem[put_i.slot];
    assign have_now = same ? put_have : have;
    assign whole_now = whole_q[sel_q] || killed || (same && put_done_i);

    logic [1:0] unused_put;
    assign unused_put = {put_i.first, put_i.last};
    logic [63:0] at_sel, at_put;
    assign at_sel = go ? 64'd1 << sel_q : 64'd0;
    assign at_put = put_valid_i ? 64'd1 << put_i.slot : 64'd0;

    always_ff @(posedge clk_i) begin
        if (put_valid_i) begin
            in_mem[put_i.slot] <= put_have;
            if (put_payload_i)
                rec_mem[{put_i.slot, put_index_i}] <= {put_i.mem, put_i.buf_id, put_i.off, put_i.nat};
            if (put_new_i) begin
                all_mem[put_i.slot] <= {put_i.reduce, put_i.dtype, put_i.rop, put_i.heads, put_i.dim};
                next_mem[put_i.slot] <= 6'd0;
            end
        end
        if (go && !none) next_mem[sel_q] <= {1'b0, index} + 6'd1;
        if (take) begin
            sel_q <= slot;
            after_q <= ~((pick - 64'd1) | pick); // the slots above
        end
        if (sel_valid_q && !killed && go) fold_q <= fold_d;
        if (!rst_ni) begin
            ready_q      <= '0;
            whole_q      <= '0;
            begun_q      <= '0;
            kill_q       <= '0;
            sel_valid_q  <= 1'b0;
            fold_valid_q <= 1'b0;
            after_q      <= '0;
        end else begin
            if (take) sel_valid_q <= pick != '0;
            if (sel_valid_q && !killed && go) fold_valid_q <= 1'b1;
            else if (fold_ready_i) fold_valid_q <= 1'b0;
            ready_q <= (ready_q & ~at_sel & ~at_put) | kill_i |
                (go && !killed_valid_o && (killed || can(have_now, {1'b0, index} + 6'd1, whole_now)) ? at_sel : 64'd0) |
                (can(put_have, put_next, put_done_i || (whole_q[put_i.slot] && !put_new_i)) ? at_put : 64'd0);
            whole_q <= (whole_q & ~(put_new_i ? at_put : 64'd0) & ~(killed_valid_o ? at_sel : 64'd0)) |
                (put_done_i ? at_put : 64'd0);
            begun_q <= (begun_q & ~(put_new_i ? at_put : 64'd0)) | at_sel;
            kill_q  <= (kill_q & ~(killed_valid_o ? at_sel : 64'd0)) | kill_i;
        end
    end

    // What is chosen has something to fold; only a slot that has come to its end is killed.
    always_ff @(posedge clk_i) begin
        if (rst_ni && sel_valid_q && !killed) assert (!none && (whole_q[sel_q] || index == next[4:0]));
        if (rst_ni && put_valid_i) assert (!kill_q[put_i.slot]);
    end
endmodule
