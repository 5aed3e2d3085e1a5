// The 32 multipliers of apply mode and their adder tree: dot products of 32 (n = 10) or, two at a
// time, of 16.
//
// First product, R X: rows of R stay in r_i, columns of X pass by, and the dot products, rounded to
// 28 bits, gather into a row of T. Second product, T S: that row stays, columns of S pass by, and
// the exact dot products leave. The two alternate cycle by cycle.
//   issue1_i / issue2_i: column c1_i / c2_i is being read for the first / second product (never
//   both);
//   its data stand in x_i / s_i the cycle after, the row in r_i likewise.
//   take_i: with issue2_i of column 0: the gathered row becomes the one in use. A row is complete 6
//   cycles after its last issue1_i and untouched for two cycles from then on.
//   u_valid_o, u0_o, u1_o: 5 cycles after issue2_i. n = 10: u0_o; n = 8: u0_o the even row, u1_o
//   the odd one.
module rgu_apply_mac (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               n10_i,
    input  logic               issue1_i,
    input  logic [        4:0] c1_i,
    input  logic               issue2_i,
    input  logic               take_i,
    input  logic [      703:0] r_i,   // 32 x 22: a row of R, or two of 16
    input  logic [      767:0] x_i,   // 32 x 24: a column of X
    input  logic [      639:0] s_i,   // 32 x 20: a column of S
    output logic               u_valid_o,
    output logic signed [53:0] u0_o,
    output logic signed [53:0] u1_o
);
  localparam int unsigned Shift = 18;  // dropped from R X

  logic is1_q1, is1_q2, is1_q3, is1_q4, is1_q5;
  logic is2_q1, is2_q2, is2_q3, is2_q4, is2_q5;
  logic [4:0] c_q1, c_q2, c_q3, c_q4, c_q5;
  logic [32*32-1:0] build_q, use_q;     // rows of T, 28 bits on a stride of 32
  logic [32*32-1:0] a_q, b_q;           // operands, 28 and 22 bits
  logic [32*64-1:0] p_q;                // products
  logic [8*64-1:0] four_q;              // sums of four
  logic signed [53:0] out0_q, out1_q;

  always_ff @(posedge clk_i) begin
    {is1_q1, is1_q2, is1_q3, is1_q4, is1_q5} <=
        {issue1_i, is1_q1, is1_q2, is1_q3, is1_q4} & {5{rst_ni}};
    {is2_q1, is2_q2, is2_q3, is2_q4, is2_q5} <=
        {issue2_i, is2_q1, is2_q2, is2_q3, is2_q4} & {5{rst_ni}};
    {c_q1, c_q2, c_q3, c_q4, c_q5} <= {c1_i, c_q1, c_q2, c_q3, c_q4};
    if (take_i) use_q <= build_q;
  end

  // operands: a column of X or the row of T, and the row of R or a column of S
  always_ff @(posedge clk_i) begin
    if (is2_q1) begin
      for (int l = 0; l < 32; l++) begin
        a_q[l*32+:32] <= use_q[l*32+:32];
        b_q[l*32+:32] <= 32'($signed(s_i[(n10_i ? l : l % 16)*20+:20]));
      end
    end else if (is1_q1) begin
      for (int l = 0; l < 32; l++) begin
        a_q[l*32+:32] <= 32'($signed(x_i[(n10_i ? l : l % 16)*24+:24]));
        b_q[l*32+:32] <= 32'($signed(r_i[l*22+:22]));
      end
    end
  end

  // products, sums of four, sums of 16 and of 32
  always_ff @(posedge clk_i) begin
    if (is1_q2 || is2_q2) begin
      for (int l = 0; l < 32; l++) begin
        p_q[l*64+:64] <= 64'($signed(a_q[l*32+:28])) * 64'($signed(b_q[l*32+:22]));
      end
    end
    if (is1_q3 || is2_q3) begin
      for (int f = 0; f < 8; f++) begin
        four_q[f*64+:64] <= (p_q[f*256+:64] + p_q[f*256+64+:64]) +
                            (p_q[f*256+128+:64] + p_q[f*256+192+:64]);
      end
    end
  end

  logic [63:0] half0, half1;
  assign half0 = (four_q[0+:64] + four_q[64+:64]) + (four_q[128+:64] + four_q[192+:64]);
  assign half1 = (four_q[256+:64] + four_q[320+:64]) + (four_q[384+:64] + four_q[448+:64]);
  logic [63:0] total;
  assign total = half0 + (n10_i ? half1 : 64'd0);
  logic unused;
  assign unused = ^{total[63:54], half1[63:54]};

  always_ff @(posedge clk_i) begin
    if (is1_q4 || is2_q4) begin
      out0_q <= total[53:0];
      out1_q <= half1[53:0];
    end
  end
  assign u_valid_o = is2_q5;
  assign u0_o = out0_q;
  assign u1_o = out1_q;

  // round half away from zero
  function automatic logic [31:0] rounded(input logic signed [53:0] x);
    logic signed [53:0] y;
    y = x + 54'sd131072 - {53'd0, x[53]};
    y = y >>> Shift;
    rounded = 32'(y);
  endfunction

  always_ff @(posedge clk_i) begin
    if (is1_q5) begin
      build_q[{(n10_i & c_q5[4]), c_q5[3:0], 5'd0}+:32] <= rounded(out0_q);
      if (!n10_i) build_q[{1'b1, c_q5[3:0], 5'd0}+:32] <= rounded(out1_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(issue1_i && issue2_i));
      if (is1_q5) assert (out0_q[53:45] == '0 || (&out0_q[53:45]));
    end
  end
endmodule
