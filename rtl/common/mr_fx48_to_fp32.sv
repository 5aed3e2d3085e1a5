// A 48-bit integer times a power of two to float32, rounded once: to nearest, ties to even, subnormals kept,
// overflow to infinity, zero is +0.
//
// r_o three enabled cycles after acc_i, one value a cycle, each stage under its own enable. Value is
// acc_i * 2^exp_i. All logic stands inside the enabled registers.
module mr_fx48_to_fp32 (
    input  logic               clk_i,
    input  logic [2:0]         en_i,
    input  logic signed [47:0] acc_i,
    input  logic signed [10:0] exp_i,
    output logic [31:0]        r_o
);
  logic        [47:0] mag1_q, mag2_q;
  logic signed [10:0] exp1_q, exp2_q;
  logic               sign1_q, sign2_q;
  logic        [31:0] r_q;
  assign r_o = r_q;

  always_ff @(posedge clk_i) begin : p_magnitude
    if (en_i[0]) begin
      mag1_q  <= acc_i[47] ? 48'(-acc_i) : 48'(acc_i);
      sign1_q <= acc_i[47];
      exp1_q  <= exp_i + 11'sd174; // biased exponent if bit 47 is the highest
    end
  end

  always_ff @(posedge clk_i) begin : p_normalise
    logic        [47:0] m;
    logic signed [10:0] e;
    if (en_i[1]) begin
      m = mag1_q;
      e = exp1_q;
      if (m[47:16] == '0) begin m = m << 32; e = e - 11'sd32; end
      if (m[47:32] == '0) begin m = m << 16; e = e - 11'sd16; end
      if (m[47:40] == '0) begin m = m << 8; e = e - 11'sd8; end
      if (m[47:44] == '0) begin m = m << 4; e = e - 11'sd4; end
      if (m[47:46] == '0) begin m = m << 2; e = e - 11'sd2; end
      if (!m[47]) begin m = m << 1; e = e - 11'sd1; end
      mag2_q  <= m;
      exp2_q  <= e;
      sign2_q <= sign1_q;
    end
  end

  always_ff @(posedge clk_i) begin : p_round
    logic        [47:0] m, kept;
    logic signed [10:0] below;
    logic        [5:0]  by;
    logic        [31:0] mag;
    logic               lost;
    if (en_i[2]) begin
      m = mag2_q;
      lost = 1'b0;
      if (exp2_q < 11'sd1) begin
        below = 11'sd1 - exp2_q;
        by = below > 11'sd48 ? 6'd48 : below[5:0];
        kept = by == 6'd48 ? 48'd0 : m >> by;
        lost = by == 6'd48 || kept << by != m;
        m = kept;
      end
      mag = {8'd0, m[47:24]} + {31'd0, m[23] && (m[22:0] != '0 || lost || m[24])};
      if (exp2_q > 11'sd1) mag = mag + {exp2_q[8:0] - 9'd1, 23'd0};
      if (exp2_q > 11'sd254 || mag[31:23] >= 9'h0FF) mag = 32'h7F80_0000;
      r_q <= mag2_q == '0 ? '0 : {sign2_q, mag[30:0]};
    end
  end
endmodule
