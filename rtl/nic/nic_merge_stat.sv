// One head of a beat of statistics: how its contribution and what was gathered are weighted, the new
// {m, d}, and at the last contribution the log-sum-exp and 1/d.
//
// Stages as in nic_merge_pkg; a register's number is the stage in which it holds its value. en_i[k]: a beat
// of statistics is in stage k; fin_i[k]: and it is one of its slot's last contribution. ring_i counts
// cycles. In and out: m, d and the gathered m in stage 1, the new gathered m in stage 4, the gathered d and
// the weight in stage 9, the new d in stage 14, the vector's factor in stage 19, the log-sum-exp in stage
// 24. One head a cycle.
module nic_merge_stat (
    input  logic         clk_i,
    input  logic [23:1]  en_i,
    /* verilator lint_off UNUSEDSIGNAL */ // the stages between are the same for every contribution
    input  logic [23:4]  fin_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [3:0]   ring_i,
    input  logic [31:0]  m_i,
    input  logic [31:0]  d_i,
    input  logic         nat_i,
    input  logic         first_i,  // of its slot: nothing is gathered yet
    input  logic [34:0]  state_i,  // {nan, empty, base of m, m}
    output logic [34:0]  state_o,
    input  logic [31:0]  sum_i,
    output logic [37:0]  weight_o, // {newer, pass, shift[8:0], w[26:0]}
    output logic [31:0]  sum_o,
    output logic [37:0]  factor_o, // {class[1:0], shift[8:0], r[26:0]}
    output logic [31:0]  lse_o
);
  localparam logic [26:0] One = 27'd1 << 26;
  localparam logic [26:0] Log2E = {24'hB8AA3B, 3'b0}; // float32 nearest to log2(e)

  // ---- 1..4: which one is newer, and how far apart they are ----
  logic        skip, bad, was_empty, was_nan, larger, newer;
  logic [32:0] distance;
  logic [32:0] new_q[2:4], old_q[2:4];           // {base, m}
  logic [3:0]  how_q[2:4];                       // {nan, empty (both updated), take the new, keep the old}
  assign skip = m_i[30:0] == 31'h7F80_0000 || d_i[30:0] == '0;
  assign bad = !skip && m_i[30:0] > 31'h7F80_0000;
  assign was_empty = first_i || state_i[33];
  assign was_nan = !first_i && state_i[34];
  assign newer = how_q[4][1] || (!how_q[4][0] && larger);
  assign state_o = {how_q[4][3:2], newer ? new_q[4] : old_q[4]};

  nic_merge_distance u_distance (
      .clk_i, .en_i(en_i[4:1]), .a_i(m_i), .a_nat_i(nat_i), .b_i(state_i[31:0]), .b_nat_i(state_i[32]),
      .larger_o(larger), .distance_o(distance)
  );

  // ---- 5..8: the weight 2^-distance ----
  logic [1:0]  pick_q[5:14];                     // {newer, pass: one of the two unchanged}
  logic [8:0]  shift_q[6:9];
  logic [26:0] w;
  mr_fn #(.Function(0)) u_exp2 (.clk_i, .en_i(en_i[8:5]), .x_i(distance[23:0]), .y_o(w));
  assign weight_o = {pick_q[9], shift_q[9], w};

  // ---- 9..13: the new d ----
  logic [31:0] d_ring[0:15];
  logic [31:0] d9_q, same_q[10:14];              // the unscaled operand
  logic [31:0] scaled, added;
  mr_fp32_scale u_d_scale (
      .clk_i, .en_i(en_i[10:9]), .x_i(pick_q[9][1] ? sum_i : d9_q), .w_i(w),
      .shift_i($signed({1'b0, shift_q[9]})), .y_o(scaled)
  );
  mr_fp32_add u_d_add (.clk_i, .en_i(en_i[13:11]), .a_i(scaled), .b_i(same_q[11]), .sum_o(added));
  assign sum_o = pick_q[14][0] ? same_q[14] : added;

  // ---- 14..18: 1/d and log2 d ----
  logic [1:0]  flags_ring[0:15];
  logic [1:0]  flags14_q;                        // {nan, empty}
  logic [22:0] fraction_q;
  logic signed [8:0] k_q[15:19];
  logic [1:0]  class_q[15:24];
  logic [26:0] r, log;
  mr_fn #(.Function(1)) u_recip (.clk_i, .en_i(fin_i[18:15]), .x_i({fraction_q, 1'b0}), .y_o(r));
  mr_fn #(.Function(2)) u_log2 (.clk_i, .en_i(fin_i[18:15]), .x_i({fraction_q, 1'b0}), .y_o(log));
  assign factor_o = {class_q[19], k_q[19], r};

  // ---- 19..23: the log-sum-exp ----
  logic [31:0] m_ring[0:15];
  logic [31:0] m_two, m21_q, d_log, lse;         // m in powers of two
  mr_fp32_scale u_m_scale (
      .clk_i, .en_i(fin_i[5:4]), .x_i(state_o[31:0]), .w_i(state_o[32] ? Log2E : One), .shift_i(10'sd0),
      .y_o(m_two)
  );
  nic_merge_log u_log (.clk_i, .en_i(fin_i[20:19]), .k_i(k_q[19]), .log_i(log), .y_o(d_log));
  mr_fp32_add u_lse (.clk_i, .en_i(fin_i[23:21]), .a_i(m21_q), .b_i(d_log), .sum_o(lse));
  always_comb begin
    case (class_q[24])
      nic_merge_pkg::CLASS_NORMAL: lse_o = lse;
      nic_merge_pkg::CLASS_ZERO: lse_o = 32'h7F80_0000;
      nic_merge_pkg::CLASS_NAN: lse_o = 32'h7FC0_0000;
      default: lse_o = 32'hFF80_0000;
    endcase
  end

  always_ff @(posedge clk_i) begin : p_lane
    logic [23:0] sig;
    logic signed [8:0] k;
    logic [1:0] kind;
    if (en_i != '0) begin
      if (en_i[1]) begin
        d_ring[ring_i] <= d_i;
        new_q[2] <= {nat_i, m_i};
        old_q[2] <= state_i[32:0];
        how_q[2] <= {was_nan || bad, was_empty && (skip || bad), !skip && !bad && was_empty, skip || bad};
      end
      if (en_i[2]) {new_q[3], old_q[3], how_q[3]} <= {new_q[2], old_q[2], how_q[2]};
      if (en_i[3]) {new_q[4], old_q[4], how_q[4]} <= {new_q[3], old_q[3], how_q[3]};
      if (en_i[4]) begin
        pick_q[5] <= {newer, how_q[4][1:0] != 2'b00};
        flags_ring[ring_i] <= how_q[4][3:2];
      end
      if (en_i[5]) {pick_q[6], shift_q[6]} <= {pick_q[5], distance[32:24]};
      if (en_i[6]) {pick_q[7], shift_q[7]} <= {pick_q[6], shift_q[6]};
      if (fin_i[6]) m_ring[ring_i] <= m_two;
      if (en_i[7]) {pick_q[8], shift_q[8]} <= {pick_q[7], shift_q[7]};
      if (en_i[8]) begin
        {pick_q[9], shift_q[9]} <= {pick_q[8], shift_q[8]};
        d9_q <= d_ring[ring_i-4'd7];
      end
      if (en_i[9]) {pick_q[10], same_q[10]} <= {pick_q[9], pick_q[9][1] ? d9_q : sum_i};
      if (en_i[10]) {pick_q[11], same_q[11]} <= {pick_q[10], same_q[10]};
      if (en_i[11]) {pick_q[12], same_q[12]} <= {pick_q[11], same_q[11]};
      if (en_i[12]) {pick_q[13], same_q[13]} <= {pick_q[12], same_q[12]};
      if (en_i[13]) begin
        {pick_q[14], same_q[14]} <= {pick_q[13], same_q[13]};
        flags14_q <= flags_ring[ring_i-4'd9];
      end
      if (fin_i[14]) begin
        // d = sig/2^23 * 2^k, bit 23 of sig set
        sig = {sum_o[30:23] != 8'd0, sum_o[22:0]};
        k = $signed({1'b0, sum_o[30:23]}) - 9'sd127;
        if (!sig[23]) begin
          k = -9'sd126;
          if (sig[23:8] == '0) begin sig = sig << 16; k = k - 9'sd16; end
          if (sig[23:16] == '0) begin sig = sig << 8; k = k - 9'sd8; end
          if (sig[23:20] == '0) begin sig = sig << 4; k = k - 9'sd4; end
          if (sig[23:22] == '0) begin sig = sig << 2; k = k - 9'sd2; end
          if (!sig[23]) begin sig = sig << 1; k = k - 9'sd1; end
        end
        kind = nic_merge_pkg::CLASS_NORMAL;
        if (flags14_q == 2'b01) kind = nic_merge_pkg::CLASS_EMPTY;
        else if (flags14_q[1] || sum_o[31] || sum_o[30:0] == '0 || sum_o[30:0] > 31'h7F80_0000)
          kind = nic_merge_pkg::CLASS_NAN;
        else if (sum_o[30:23] == 8'hFF) kind = nic_merge_pkg::CLASS_ZERO;
        class_q[15] <= kind;
        // the other classes multiply by one
        fraction_q <= kind == nic_merge_pkg::CLASS_NORMAL ? sig[22:0] : 23'd0;
        k_q[15] <= kind == nic_merge_pkg::CLASS_NORMAL ? k : 9'sd0;
      end
      if (fin_i[15]) {class_q[16], k_q[16]} <= {class_q[15], k_q[15]};
      if (fin_i[16]) {class_q[17], k_q[17]} <= {class_q[16], k_q[16]};
      if (fin_i[17]) {class_q[18], k_q[18]} <= {class_q[17], k_q[17]};
      if (fin_i[18]) {class_q[19], k_q[19]} <= {class_q[18], k_q[18]};
      if (fin_i[19]) class_q[20] <= class_q[19];
      if (fin_i[20]) begin
        class_q[21] <= class_q[20];
        m21_q <= m_ring[ring_i-4'd14];
      end
      if (fin_i[21]) class_q[22] <= class_q[21];
      if (fin_i[22]) class_q[23] <= class_q[22];
      if (fin_i[23]) class_q[24] <= class_q[23];
    end
  end
endmodule
