// Cuts a command {addr, len} into AXI bursts of whole bus words.
//
// No burst crosses a multiple of MaxBurst words, and MaxBurst words divide 4 KiB, so no burst touches two
// 4 KiB pages; burst_addr_o is word aligned (a write's first and last word carry strobes). One burst a
// cycle, also across commands; a command of length 0 is taken and gives none. Latency 1.
module mr_axi_split #(
    parameter int unsigned AddrWidth = 64,
    parameter int unsigned DataWidth = 512,
    parameter int unsigned LenWidth  = 32,
    parameter int unsigned MaxBurst  = 16 // words, a power of two; MaxBurst * DataWidth / 8 <= 4096
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 cmd_valid_i,
    output logic                 cmd_ready_o,
    input  logic [AddrWidth-1:0] cmd_addr_i,
    input  logic [LenWidth-1:0]  cmd_len_i,
    output logic                 burst_valid_o,
    input  logic                 burst_ready_i,
    output logic [AddrWidth-1:0] burst_addr_o,
    output logic [7:0]           burst_len_o, // words - 1, as AxLEN
    output logic                 busy_o
);
    localparam int unsigned Bytes     = DataWidth / 8;
    localparam int unsigned OffWidth  = $clog2(Bytes);
    localparam int unsigned WordWidth = AddrWidth - OffWidth;
    localparam int unsigned LeftWidth = LenWidth - OffWidth + 1;
    localparam int unsigned InWidth   = $clog2(MaxBurst);

    if (MaxBurst > 256 || MaxBurst * Bytes > 4096 || MaxBurst != (1 << InWidth)) begin : gen_bad_max_burst
        mr_axi_split_max_burst_is_not_legal u_error ();
    end

    logic                 busy_q, last, take;
    logic [WordWidth-1:0] word_q;
    logic [LeftWidth-1:0] left_q;
    logic [8:0]           room, beats;
    logic [LenWidth:0]    sum;
    logic [OffWidth-1:0]  unused_sum;

    assign sum        = {1'b0, cmd_len_i} + {{(LenWidth + 1 - OffWidth) {1'b0}}, cmd_addr_i[OffWidth-1:0]} - 1'b1;
    assign unused_sum = sum[OffWidth-1:0];

    // words up to the next multiple of MaxBurst
    if (InWidth == 0) begin : gen_single
        assign room = 9'd1;
    end else begin : gen_room
        assign room = 9'(MaxBurst) - {{(9 - InWidth) {1'b0}}, word_q[InWidth-1:0]};
    end
    assign last  = left_q <= {{(LeftWidth - 9) {1'b0}}, room};
    assign beats = last ? left_q[8:0] : room;
    assign take  = busy_q && burst_ready_i;

    assign burst_valid_o = busy_q;
    assign burst_addr_o  = {word_q, {OffWidth{1'b0}}};
    assign burst_len_o   = 8'(beats - 9'd1);
    assign cmd_ready_o   = !busy_q || (take && last);
    assign busy_o        = busy_q;

    always_ff @(posedge clk_i) begin
        if (take) begin
            word_q <= word_q + {{(WordWidth - 9) {1'b0}}, beats};
            left_q <= left_q - {{(LeftWidth - 9) {1'b0}}, beats};
        end
        if (cmd_valid_i && cmd_ready_o) begin
            word_q <= cmd_addr_i[AddrWidth-1:OffWidth];
            left_q <= sum[LenWidth:OffWidth] + 1'b1;
        end
        if (!rst_ni) busy_q <= 1'b0;
        else if (cmd_ready_o) busy_q <= cmd_valid_i && cmd_len_i != '0;
    end
endmodule
