// One lane of fixed point to floating point: w * scale rounded once to bf16, fp16, e4m3, e5m2, int8 or
// fp32 (nearest even, subnormals kept, zero is +0, product exact).
//
// Three stages under the clock enable en_i: latency 3 enabled cycles, one value a cycle. The other inputs
// come from mr_fx_scale and belong to the row of w_i; the format constants (man, max, over, sign_mask,
// int) are used in the last stage and must not change while values are under way, sig, sign and exp travel
// along. code_o is right aligned: 16, 8, 8 or 32 bits. One 31 x 24 bit multiplier.
// The rounding is that of mr_fp_round without its flags. All logic stands inside the enabled registers,
// so that a lane at rest costs nothing in simulation: a unit has 32 or more of them.
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
    logic [30:0] mag_q;
    logic [23:0] sig_q;
    logic [54:0] prod_q;
    logic        sign1_q, sign2_q;
    logic signed [11:0] exp1_q, exp2_q;
    logic [31:0] code_q;
    assign code_o = code_q;

    always_ff @(posedge clk_i) begin : p_lane
        logic [30:0] mag;
        logic [4:0]  zeros;
        logic [54:0] p, half;
        logic signed [11:0] ee;
        logic signed [12:0] far;
        logic [5:0]  sh;
        logic        sticky, below, over;
        logic [24:0] mant;
        logic [31:0] sum, done;
        if (en_i) begin
            // stage 1: magnitude, highest set bit brought to bit 30
            mag = w_i[30] ? 31'd0 - $unsigned(w_i) : $unsigned(w_i);
            zeros = 5'd0;
            if (mag[30:15] == '0) begin mag = mag << 16; zeros[4] = 1'b1; end
            if (mag[30:23] == '0) begin mag = mag << 8; zeros[3] = 1'b1; end
            if (mag[30:27] == '0) begin mag = mag << 4; zeros[2] = 1'b1; end
            if (mag[30:29] == '0) begin mag = mag << 2; zeros[1] = 1'b1; end
            if (!mag[30]) begin mag = mag << 1; zeros[0] = 1'b1; end
            mag_q   <= mag;
            sig_q   <= sig_i;
            sign1_q <= w_i[30] ^ sign_i;
            exp1_q  <= exp_i - $signed({7'b0, zeros});

            // stage 2: product
            prod_q  <= {24'b0, mag_q} * {31'b0, sig_q};
            sign2_q <= sign1_q;
            exp2_q  <= exp1_q;

            // stage 3: highest set bit to bit 54; ee counts from the smallest normal exponent
            p = prod_q;
            ee = exp2_q;
            if (!p[54]) begin p = p << 1; ee = ee - 12'sd1; end
            below = ee[11];
            // one bit less than the shift that leaves the kept bits, so that half[0] is the rounding bit
            sh = 6'd53 - {1'b0, man_i};
            if (below) begin
                far = $signed({7'b0, sh}) - 13'(ee);
                sh = far > 13'sd63 ? 6'd63 : far[5:0];
            end
            half = p >> sh;
            sticky = half << sh != p;
            mant = half[25:1] + {24'b0, half[0] && (sticky || half[1])};
            // the hidden bit of mant adds the one by which a normal number's exponent field differs from ee
            sum = {7'b0, mant};
            if (!below) sum = sum + ({24'b0, ee[7:0]} << man_i);
            over = (!below && ee[10:8] != '0) || sum > {1'b0, max_i} + {31'b0, int_i && sign2_q};
            done = over ? {1'b0, over_i} + {31'b0, int_i && sign2_q} : sum;
            if (sign2_q) done = int_i ? {24'b0, 8'(32'd0 - done)} : done | sign_mask_i;
            code_q <= prod_q == '0 ? 32'd0 : done;
        end
    end
endmodule
