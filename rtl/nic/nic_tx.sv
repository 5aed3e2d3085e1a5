// Transmitter of one port: descriptors in, frames out.
//
// nic_tx_plan takes the descriptors, asks the crossbar for payload and looks the targets up; nic_tx_head makes
// headers and checksums meanwhile; mr_align moves the payload from where it lies to byte 74; nic_tx_out puts
// both together. Six cycles from a descriptor at the head of its queue to its first beat out, a beat a cycle from then on,
// frames of two beats and more back to back. Payload comes from the crossbar (fetch) or, for TX_KV, from the
// port's KV reader (kvp: each frame begins a beat). A port that stalls holds its own queue and
// what lies in it, and nothing else. Table rows are looked up when a frame leaves the queue.
module nic_tx (
    input  logic           clk_i,
    input  logic           rst_ni,
    input  nic_pkg::node_t own_i,
    // work
    input  logic           txd_valid_i,
    output logic           txd_ready_o,
    input  nic_pkg::txd_t  txd_i,
    output logic [6:0]     txd_free_o,
    // tables: answers the cycle after
    output logic           job_en_o,
    output logic [4:0]     job_row_o,
    output logic [4:0]     job_idx_o,
    input  logic [7:0]     job_rank_i,
    output logic           node_en_o,
    output logic [7:0]     node_rank_o,
    input  nic_pkg::node_t node_i,
    // results and KV writes that a descriptor waits for
    output logic [5:0]     res_slot_o,
    input  logic [15:0]    res_sum_i,
    input  logic [63:0]    res_ready_i,
    input  logic [255:0]   kv_pending_i,
    input  logic [255:0]   kv_bad_i,
    output logic           kv_left_o,
    output logic [7:0]     kv_left_token_o,
    // KV reads
    input  logic           kvf_valid_i,
    output logic           kvf_ready_o,
    input  logic [12:0]    kvf_len_i,
    input  logic [15:0]    kvf_sum_i,
    input  logic [255:0]   kvf_hdr_i,
    input  logic           kvf_last_i,
    input  logic           kvf_skip_i,
    input  logic           kvp_valid_i,
    output logic           kvp_ready_o,
    input  logic [511:0]   kvp_data_i,
    // crossbar
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
    // frames
    output logic           valid_o,
    input  logic           ready_i,
    output logic [511:0]   data_o,
    output logic [63:0]    keep_o,
    output logic           last_o,
    // what happened
    output logic           sent_valid_o,
    output logic [13:0]    sent_bytes_o,
    output logic           sent_retrans_o,
    output logic           done_valid_o, // the last frame of a result has left
    output logic [5:0]     done_slot_o,
    output logic           busy_o
);
  logic               frame_valid, gone, align_kv, plan_busy;
  nic_tx_pkg::frame_t frame;
  logic [5:0]         align_off;
  nic_tx_plan u_plan (
      .clk_i, .rst_ni, .txd_valid_i, .txd_ready_o, .txd_i, .txd_free_o, .res_slot_o, .res_sum_i, .res_ready_i,
      .kv_pending_i, .kv_bad_i, .kv_left_o, .kv_left_token_o, .kvf_valid_i, .kvf_ready_o, .kvf_len_i, .kvf_sum_i,
      .kvf_hdr_i, .kvf_last_i, .kvf_skip_i, .cmd_valid_o, .cmd_ready_i, .cmd_mem_o, .cmd_buf_o, .cmd_beat_o,
      .cmd_beats_o, .cmd_rel_o, .job_en_o, .job_row_o, .job_idx_o, .frame_valid_o(frame_valid),
      .frame_o(frame),
      .align_kv_o(align_kv), .align_off_o(align_off), .gone_i(gone), .busy_o(plan_busy)
  );

  // what follows has no clock while nothing is queued, planned or leaving
  logic clk_busy;
  mr_clk_gate u_gate (.clk_i, .en_i(!rst_ni || busy_o), .clk_o(clk_busy));

  // ---- headers; as many as are planned ahead -------------------------------------------------------
  logic               made_valid, made_ready, head_valid, head_ready;
  nic_tx_pkg::built_t made, head;
  logic [3:0]         unused_heads, unused_aligns;
  nic_tx_head u_head (
      .clk_i(clk_busy), .rst_ni, .own_i, .valid_i(frame_valid), .frame_i(frame), .job_rank_i, .node_en_o, .node_rank_o,
      .node_i, .valid_o(made_valid), .built_o(made)
  );
  mr_fifo #(.Width(nic_tx_pkg::BUILT_W), .Depth(nic_tx_pkg::AHEAD)) u_heads (
      .clk_i(clk_busy), .rst_ni, .valid_i(made_valid), .ready_o(made_ready), .data_i(made), .valid_o(head_valid),
      .ready_i(head_ready), .data_o(head), .count_o(unused_heads)
  );

  // ---- payload -------------------------------------------------------------------------------------
  logic         align_room, want_valid, want_ready, want_kv, want_raw, kv_q;
  logic [5:0]   want_off;
  logic [13:0]  want_len;
  logic         in_valid, in_ready, pay_valid, pay_ready, pay_last, unused_busy;
  logic [511:0] pay_data;
  logic [63:0]  unused_strb;
  mr_fifo #(.Width(22), .Depth(nic_tx_pkg::AHEAD)) u_aligns (
      .clk_i(clk_busy), .rst_ni, .valid_i(frame_valid && !frame.lone), .ready_o(align_room),
      .data_i({align_kv, frame.raw, align_off, frame.len}), .valid_o(want_valid), .ready_i(want_ready),
      .data_o({want_kv, want_raw, want_off, want_len}), .count_o(unused_aligns)
  );
  // which stream the command in the aligner takes
  always_ff @(posedge clk_busy) if (want_valid && want_ready) kv_q <= want_kv;
  assign in_valid = kv_q ? kvp_valid_i : fetch_valid_i;
  assign kvp_ready_o = kv_q && in_ready;
  assign fetch_ready_o = !kv_q && in_ready;
  mr_align #(.DataWidth(512), .LenWidth(14)) u_align (
      .clk_i(clk_busy), .rst_ni, .cmd_valid_i(want_valid), .cmd_ready_o(want_ready), .cmd_src_off_i(want_off),
      .cmd_dst_off_i(want_raw ? 6'd0 : 6'd10), .cmd_len_i(want_len), .valid_i(in_valid), .ready_o(in_ready),
      .data_i(kv_q ? kvp_data_i : fetch_data_i), .valid_o(pay_valid), .ready_i(pay_ready), .data_o(pay_data),
      .strb_o(unused_strb), .last_o(pay_last), .busy_o(unused_busy)
  );

  nic_tx_out u_out (
      .clk_i(clk_busy), .rst_ni, .head_valid_i(head_valid), .head_ready_o(head_ready), .head_i(head), .pay_valid_i(pay_valid),
      .pay_ready_o(pay_ready), .pay_data_i(pay_data), .pay_last_i(pay_last), .valid_o, .ready_i, .data_o, .keep_o,
      .last_o, .gone_o(gone), .sent_o(sent_valid_o), .sent_bytes_o, .sent_retrans_o, .done_o(done_valid_o),
      .done_slot_o
  );
  assign busy_o = plan_busy || valid_o;

  // what the crossbar gives ends where the aligner's command does
  logic [7:0]  beats_q;
  logic [13:0] want_end;
  logic        unused_end;
  assign want_end = {8'd0, want_off} + want_len - 14'd1;
  assign unused_end = ^want_end[5:0];
  always_ff @(posedge clk_busy) begin
    if (want_valid && want_ready) beats_q <= want_end[13:6];
    else if (in_valid && in_ready) beats_q <= beats_q - 8'd1;
    if (rst_ni && fetch_valid_i && fetch_ready_o) fetch_ends: assert (fetch_last_i == (beats_q == 8'd0));
    if (rst_ni && made_valid) heads_room: assert (made_ready);
    if (rst_ni && frame_valid) aligns_room: assert (align_room);
  end
endmodule
