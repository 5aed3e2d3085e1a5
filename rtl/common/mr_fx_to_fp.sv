// One lane of fixed point to floating point: w * scale rounded once to bf16, fp16, e4m3, e5m2, int8 or
// fp32 (nearest even, subnormals kept, zero is +0, product exact).
//
// Three stages under the clock enable en_i: latency 3 enabled cycles, one value a cycle. The other inputs
// come from mr_fx_scale and belong to the row of w_i; the format constants (man, max, over, sign_mask,
// int) are used in the last stage and must not change while values are under way, sig, sign and exp travel
// along. code_o is right aligned: 16, 8, 8 or 32 bits. One 31 x 24 bit multiplier.
module mr_fx_to_fp (
    input  logic               clk_i,
    input  logic               en_i,
    input  logic signed [30:0] w_i,
    input  logic        [23:0] sig_i,
    input  logic               sign_i,
    input  logic signed [11:0] exp_i,
    input  logic        [4:0]  man_i,
    input  logic        [30:0] max_i,
    input  logic        [30:0] over_i,
    input  logic        [31:0] sign_mask_i,
    input  logic               int_i,
    output logic        [31:0] code_o
);
    // stage 1: magnitude, highest set bit brought to bit 30
    logic [30:0] s16, s8, s4, s2, s1, mag_d, mag_q;
    logic        z16, z8, z4, z2, z1;
    logic [23:0] sig_q;
    logic        sign1_q, sign2_q;
    logic signed [11:0] exp1_q, exp2_q;
    logic [54:0] prod_q;
    logic [31:0] code;
    logic [2:0]  unused_flags;

    assign s16 = w_i[30] ? 31'd0 - $unsigned(w_i) : $unsigned(w_i);
    assign z16 = s16[30:15] == '0;
    assign s8 = z16 ? {s16[14:0], 16'b0} : s16;
    assign z8 = s8[30:23] == '0;
    assign s4 = z8 ? {s8[22:0], 8'b0} : s8;
    assign z4 = s4[30:27] == '0;
    assign s2 = z4 ? {s4[26:0], 4'b0} : s4;
    assign z2 = s2[30:29] == '0;
    assign s1 = z2 ? {s2[28:0], 2'b0} : s2;
    assign z1 = !s1[30];
    assign mag_d = z1 ? {s1[29:0], 1'b0} : s1;

    // stage 3: rounding of the product of stage 2
    mr_fp_round #(.Width(55)) u_round (
        .p_i(prod_q), .exp_i(exp2_q), .sign_i(sign2_q), .man_i, .max_i, .over_i, .sign_mask_i, .int_i,
        .code_o(code), .over_o(unused_flags[0]), .under_o(unused_flags[1]), .inexact_o(unused_flags[2])
    );

    always_ff @(posedge clk_i) begin
        if (en_i) begin
            mag_q   <= mag_d;
            sig_q   <= sig_i;
            sign1_q <= w_i[30] ^ sign_i;
            exp1_q  <= exp_i - $signed({7'b0, z16, z8, z4, z2, z1});
            prod_q  <= {24'b0, mag_q} * {31'b0, sig_q};
            sign2_q <= sign1_q;
            exp2_q  <= exp1_q;
            code_o  <= code;
        end
    end
endmodule
