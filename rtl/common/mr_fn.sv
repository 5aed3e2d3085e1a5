// A function unit, with 26 fraction bits: 0: 2^-x, 1: 1/(1+x), 2: log2(1+x), x = x_i / 2^24.
//
// Four stages, each under its own enable; y_o four enabled cycles after x_i, one value a cycle. Bit for bit
// models/golden/fn.h, whose error bounds are proved over every argument.
module mr_fn #(
    parameter int unsigned Function = 0
) (
    input  logic        clk_i,
    input  logic [3:0]  en_i,
    input  logic [23:0] x_i,
    output logic [26:0] y_o
);
    logic        [32:0] c0;
    logic signed [26:0] c1;
    logic signed [19:0] c2;
    logic        [16:0] u_q;

    if (Function == 0) begin : g_exp2
        mr_fn_rom_exp2 u_rom (.clk_i, .en_i(en_i[0]), .segment_i(x_i[23:17]), .c0_o(c0), .c1_o(c1), .c2_o(c2));
    end else if (Function == 1) begin : g_recip
        mr_fn_rom_recip u_rom (.clk_i, .en_i(en_i[0]), .segment_i(x_i[23:17]), .c0_o(c0), .c1_o(c1), .c2_o(c2));
    end else begin : g_log2
        mr_fn_rom_log2 u_rom (.clk_i, .en_i(en_i[0]), .segment_i(x_i[23:17]), .c0_o(c0), .c1_o(c1), .c2_o(c2));
    end

    always_ff @(posedge clk_i) begin
        if (en_i[0]) u_q <= x_i[16:0];
    end

    mr_fn_poly u_poly (.clk_i, .en_i(en_i[3:1]), .c0_i(c0), .c1_i(c1), .c2_i(c2), .u_i(u_q), .y_o);
endmodule
