// The statistics of the merge engine: eight heads a beat, what every slot has gathered of {m, d}, and the
// weights and factors that the vectors are multiplied by.
//
// beat1_i and beat_i are those of a statistics beat in stages 1 (with its bytes) and 0, 4, 8, 9, 14, 19 (see
// the port names); en_i[k] as in nic_merge_stat. weight_o: the heads from pos14_i on in the cycle after
// stage 14 of a vector beat; factor_o: those from pos19_i on in the cycle after its stage 19.
module nic_merge_stats (
    input  logic           clk_i,         // need not run when no beat of statistics is in stages 0..23
    input  logic           clk_weights_i, // the same clock; also runs for vector beats in stages 14..19
    input  logic [24:0]    en_i,       // statistics beat in stage k
    input  logic [23:4]    fin_i,
    input  logic [3:0]     ring_i,
    input  logic [12:0]    addr0_i,    // {slot, row} of the beat in stage 0
    input  logic [511:0]   data1_i,
    input  logic           nat1_i,
    input  logic           first1_i,
    input  logic [12:0]    addr4_i,
    input  logic [12:0]    addr8_i,
    input  logic [6:0]     row9_i,     // of the weights' ring
    input  logic [12:0]    addr14_i,
    input  logic [6:0]     row19_i,
    output logic [255:0]   lse24_o,
    input  logic           vec14_i,    // vector beat in stage 14, and its first head
    input  logic [9:0]     pos14_i,
    output logic [1215:0]  weight15_o,
    input  logic           vec19_i,
    input  logic [9:0]     pos19_i,
    output logic [1215:0]  factor20_o
);
  logic [279:0] m_mem[0:8191]; // {slot, row of 8 heads}
  logic [255:0] d_mem[0:8191];
  logic [279:0] m1_q, m4;
  logic [255:0] d9_q, d14;
  logic [303:0] weight9, factor19;
  logic         unused;
  assign unused = ^{en_i[24], en_i[0]};

  always_ff @(posedge clk_i) begin
    if (en_i[0]) m1_q <= m_mem[addr0_i];
    if (en_i[4]) m_mem[addr4_i] <= m4;
    if (en_i[8]) d9_q <= d_mem[addr8_i];
    if (en_i[14]) d_mem[addr14_i] <= d14;
  end

  for (genvar h = 0; h < 8; h++) begin : g_head
    logic [31:0] m, d;
    assign m = {data1_i[64*h+:8], data1_i[64*h+8+:8], data1_i[64*h+16+:8], data1_i[64*h+24+:8]};
    assign d = {data1_i[64*h+32+:8], data1_i[64*h+40+:8], data1_i[64*h+48+:8], data1_i[64*h+56+:8]};
    nic_merge_stat u_stat (
        .clk_i, .en_i(en_i[23:1]), .fin_i, .ring_i, .m_i(m), .d_i(d), .nat_i(nat1_i), .first_i(first1_i),
        .state_i(m1_q[35*h+:35]), .state_o(m4[35*h+:35]), .sum_i(d9_q[32*h+:32]),
        .weight_o(weight9[38*h+:38]), .sum_o(d14[32*h+:32]), .factor_o(factor19[38*h+:38]),
        .lse_o(lse24_o[32*h+:32])
    );
  end

  nic_merge_weights #(.Width(nic_merge_pkg::WEIGHT_W)) u_weights (
      .clk_i(clk_weights_i), .wr_en_i(en_i[9]), .wr_row_i(row9_i), .wr_data_i(weight9), .rd_en_i(vec14_i),
      .rd_pos_i(pos14_i), .data_o(weight15_o)
  );
  nic_merge_weights #(.Width(nic_merge_pkg::FACTOR_W)) u_factors (
      .clk_i(clk_weights_i), .wr_en_i(en_i[19] && fin_i[19]), .wr_row_i(row19_i), .wr_data_i(factor19), .rd_en_i(vec19_i),
      .rd_pos_i(pos19_i), .data_o(factor20_o)
  );
endmodule
