// Merge and reduce engine: folds the contributions of an operation into its slot, one after the other, and
// leaves the result, divided and rounded, as payload of a frame in the result memory.
//
// PARTIALs: the online-softmax merge in fp32 with exponents in base 2 or e, payloads bf16, fp16 or fp32;
// REDUCE: sum, max, min of those and of int32. Bit for bit models/golden/nic_merge.h. A beat a cycle: 32
// values of 16 bits or 16 of 32 bits, or 8 heads of statistics; a payload that does not begin at byte 0 of a
// beat is read from one beat more. The pipeline behind the aligner never stalls; a contribution of fewer
// than 7 beats that follows another one of its slot waits until 7 cycles lie between them (busy_o names the
// slots where that would happen now). done_o pulses, and ready_o[slot] rises, 27 cycles after the last
// payload beat of a slot's last contribution left the aligner: at most payload beats + 30 cycles after the
// contribution was taken, plus what the crossbar takes from command to first beat.
// The first contribution of a slot has `first`, the last one `last`; between, heads, dim, dtype and
// operator do not change (the dispatcher's test). idle_o: nothing is under way.
module nic_merge (
    input  logic           clk_i,
    input  logic           rst_ni,
    input  logic           fold_valid_i,
    output logic           fold_ready_o,
    input  nic_pkg::fold_t fold_i,
    output logic [63:0]    busy_o,
    output logic           idle_o,
    // crossbar; every command drops one reference of its buffer
    output logic           cmd_valid_o,
    input  logic           cmd_ready_i,
    output logic [1:0]     cmd_mem_o,
    output logic [9:0]     cmd_buf_o,
    output logic [7:0]     cmd_beat_o,
    output logic [7:0]     cmd_beats_o,
    output logic           cmd_rel_o,
    input  logic           fetch_valid_i,
    output logic           fetch_ready_o,
    input  logic [511:0]   fetch_data_i,
    input  logic           fetch_last_i,
    // results
    output logic           done_valid_o,
    output logic [5:0]     done_slot_o,
    output logic [63:0]    res_ready_o,
    input  logic           res_clear_valid_i,
    input  logic [5:0]     res_clear_slot_i,
    output logic [1023:0]  res_sum_o,    // ones' complement sum of slot k's result in [16k +: 16]
    input  logic           res_rd_en_i,
    input  logic [5:0]     res_rd_slot_i,
    input  logic [7:0]     res_rd_beat_i,
    output logic [511:0]   res_rd_data_o
);
  localparam int unsigned Stages = 28;

  // ---- contributions to beats ----
  logic                  frame_valid, frame_ready, stat0, vec0, last0, fold_take;
  nic_merge_pkg::frame_t frame;
  nic_merge_pkg::beat_t  beat0;
  logic [511:0]          data1;

  assign cmd_rel_o = 1'b1;
  assign fold_take = fold_valid_i && fold_ready_o;

  nic_merge_fetch u_fetch (
      .clk_i, .rst_ni, .fold_valid_i, .fold_ready_o, .fold_i, .cmd_valid_o, .cmd_ready_i, .cmd_mem_o,
      .cmd_buf_o, .cmd_beat_o, .cmd_beats_o, .frame_valid_o(frame_valid), .frame_ready_i(frame_ready),
      .frame_o(frame)
  );
  nic_merge_walk u_walk (
      .clk_i, .rst_ni, .frame_valid_i(frame_valid), .frame_ready_o(frame_ready), .frame_i(frame),
      .valid_i(fetch_valid_i), .ready_o(fetch_ready_o), .data_i(fetch_data_i), .last_i(fetch_last_i),
      .stat_o(stat0), .vec_o(vec0), .beat_o(beat0), .data_o(data1), .take_valid_i(fold_take),
      .take_slot_i(fold_i.slot), .busy_o
  );
  assign last0 = beat0.last;

  // ---- the stages: what kind of beat each has, and whose; index 0 is the aligner's offer ----
  logic [Stages-1:1]                stat_q, vec_q, fin_q; // fin: of a slot's last contribution
  logic [Stages-1:0]                stat, fin_stat;
  logic [Stages-1:1]                fin_vec;
  logic [nic_merge_pkg::BEAT_W-1:0] beat_q[1:24];
  logic [3:0]                       ring_q;               // cycles
  logic                             unused;
  assign stat = {stat_q, stat0};
  assign fin_stat = {stat_q & fin_q, 1'b0};
  assign fin_vec = vec_q & fin_q;
  assign idle_o = !frame_valid && !cmd_valid_o && stat_q == '0 && vec_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stat_q <= '0;
      vec_q  <= '0;
      fin_q  <= '0;
      ring_q <= '0;
    end else begin
      ring_q <= ring_q + 4'd1;
      stat_q <= {stat_q[Stages-2:1], stat0};
      vec_q  <= {vec_q[Stages-2:1], vec0};
      fin_q  <= {fin_q[Stages-2:1], last0};
    end
    if (stat0 || vec0) beat_q[1] <= beat0;
    if ((stat_q | vec_q) != '0) begin
      for (int unsigned k = 1; k < 24; k++)
        if (stat_q[k] || vec_q[k]) beat_q[k+1] <= beat_q[k];
    end
  end

  /* verilator lint_off UNUSEDSIGNAL */ // a stage needs only some fields
  nic_merge_pkg::beat_t b1, b4, b8, b9, b13, b14, b15, b18, b19, b20, b21, b23, b24;
  /* verilator lint_on UNUSEDSIGNAL */
  assign b1 = beat_q[1];
  assign b4 = beat_q[4];
  assign b8 = beat_q[8];
  assign b9 = beat_q[9];
  assign b13 = beat_q[13];
  assign b14 = beat_q[14];
  assign b15 = beat_q[15];
  assign b18 = beat_q[18];
  assign b19 = beat_q[19];
  assign b20 = beat_q[20];
  assign b21 = beat_q[21];
  assign b23 = beat_q[23];
  assign b24 = beat_q[24];

  // ---- vectors wait here until their weights are known ----
  logic [511:0] wait_mem[0:15];
  logic [511:0] data15_q;
  always_ff @(posedge clk_i) begin
    if (vec_q[1]) wait_mem[ring_q] <= data1;
    if (vec_q[14]) data15_q <= wait_mem[ring_q-4'd13];
  end

  // what rests has no clock: most of the time that is most of the engine
  logic clk_stat, clk_vec, clk_weights;
  mr_clk_gate u_gate_stat (.clk_i, .en_i(!rst_ni || stat[23:0] != '0), .clk_o(clk_stat));
  mr_clk_gate u_gate_vec (.clk_i, .en_i(!rst_ni || vec_q[23:13] != '0), .clk_o(clk_vec));
  mr_clk_gate u_gate_weights (
      .clk_i, .en_i(!rst_ni || stat[19:9] != '0 || vec_q[19:14] != '0), .clk_o(clk_weights)
  );

  logic [255:0]  lse24;
  logic [1215:0] weight15, factor20;
  logic [1023:0] code24;
  nic_merge_stats u_stats (
      .clk_i(clk_stat), .clk_weights_i(clk_weights), .en_i(stat[24:0]), .fin_i(fin_stat[23:4]), .ring_i(ring_q),
      .addr0_i({beat0.slot, beat0.index[6:0]}), .data1_i(data1), .nat1_i(b1.nat), .first1_i(b1.first),
      .addr4_i({b4.slot, b4.index[6:0]}), .addr8_i({b8.slot, b8.index[6:0]}), .row9_i(b9.pos[9:3]),
      .addr14_i({b14.slot, b14.index[6:0]}), .row19_i(b19.pos[9:3]), .lse24_o(lse24),
      .vec14_i(vec_q[14] && !b14.reduce), .pos14_i(b14.pos), .weight15_o(weight15),
      .vec19_i(fin_vec[19] && !b19.reduce), .pos19_i(b19.pos), .factor20_o(factor20)
  );
  nic_merge_vec u_vec (
      .clk_i(clk_vec), .en_i(vec_q[21:13]), .fin_i(fin_vec[23:18]), .beat13_i(b13), .beat14_i(b14), .beat15_i(b15),
      .beat18_i(b18), .beat19_i(b19), .beat20_i(b20), .beat21_i(b21), .dtype23_i(b23.dtype),
      .data15_i(data15_q), .weight15_i(weight15), .factor20_i(factor20), .code24_o(code24)
  );
  nic_merge_out u_out (
      .clk_i, .rst_ni, .stat_i(fin_stat[24]), .vec_i(fin_vec[24]), .beat_i(b24), .lse_i(lse24),
      .code_i(code24), .done_o(done_valid_o), .done_slot_o, .ready_o(res_ready_o),
      .clear_i(res_clear_valid_i), .clear_slot_i(res_clear_slot_i), .sum_o(res_sum_o),
      .rd_en_i(res_rd_en_i), .rd_slot_i(res_rd_slot_i), .rd_beat_i(res_rd_beat_i),
      .rd_data_o(res_rd_data_o)
  );
  assign unused = ^{stat[27:25], fin_stat[27:25], fin_stat[3:0], fin_vec[27:25], fin_vec[17:1]};
endmodule
