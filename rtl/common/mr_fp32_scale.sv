// float32 times w_i * 2^(-26 - shift_i), exact product rounded once to float32: to nearest, ties to even,
// subnormals kept, overflow to infinity. w_i has its highest set bit at 25 or 26 (1.0 is 2^26).
//
// Two stages, each under its own enable: y_o two enabled cycles after x_i, one value a cycle. NaN gives
// 7FC00000; zeros, also of values that underflow, and infinities keep their sign.
// All logic stands inside the enabled registers: a cell at rest costs nothing in simulation.
module mr_fp32_scale (
    input  logic               clk_i,
    input  logic        [1:0]  en_i,
    input  logic        [31:0] x_i,
    input  logic        [26:0] w_i,
    input  logic signed [9:0]  shift_i,
    output logic        [31:0] y_o
);
    logic        [50:0] prod_q;
    logic signed [11:0] exp_q;
    logic               sign_q, inf_q, nan_q;
    logic        [31:0] y_q;
    assign y_o = y_q;

    always_ff @(posedge clk_i) begin : p_product
        logic        [23:0] sig;
        logic signed [11:0] exp;
        if (en_i[0]) begin
            sig = {x_i[30:23] != 8'd0, x_i[22:0]};
            exp = $signed({4'b0, x_i[30:23]});
            if (x_i[30:23] == 8'd0) begin // highest set bit to bit 23
                exp = 12'sd1;
                if (sig[23:8] == '0) begin sig = sig << 16; exp = exp - 12'sd16; end
                if (sig[23:16] == '0) begin sig = sig << 8; exp = exp - 12'sd8; end
                if (sig[23:20] == '0) begin sig = sig << 4; exp = exp - 12'sd4; end
                if (sig[23:22] == '0) begin sig = sig << 2; exp = exp - 12'sd2; end
                if (!sig[23]) begin sig = sig << 1; exp = exp - 12'sd1; end
            end
            prod_q <= {27'b0, sig} * {24'b0, w_i};
            exp_q  <= exp - 12'(shift_i);
            sign_q <= x_i[31];
            inf_q  <= x_i[30:0] == 31'h7F80_0000;
            nan_q  <= x_i[30:0] > 31'h7F80_0000;
        end
    end

    always_ff @(posedge clk_i) begin : p_round
        logic        [50:0] p, half;
        logic signed [11:0] field, far; // field: biased exponent of a normal result
        logic        [5:0]  sh;
        logic        [24:0] mant;
        logic        [31:0] mag;
        logic               sticky;
        if (en_i[1]) begin
            p = prod_q;
            field = exp_q + 12'sd1;
            if (!p[50]) begin p = p << 1; field = field - 12'sd1; end
            if (!p[50]) begin p = p << 1; field = field - 12'sd1; end
            // one bit less than the shift that leaves the kept bits, so that half[0] is the rounding bit
            sh = 6'd26;
            if (field < 12'sd1) begin
                far = 12'sd27 - field;
                sh = far > 12'sd63 ? 6'd63 : far[5:0];
            end
            half = p >> sh;
            sticky = half << sh != p;
            mant = half[24:1] + {24'b0, half[0] && (sticky || half[1])};
            // the hidden bit of mant adds the one by which field and exponent field differ
            mag = {7'b0, mant};
            if (field > 12'sd1) mag = mag + {1'b0, field[7:0] - 8'd1, 23'b0};
            if (field > 12'sd254 || inf_q || mag[31:23] >= 9'h0FF) mag = 32'h7F80_0000;
            if (prod_q == '0) mag = 32'd0;
            y_q <= nan_q ? 32'h7FC0_0000 : {sign_q, mag[30:0]};
        end
    end
endmodule
