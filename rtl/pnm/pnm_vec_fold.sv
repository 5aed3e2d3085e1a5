// Sum or maximum of two float32, three enabled cycles, one result a cycle. A maximum with a NaN is NaN,
// -0 lies below +0. max_i is constant while values are under way.
module pnm_vec_fold (
    input  logic        clk_i,
    input  logic [2:0]  en_i,
    input  logic        max_i,
    input  logic [31:0] a_i,
    input  logic [31:0] b_i,
    output logic [31:0] r_o
);
  logic [31:0] sum, max_q [3];

  mr_fp32_add u_add (.clk_i, .en_i(en_i & {3{!max_i}}), .a_i, .b_i, .sum_o(sum));

  always_ff @(posedge clk_i) begin : p_max
    logic above;
    if (en_i[0] && max_i) begin
      if (a_i[31] != b_i[31]) above = !a_i[31];
      else above = (a_i[30:0] >= b_i[30:0]) ^ a_i[31];
      if (a_i[30:0] > 31'h7F80_0000 || b_i[30:0] > 31'h7F80_0000) max_q[0] <= 32'h7FC0_0000;
      else max_q[0] <= above ? a_i : b_i;
    end
    for (int unsigned k = 1; k < 3; k++) if (en_i[k] && max_i) max_q[k] <= max_q[k-1];
  end

  assign r_o = max_i ? max_q[2] : sum;
endmodule
