// float32 product after IEEE 754: to nearest, ties to even, subnormals kept, overflow to infinity; NaN
// operands and infinity times zero give 7FC00000.
//
// Three stages, each under its own enable: prod_o three enabled cycles after a_i and b_i, one product a
// cycle. All logic stands inside the enabled registers: a cell at rest costs nothing in simulation.
module mr_fp32_mul (
    input  logic        clk_i,
    input  logic [2:0]  en_i,
    input  logic [31:0] a_i,
    input  logic [31:0] b_i,
    output logic [31:0] prod_o
);
    logic        [47:0] p1_q, p2_q;
    logic signed [9:0]  exp1_q, exp2_q; // biased exponent if the product's highest bit is bit 46
    logic               sign1_q, sign2_q, inf1_q, inf2_q, nan1_q, nan2_q, zero1_q, zero2_q;
    logic        [31:0] prod_q;
    assign prod_o = prod_q;

    always_ff @(posedge clk_i) begin : p_product
        logic a_zero, b_zero, a_inf, b_inf;
        logic [9:0] ea, eb;
        if (en_i[0]) begin
            a_zero = a_i[30:0] == '0;
            b_zero = b_i[30:0] == '0;
            a_inf = a_i[30:0] == 31'h7F80_0000;
            b_inf = b_i[30:0] == 31'h7F80_0000;
            ea = a_i[30:23] == 8'd0 ? 10'd1 : {2'b0, a_i[30:23]};
            eb = b_i[30:23] == 8'd0 ? 10'd1 : {2'b0, b_i[30:23]};
            p1_q    <= {24'b0, a_i[30:23] != 8'd0, a_i[22:0]} * {24'b0, b_i[30:23] != 8'd0, b_i[22:0]};
            exp1_q  <= $signed(ea + eb - 10'd127);
            sign1_q <= a_i[31] ^ b_i[31];
            inf1_q  <= a_inf || b_inf;
            zero1_q <= a_zero || b_zero;
            nan1_q  <= a_i[30:0] > 31'h7F80_0000 || b_i[30:0] > 31'h7F80_0000 || (a_inf && b_zero) ||
                (b_inf && a_zero);
        end
    end

    // highest bit to bit 47
    always_ff @(posedge clk_i) begin : p_normalise
        logic        [47:0] p;
        logic signed [9:0]  exp;
        if (en_i[1]) begin
            p = p1_q;
            exp = exp1_q + 10'sd1;
            if (p[47:16] == '0) begin p = p << 32; exp = exp - 10'sd32; end
            if (p[47:32] == '0) begin p = p << 16; exp = exp - 10'sd16; end
            if (p[47:40] == '0) begin p = p << 8; exp = exp - 10'sd8; end
            if (p[47:44] == '0) begin p = p << 4; exp = exp - 10'sd4; end
            if (p[47:46] == '0) begin p = p << 2; exp = exp - 10'sd2; end
            if (!p[47]) begin p = p << 1; exp = exp - 10'sd1; end
            p2_q    <= p;
            exp2_q  <= exp;
            sign2_q <= sign1_q;
            inf2_q  <= inf1_q;
            zero2_q <= zero1_q;
            nan2_q  <= nan1_q;
        end
    end

    always_ff @(posedge clk_i) begin : p_round
        logic        [47:0] p, kept;
        logic signed [9:0]  below;
        logic        [5:0]  by;
        logic        [31:0] mag;
        logic               lost;
        if (en_i[2]) begin
            p = p2_q;
            lost = 1'b0;
            if (exp2_q < 10'sd1) begin // subnormal: down to the grid of 2^-149
                below = 10'sd1 - exp2_q;
                by = below > 10'sd48 ? 6'd48 : below[5:0];
                kept = by == 6'd48 ? 48'd0 : p >> by;
                lost = by == 6'd48 || kept << by != p;
                p = kept;
            end
            mag = {8'd0, p[47:24]} + {31'd0, p[23] && (p[22:0] != '0 || lost || p[24])};
            // the hidden bit adds the one by which a normal number's exponent field differs
            if (exp2_q > 10'sd1) mag = mag + {exp2_q[8:0] - 9'd1, 23'd0};
            if (inf2_q || exp2_q > 10'sd254 || mag[31:23] >= 9'h0FF) mag = 32'h7F80_0000;
            if (zero2_q) mag = '0;
            prod_q <= nan2_q ? 32'h7FC0_0000 : {sign2_q, mag[30:0]};
        end
    end
endmodule
