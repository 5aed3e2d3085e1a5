// A processing element: sixteen hybrid multipliers beside a bank, their products on one grid, and a sum.
//
// load_i takes the activations, en_i, first_i and slice_i drive the lanes as pnm_mult_lane says. Products are
// there the cycle after en_i[2]; sum_en_i[0] (that cycle), [1] and [2] follow them through the shift to the
// grid, the adder tree and the accumulation: result in acc_o and the flags the cycle after sum_en_i[2]. top_i,
// the exponent of the grid, is read with sum_en_i[0]; start_i, resume_i, keep_i and vector_i with sum_en_i[2].
// start_i: the sum begins from zero; resume_i: from what keep_i stored for the vector.
module pnm_pe #(
    parameter int unsigned Gen        = pnm_stream_pkg::GEN_CENTRED,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16
) (
    input  logic               clk_i,
    input  logic [24:0]        cfg_i,
    input  logic               load_i,
    input  logic [255:0]       act_i,
    input  logic [2:0]         en_i,
    input  logic               first_i,
    input  logic [5:0]         slice_i,
    input  logic [255:0]       weight_i,
    input  logic [2:0]         sum_en_i,
    input  logic [8:0]         top_i,
    input  logic               start_i,
    input  logic               resume_i,
    input  logic               keep_i,
    input  logic [5:0]         vector_i,
    output logic signed [47:0] acc_o,
    output logic               nan_o,
    output logic               pinf_o,
    output logic               ninf_o,
    output logic               range_o
);
  logic [15:0] sign, zero, inf, nan, over;
  logic [143:0] exps;
  logic [255:0] p;

  for (genvar l = 0; l < 16; l++) begin : g_lane
    /* verilator lint_off PINCONNECTEMPTY */ // generators that stand outside of the lane
    pnm_mult_lane #(.Gen(Gen), .Cut(Cut), .StreamBits(StreamBits)) u_lane (
        .clk_i,
        .cfg_i,
        .load_i,
        .act_i(act_i[16*l+:16]),
        .en_i,
        .first_i,
        .slice_i,
        .weight_i(weight_i[16*l+:16]),
        .ones_i('0),
        .code_a_o(),
        .code_b_o(),
        .sign_o(sign[l]),
        .exp_o(exps[9*l+:9]),
        .p_o(p[16*l+:16]),
        .zero_o(zero[l]),
        .inf_o(inf[l]),
        .nan_o(nan[l])
    );
    /* verilator lint_on PINCONNECTEMPTY */
  end

  // ---- to the grid -----------------------------------------------------------------------------------
  logic signed [35:0] term_q [16];
  logic               nan1_q, pinf1_q, ninf1_q, range_q;
  for (genvar l = 0; l < 16; l++) begin : g_align
    logic [8:0] e;
    assign e = exps[9*l+:9];
    assign over[l] = e > top_i && !zero[l] && !inf[l] && !nan[l];
    always_ff @(posedge clk_i) begin : p_align
      logic [8:0]  d;
      logic [34:0] mag;
      if (sum_en_i[0]) begin
        d = e > top_i ? 9'd0 : top_i - e;
        mag = {p[16*l+:16], 19'd0} >> (d > 9'd35 ? 6'd35 : d[5:0]);
        if (zero[l] || inf[l] || nan[l]) mag = '0;
        term_q[l] <= sign[l] ? -$signed({1'b0, mag}) : $signed({1'b0, mag});
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (sum_en_i[0]) begin
      nan1_q  <= nan != '0;
      pinf1_q <= (inf & ~nan & ~sign) != '0;
      ninf1_q <= (inf & ~nan & sign) != '0;
      range_q <= over != '0;
    end
  end
  assign range_o = range_q;

  // ---- the tree --------------------------------------------------------------------------------------
  logic signed [39:0] sum_q;
  logic               nan2_q, pinf2_q, ninf2_q;
  always_ff @(posedge clk_i) begin : p_tree
    logic signed [39:0] s;
    if (sum_en_i[1]) begin
      s = '0;
      for (int unsigned l = 0; l < 16; l++) s = s + 40'(term_q[l]);
      sum_q   <= s;
      nan2_q  <= nan1_q;
      pinf2_q <= pinf1_q;
      ninf2_q <= ninf1_q;
    end
  end

  // ---- the sum ---------------------------------------------------------------------------------------
  logic [50:0] kept [pnm_desc_pkg::MAX_VECTORS];
  logic [50:0] acc_q, from, next;
  always_comb begin
    from = acc_q;
    if (resume_i) from = kept[vector_i];
    if (start_i) from = '0;
    next = {from[50] || nan2_q, from[49] || pinf2_q, from[48] || ninf2_q, from[47:0] + 48'(sum_q)};
  end
  always_ff @(posedge clk_i) begin
    if (sum_en_i[2]) begin
      acc_q <= next;
      if (keep_i) kept[vector_i] <= next;
    end
  end
  assign {nan_o, pinf_o, ninf_o} = acc_q[50:48];
  assign acc_o = $signed(acc_q[47:0]);
endmodule
