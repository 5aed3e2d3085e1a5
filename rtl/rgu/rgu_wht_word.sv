// Walsh-Hadamard transform over the word bits, streaming: four radix-2 single-path delay-feedback
// stages (delays 8, 4, 2, 1 words), 32 lanes wide, natural order in and out.
//
// One word enters and one leaves in every cycle with en_i. Words come in groups of 16 (n10_i) or 4;
// h_i is the index within the group. With groups of 4 the two long stages only delay. A group comes
// whole, groups may be garbage (the caller carries the valid flags). Latency: LATENCY enabled cycles.
// flip_i belongs to the group and negates the outputs whose word bit b and flip bit b are both set,
// for every b: the sign character of the output costs no adder. tag_i travels along.
module rgu_wht_word #(
    parameter int unsigned TagWidth = 5
) (
    input  logic                clk_i,
    input  logic                en_i,
    input  logic                n10_i,
    input  logic [3:0]          h_i,
    input  logic [3:0]          flip_i,
    input  logic [TagWidth-1:0] tag_i,
    input  logic [32*32-1:0]    data_i,
    output logic [TagWidth-1:0] tag_o,
    output logic [32*32-1:0]    data_o
);
  localparam int unsigned W = 32 * 32;
  localparam int unsigned T3 = TagWidth + 3;
  localparam int unsigned T2 = TagWidth + 2;
  localparam int unsigned T1 = TagWidth + 1;

  logic [2:0] ptr_q;  // wraps on its own; any starting value will do, so it needs no reset
  logic [1:0] h_q;
  logic [T2-1:0] mid_tag_q;
  logic [W-1:0] mid_q, out_q;
  logic [TagWidth-1:0] out_tag_q;
  logic [T3-1:0] tag8 [0:7];
  logic [T2-1:0] tag4 [0:3];
  logic [T1-1:0] tag2 [0:1];
  logic [TagWidth-1:0] tag1_q;
  logic [W-1:0] dly8 [0:7];
  logic [W-1:0] dly4 [0:3];
  logic [W-1:0] dly2 [0:1];
  logic [W-1:0] dly1_q;

  assign data_o = out_q;
  assign tag_o = out_tag_q;

  // One stage: `old` left the delay line, `now` arrives. In the second half of a pair of half
  // groups (`mix`) the sum leaves and the difference takes its place in the line.
  always_ff @(posedge clk_i) begin : p_long
    logic [W-1:0] o, x, s, d;
    logic [T3-1:0] t;
    if (en_i) begin
      ptr_q <= ptr_q + 3'd1;
      h_q <= h_i[1:0];
      // delay 8
      o = dly8[ptr_q];
      t = tag8[ptr_q];
      tag8[ptr_q] <= {flip_i[2:0], tag_i};
      if (n10_i && h_i[3]) begin
        for (int l = 0; l < 32; l++) begin
          s[l*32+:32] = o[l*32+:32] + data_i[l*32+:32];
          d[l*32+:32] = flip_i[3] ? data_i[l*32+:32] - o[l*32+:32] : o[l*32+:32] - data_i[l*32+:32];
        end
      end else begin
        s = o;
        d = data_i;
      end
      dly8[ptr_q] <= d;
      // delay 4
      x = s;
      o = dly4[ptr_q[1:0]];
      mid_tag_q <= tag4[ptr_q[1:0]];
      tag4[ptr_q[1:0]] <= t[T2-1:0];
      if (n10_i && h_i[2]) begin
        for (int l = 0; l < 32; l++) begin
          s[l*32+:32] = o[l*32+:32] + x[l*32+:32];
          d[l*32+:32] = t[T3-1] ? x[l*32+:32] - o[l*32+:32] : o[l*32+:32] - x[l*32+:32];
        end
      end else begin
        s = o;
        d = x;
      end
      dly4[ptr_q[1:0]] <= d;
      mid_q <= s;
    end
  end

  always_ff @(posedge clk_i) begin : p_short
    logic [W-1:0] o, x, s, d;
    logic [T1-1:0] t;
    if (en_i) begin
      // delay 2
      o = dly2[ptr_q[0]];
      t = tag2[ptr_q[0]];
      tag2[ptr_q[0]] <= mid_tag_q[T1-1:0];
      if (h_q[1]) begin
        for (int l = 0; l < 32; l++) begin
          s[l*32+:32] = o[l*32+:32] + mid_q[l*32+:32];
          d[l*32+:32] = mid_tag_q[T2-1] ? mid_q[l*32+:32] - o[l*32+:32]
                                        : o[l*32+:32] - mid_q[l*32+:32];
        end
      end else begin
        s = o;
        d = mid_q;
      end
      dly2[ptr_q[0]] <= d;
      // delay 1
      x = s;
      o = dly1_q;
      out_tag_q <= tag1_q;
      tag1_q <= t[TagWidth-1:0];
      if (h_q[0]) begin
        for (int l = 0; l < 32; l++) begin
          s[l*32+:32] = o[l*32+:32] + x[l*32+:32];
          d[l*32+:32] = t[T1-1] ? x[l*32+:32] - o[l*32+:32] : o[l*32+:32] - x[l*32+:32];
        end
      end else begin
        s = o;
        d = x;
      end
      dly1_q <= d;
      out_q <= s;
    end
  end
endmodule
