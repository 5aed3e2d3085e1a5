// The distance |a - b| of two exponents in powers of two, 9.24 bits, saturated, and which one is larger.
//
// Each is a float32 that counts powers of 2, or of e where its nat bit is set: a product with log2(e) of 40
// bits is exact, the smaller exponent's operand is then shifted down with truncation, so the difference is
// formed before any rounding (mr_nic_distance in models/golden/nic_merge.c). Infinities and NaNs give
// rubbish. Four stages, each under its own enable; larger_o (a > b) after three, the rest after four.
module nic_merge_distance (
    input  logic        clk_i,
    input  logic [3:0]  en_i,
    input  logic [31:0] a_i,
    input  logic        a_nat_i,
    input  logic [31:0] b_i,
    input  logic        b_nat_i,
    output logic        larger_o,
    output logic [32:0] distance_o
);
  localparam logic [39:0] Log2E = 40'd793129986396; // log2(e) * 2^39, rounded

  // {exponent of the lowest bit of the significand, significand with bit 23 set}
  function automatic logic [33:0] unpack(input logic [30:0] x);
    logic signed [9:0]  exp;
    logic        [23:0] sig;
    sig = {x[30:23] != 8'd0, x[22:0]};
    exp = $signed({2'b0, x[30:23]}) - 10'sd150;
    if (x[30:23] == 8'd0) begin
      exp = -10'sd149;
      if (sig[23:8] == '0) begin sig = sig << 16; exp = exp - 10'sd16; end
      if (sig[23:16] == '0) begin sig = sig << 8; exp = exp - 10'sd8; end
      if (sig[23:20] == '0) begin sig = sig << 4; exp = exp - 10'sd4; end
      if (sig[23:22] == '0) begin sig = sig << 2; exp = exp - 10'sd2; end
      if (!sig[23]) begin sig = sig << 1; exp = exp - 10'sd1; end
    end
    unpack = {exp, sig};
  endfunction

  logic        [63:0] a1_q, b1_q, a2_q, b2_q;
  logic signed [9:0]  ea_q, eb_q, e2_q, e3_q;
  logic               sa1_q, sb1_q, sa2_q, sb2_q, larger_q;
  logic        [64:0] size_q;
  logic        [32:0] distance_q;
  assign larger_o = larger_q;
  assign distance_o = distance_q;

  always_ff @(posedge clk_i) begin : p_align
    logic signed [9:0]  a_exp, b_exp, top;
    logic        [23:0] a_sig, b_sig;
    logic        [9:0]  da, db;
    if (en_i[0]) begin
      {a_exp, a_sig} = unpack(a_i[30:0]);
      {b_exp, b_sig} = unpack(b_i[30:0]);
      a1_q  <= a_nat_i ? 64'(a_sig) * 64'(Log2E) : {1'b0, a_sig, 39'b0};
      b1_q  <= b_nat_i ? 64'(b_sig) * 64'(Log2E) : {1'b0, b_sig, 39'b0};
      // a zero has no exponent of its own
      ea_q  <= a_sig == '0 ? b_exp : a_exp;
      eb_q  <= b_sig == '0 ? a_exp : b_exp;
      sa1_q <= a_i[31];
      sb1_q <= b_i[31];
    end
    if (en_i[1]) begin
      top = ea_q > eb_q ? ea_q : eb_q;
      da = $unsigned(top - ea_q);
      db = $unsigned(top - eb_q);
      a2_q  <= da > 10'd63 ? 64'd0 : a1_q >> da[5:0];
      b2_q  <= db > 10'd63 ? 64'd0 : b1_q >> db[5:0];
      e2_q  <= top;
      sa2_q <= sa1_q;
      sb2_q <= sb1_q;
    end
  end

  always_ff @(posedge clk_i) begin : p_difference
    logic above; // |a| > |b|
    if (en_i[2]) begin
      above = a2_q > b2_q;
      if (sa2_q != sb2_q) size_q <= {1'b0, a2_q} + {1'b0, b2_q};
      else size_q <= {1'b0, above ? a2_q - b2_q : b2_q - a2_q};
      if (sa2_q != sb2_q) larger_q <= sb2_q && (a2_q != '0 || b2_q != '0);
      else larger_q <= sa2_q ? b2_q > a2_q : above;
      e3_q <= e2_q;
    end
  end

  // One bit more than the distance is kept on the way down, which rounds it; an exponent of the lowest bit
  // of e3 - 39 means a shift by e3 - 15 to get 24 fraction bits.
  always_ff @(posedge clk_i) begin : p_scale
    logic signed [9:0] by, down;
    logic [64:0] half;
    logic [32:0] up;
    if (en_i[3]) begin
      by = e3_q - 10'sd15;
      down = -10'sd1 - by;
      if (by >= 10'sd0) begin
        up = size_q[32:0] << by[5:0];
        if (size_q == '0) distance_q <= '0;
        else if (by > 10'sd33 || size_q[64:33] != '0 || (up >> by[5:0]) != size_q[32:0]) distance_q <= '1;
        else distance_q <= up;
      end else begin
        half = down > 10'sd66 ? 65'd0 : size_q >> down[6:0];
        half = {1'b0, half[64:1]} + {64'b0, half[0]};
        distance_q <= half[64:33] != '0 ? '1 : half[32:0];
      end
    end
  end
endmodule
