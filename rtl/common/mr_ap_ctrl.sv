// The four ap_ctrl_hs registers (CTRL, GIE, IER, ISR at word 0..3) of a board-facing kernel.
//
// To the unit: ap_start_o is a level that stays high until the unit answers with a one-cycle
// ap_ready_i ("job taken, its registers may change"); ap_done_i is a one-cycle pulse at completion;
// ap_idle_i is a level. With auto_restart set, ap_start_o stays high after ap_ready_i.
// To the host: ap_done and ap_ready are cleared by reading CTRL, an event in the cycle of the read
// is kept for the next one. ISR bits toggle when written with 1; interrupt_o is level. ap_idle reads
// 0 from the write of ap_start on, so that a host that polls it cannot be early.
// State resets synchronously; reads are combinational.
module mr_ap_ctrl (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        wr_en_i,
    input  logic [1:0]  wr_addr_i,
    input  logic [31:0] wr_data_i,
    input  logic [31:0] wr_mask_i,
    input  logic        rd_en_i,
    input  logic [1:0]  rd_addr_i,
    output logic [31:0] rd_data_o,
    output logic        ap_start_o,
    input  logic        ap_ready_i,
    input  logic        ap_done_i,
    input  logic        ap_idle_i,
    output logic        interrupt_o
);
    logic start_q, done_q, ready_q, restart_q, gie_q;
    logic [1:0] ier_q, isr_q;
    logic [31:0] wr;
    logic wr_ctrl, wr_gie, wr_ier, wr_isr, rd_ctrl;
    logic [31:0] unused_bits;

    assign wr = wr_data_i & wr_mask_i;
    assign unused_bits = {wr[31:2], wr_mask_i[31:8] == '0, wr_mask_i[6:2] == '0};
    assign wr_ctrl = wr_en_i && wr_addr_i == 2'd0;
    assign wr_gie  = wr_en_i && wr_addr_i == 2'd1;
    assign wr_ier  = wr_en_i && wr_addr_i == 2'd2;
    assign wr_isr  = wr_en_i && wr_addr_i == 2'd3;
    assign rd_ctrl = rd_en_i && rd_addr_i == 2'd0;

    assign ap_start_o  = start_q;
    assign interrupt_o = gie_q && isr_q != 2'b00;

    always_comb begin
        case (rd_addr_i)
            2'd0: rd_data_o = {22'b0, interrupt_o, 1'b0, restart_q, 3'b0, ready_q,
                               ap_idle_i && !start_q, done_q, start_q};
            2'd1: rd_data_o = {31'b0, gie_q};
            2'd2: rd_data_o = {30'b0, ier_q};
            default: rd_data_o = {30'b0, isr_q};
        endcase
    end

    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            start_q   <= 1'b0;
            done_q    <= 1'b0;
            ready_q   <= 1'b0;
            restart_q <= 1'b0;
            gie_q     <= 1'b0;
            ier_q     <= 2'b00;
            isr_q     <= 2'b00;
        end else begin
            if (wr_ctrl && wr[0]) start_q <= 1'b1;
            else if (ap_ready_i) start_q <= restart_q;
            done_q  <= ap_done_i || (done_q && !rd_ctrl);
            ready_q <= ap_ready_i || (ready_q && !rd_ctrl);
            if (wr_ctrl && wr_mask_i[7]) restart_q <= wr_data_i[7];
            if (wr_gie && wr_mask_i[0]) gie_q <= wr_data_i[0];
            if (wr_ier) ier_q <= (ier_q & ~wr_mask_i[1:0]) | wr[1:0];
            isr_q <= (isr_q ^ (wr_isr ? wr[1:0] : 2'b00)) | ({ap_ready_i, ap_done_i} & ier_q);
        end
    end
endmodule
