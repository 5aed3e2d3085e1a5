// One lane of the vector side: f(+-(a * m) +- c) on float32.
//
// v_o six enabled cycles after a_i, or twelve with a function of the table (fn_i 1 or 2); one value a
// cycle. en_i[k]: a value is in stage k. c_i comes with a_i. What to do is constant while values are under
// way. All logic stands inside the enabled registers.
module pnm_vec_lane (
    input  logic        clk_i,
    input  logic [11:0] en_i,
    input  logic [2:0]  fn_i,      // 0 identity, 1 exp2, 2 log2, 3 larger of value and +0
    input  logic        mul_i,     // multiply by m
    input  logic        add_i,     // add c
    input  logic        neg_mul_i,
    input  logic        neg_add_i,
    input  logic [31:0] a_i,
    input  logic [31:0] m_i,
    input  logic [31:0] c_i,
    output logic [31:0] v_o
);
  logic [31:0] prod, a_q [3], c_q [3], p, p_q [3], sum, s, fn;
  logic [2:0]  table_en;

  mr_fp32_mul u_mul (.clk_i, .en_i(en_i[2:0] & {3{mul_i}}), .a_i, .b_i(m_i), .prod_o(prod));

  function automatic logic [31:0] canonical(input logic [31:0] x);
    canonical = x[30:0] > 31'h7F80_0000 ? 32'h7FC0_0000 : x;
  endfunction

  always_ff @(posedge clk_i) begin
    if (en_i[0] && !mul_i) a_q[0] <= canonical(a_i);
    if (en_i[0] && add_i) c_q[0] <= c_i;
    for (int unsigned k = 1; k < 3; k++) begin
      if (en_i[k] && !mul_i) a_q[k] <= a_q[k-1];
      if (en_i[k] && add_i) c_q[k] <= c_q[k-1];
    end
  end

  always_comb begin
    p = mul_i ? prod : a_q[2];
    if (neg_mul_i && p[30:0] <= 31'h7F80_0000) p[31] = !p[31];
  end
  mr_fp32_add u_add (
      .clk_i, .en_i(en_i[5:3] & {3{add_i}}), .a_i(p), .b_i({c_q[2][31] ^ neg_add_i, c_q[2][30:0]}), .sum_o(sum));
  always_ff @(posedge clk_i) begin
    if (en_i[3] && !add_i) p_q[0] <= p;
    for (int unsigned k = 1; k < 3; k++) if (en_i[k+3] && !add_i) p_q[k] <= p_q[k-1];
  end

  assign s = add_i ? sum : p_q[2];
  assign table_en = {3{fn_i == 3'd1 || fn_i == 3'd2}};
  pnm_vec_fn u_fn (
      .clk_i, .en_i(en_i[11:6] & {table_en, table_en}), .log2_i(fn_i == 3'd2), .x_i(s), .y_o(fn));

  always_comb begin
    v_o = s;
    if (table_en[0]) v_o = fn;
    else if (fn_i == 3'd3 && (s[31] && s[30:0] <= 31'h7F80_0000)) v_o = '0;
  end
endmodule
