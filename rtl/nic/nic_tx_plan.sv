// Takes transmit descriptors in order, and makes of each the frames it stands for: one raw, one a target in
// ascending member order, or those of a KV read as they come.
//
// The head waits for its result (wait_res) or for its write's response (wait_kv; when the write failed the
// head leaves unsent). A frame a cycle while fewer than AHEAD frames are planned and not yet gone (gone_i).
// In the cycle in which frame_valid_o is high its payload is asked for (cmd, kept up until it is taken), the
// aligner gets its command, and the row and index of the job table are given whose rank comes the cycle after.
module nic_tx_plan (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               txd_valid_i,
    output logic               txd_ready_o,
    input  nic_pkg::txd_t      txd_i,
    output logic [6:0]         txd_free_o,
    // what a head may wait for
    output logic [5:0]         res_slot_o,
    input  logic [15:0]        res_sum_i,
    input  logic [63:0]        res_ready_i,
    input  logic [255:0]       kv_pending_i,
    input  logic [255:0]       kv_bad_i,
    output logic               kv_left_o,
    output logic [7:0]         kv_left_token_o,
    // frames of KV reads
    input  logic               kvf_valid_i,
    output logic               kvf_ready_o,
    input  logic [12:0]        kvf_len_i,
    input  logic [15:0]        kvf_sum_i,
    input  logic [255:0]       kvf_hdr_i,
    input  logic               kvf_last_i,
    input  logic               kvf_skip_i,  // no frame after all
    // fetches
    output logic               cmd_valid_o,
    input  logic               cmd_ready_i,
    output logic [1:0]         cmd_mem_o,
    output logic [9:0]         cmd_buf_o,
    output logic [7:0]         cmd_beat_o,
    output logic [7:0]         cmd_beats_o,
    output logic               cmd_rel_o,
    // the frame
    output logic               job_en_o,
    output logic [4:0]         job_row_o,
    output logic [4:0]         job_idx_o,
    output logic               frame_valid_o,
    output nic_tx_pkg::frame_t frame_o,
    output logic               align_kv_o,  // payload from the KV reader
    output logic [5:0]         align_off_o, // of the payload in its first beat
    input  logic               gone_i,
    output logic               busy_o
);
  // ---- the queue -----------------------------------------------------------------------------------
  logic            valid, pop;
  /* verilator lint_off UNUSEDSIGNAL */ // the token has gone to nic_waits
  nic_pkg::txd_t   head;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [6:0]      count;
  mr_fifo #(.Width(nic_pkg::TXD_W), .Depth(nic_pkg::TXQ)) u_queue (
      .clk_i, .rst_ni, .valid_i(txd_valid_i), .ready_o(txd_ready_o), .data_i(txd_i), .valid_o(valid),
      .ready_i(pop), .data_o(head), .count_o(count)
  );
  assign txd_free_o = 7'(nic_pkg::TXQ) - count;

  // tokens are given back as soon as their writes are done, also behind a head that stands still
  logic kv_known, kv_bad;
  nic_waits #(.Depth(nic_pkg::TXQ)) u_waits (
      .clk_i, .rst_ni, .push_i(txd_valid_i && txd_ready_o && txd_i.wait_kv), .token_i(txd_i.token),
      .pending_i(kv_pending_i), .left_valid_o(kv_left_o), .left_token_o(kv_left_token_o),
      .left_bad_i(kv_bad_i[kv_left_token_o]), .valid_o(kv_known), .bad_o(kv_bad), .pop_i(pop && head.wait_kv)
  );

  // ---- may the head go? ------------------------------------------------------------------------------
  logic       kv, raw, multi, waits, failed, room;
  logic [3:0] ahead_q;
  assign kv = head.kind == nic_pkg::TX_KV;
  assign raw = head.kind == nic_pkg::TX_RAW;
  assign multi = !kv && !raw && !head.direct && !head.host;
  assign res_slot_o = head.buf_id[5:0];
  assign waits = (head.wait_res && !res_ready_i[head.buf_id[5:0]]) || (head.wait_kv && !kv_known);
  assign failed = head.wait_kv && kv_known && kv_bad;
  assign room = ahead_q != 4'(nic_tx_pkg::AHEAD);

  // ---- targets ---------------------------------------------------------------------------------------
  logic        started_q, final_target;
  logic [31:0] left_q, left, rest;
  logic [4:0]  lowest;
  assign left = started_q ? left_q : head.members;
  assign rest = left & (left - 32'd1);
  assign final_target = !multi || rest == 32'd0;
  always_comb begin
    lowest = 5'd0;
    for (int unsigned k = 0; k < 32; k++) if (left[31-k]) lowest = 5'(31 - k);
  end
  assign job_en_o = frame_valid_o && multi;
  assign job_row_o = head.job;
  assign job_idx_o = lowest;

  // ---- the frame ---------------------------------------------------------------------------------------
  logic        fetches, may, skip, ends;
  logic [13:0] end_byte;
  assign fetches = raw || (!kv && !head.inl && head.len != 14'd0);
  assign may = valid && !waits && !failed && room && (!kv || (kvf_valid_i && !kvf_skip_i));
  assign skip = valid && !waits && kv && kvf_valid_i && kvf_skip_i;
  assign cmd_valid_o = may && fetches;
  assign frame_valid_o = may && (!fetches || cmd_ready_i);
  assign ends = frame_valid_o && final_target;
  assign pop = valid && !waits && (failed || (kv ? (frame_valid_o || skip) && kvf_last_i : ends));
  assign kvf_ready_o = skip || (frame_valid_o && kv);

  assign end_byte = {8'd0, align_off_o} + head.len - 14'd1;
  assign cmd_mem_o = head.mem;
  assign cmd_buf_o = head.buf_id;
  assign cmd_beat_o = raw ? 8'd0 : {1'b0, head.off[12:6]};
  assign cmd_beats_o = end_byte[13:6] + 8'd1;
  assign cmd_rel_o = head.rel && final_target;
  assign align_kv_o = kv;
  assign align_off_o = kv || raw ? 6'd0 : head.off[5:0];

  always_comb begin
    frame_o = '0;
    if (may) begin
      frame_o.raw = raw;
      frame_o.lone = !fetches && (!kv || kvf_len_i == 13'd0);
      frame_o.done = head.mem == nic_pkg::MEM_RESULT && !kv && final_target;
      frame_o.slot = head.buf_id[5:0];
      frame_o.retrans = head.retrans;
      frame_o.host = head.host;
      frame_o.direct = head.direct || kv;
      frame_o.rank = head.rank;
      frame_o.len = kv ? {1'b0, kvf_len_i} : head.len;
      frame_o.sum = kv ? kvf_sum_i : head.wait_res ? res_sum_i : head.sum;
      frame_o.hdr = kv ? kvf_hdr_i : head.hdr;
      if (head.retrans) frame_o.hdr[nic_frame_pkg::H_FLAGS_HI-7+nic_frame_pkg::FL_RETRANSMISSION] = 1'b1;
      frame_o.pay = 64'd0;
      if (head.inl && !kv) frame_o.pay = head.len >= 14'd8 ? head.pay64 : head.pay64 & ~({64{1'b1}} >> {head.len[2:0], 3'd0});
    end
  end

  always_ff @(posedge clk_i) begin
    if (frame_valid_o) left_q <= rest;
    if (!rst_ni) begin
      started_q <= 1'b0;
      ahead_q <= 4'd0;
    end else begin
      if (frame_valid_o && multi) started_q <= !final_target;
      ahead_q <= ahead_q + {3'd0, frame_valid_o} - {3'd0, gone_i};
    end
  end
  logic unused_bits;
  assign unused_bits = ^end_byte[5:0];
  assign busy_o = valid || ahead_q != 4'd0;

  always_ff @(posedge clk_i) begin
    if (rst_ni && valid) begin
      rel_reads: assert (!head.rel || (fetches && !head.wait_kv));
      targets: assert (!multi || left != 32'd0);
      raw_whole: assert (!raw || head.len >= 14'd1);
      inline_short: assert (!head.inl || head.len <= 14'd8);
    end
  end
endmodule
