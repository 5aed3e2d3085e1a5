// Walsh-Hadamard transform over the 32 lanes of a word, natural order.
//
// flip_i negates the outputs whose lane bit b and flip bit b are both set, for every b, by swapping
// the operands of that level's subtractions. Latency 3 enabled cycles, one word a cycle.
module rgu_wht_lane (
    input  logic             clk_i,
    input  logic             en_i,
    input  logic [4:0]       flip_i,
    input  logic [32*32-1:0] data_i,
    output logic [32*32-1:0] data_o
);
  localparam int unsigned W = 32 * 32;

  logic [W-1:0] a_q, b_q, c_q;
  logic [2:0] flip_a_q;
  logic flip_b_q;
  assign data_o = c_q;

  // One level: lanes that differ in the bit `step` become their sum and their difference.
  function automatic logic [W-1:0] level(input logic [W-1:0] v, input int step, input logic flip);
    for (int l = 0; l < 32; l++) begin
      if ((l & step) == 0) begin
        level[l*32+:32] = v[l*32+:32] + v[(l|step)*32+:32];
        level[(l|step)*32+:32] = flip ? v[(l|step)*32+:32] - v[l*32+:32]
                                      : v[l*32+:32] - v[(l|step)*32+:32];
      end
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      a_q <= level(level(data_i, 1, flip_i[0]), 2, flip_i[1]);
      flip_a_q <= flip_i[4:2];
      b_q <= level(level(a_q, 4, flip_a_q[0]), 8, flip_a_q[1]);
      flip_b_q <= flip_a_q[2];
      c_q <= level(b_q, 16, flip_b_q);
    end
  end
endmodule
