// One port of the NIC: what comes in goes to this port's frame memory, what is to leave comes from any.
//
//   in -> nic_guard -> nic_rx -> meta_o           nic_kvrd -> nic_tx -> out
//                        \-> nic_buf <- crossbar           \-> crossbar
//
// A network port (Src 0, 1) never holds its input up. The host's (Src 2) takes no new frame while few of
// its buffers are free, which only frames of the host itself can cause.
module nic_port #(
    parameter logic [1:0]  Src  = nic_pkg::SRC_NET0,
    parameter int unsigned Bufs = nic_pkg::NET_BUFS
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  nic_pkg::node_t  own_i,
    input  logic            chain_i,
    // stream in, stream out
    input  logic            in_valid_i,
    output logic            in_ready_o,
    input  logic [511:0]    in_data_i,
    input  logic [63:0]     in_keep_i,
    input  logic            in_last_i,
    output logic            out_valid_o,
    input  logic            out_ready_i,
    output logic [511:0]    out_data_o,
    output logic [63:0]     out_keep_o,
    output logic            out_last_o,
    // received frames, and those that end in the receiver
    output logic            meta_valid_o,
    input  logic            meta_ready_i,
    output nic_pkg::meta_t  meta_o,
    output logic            fate_valid_o,
    output logic [5:0]      fate_o,
    output logic [15:0]     fate_bytes_o,
    output logic            hole_o,
    // the frame memory
    input  logic            ref_valid_i,
    input  logic [9:0]      ref_buf_i,
    input  logic [3:0]      ref_count_i,
    input  logic            rd_en_i,
    input  logic [9:0]      rd_buf_i,
    input  logic [7:0]      rd_beat_i,
    output logic [511:0]    rd_data_o,
    input  logic            rel_valid_i,
    input  logic [9:0]      rel_buf_i,
    // transmission
    input  logic            txd_valid_i,
    input  nic_pkg::txd_t   txd_i,
    output logic            txd_room_o,   // at least four more
    output logic [4:0]      job_row_o,
    output logic [4:0]      job_index_o,
    input  logic [7:0]      job_rank_i,
    output logic [7:0]      node_rank_o,
    input  nic_pkg::node_t  node_i,
    output logic [5:0]      res_slot_o,
    input  logic [15:0]     res_sum_i,
    input  logic [63:0]     res_ready_i,
    output logic            left_valid_o, // a result has left
    output logic [5:0]      left_slot_o,
    output logic            sent_valid_o,
    output logic [13:0]     sent_bytes_o,
    // fetches of the transmitter
    output logic            cmd_valid_o,
    input  logic            cmd_ready_i,
    output logic [1:0]      cmd_mem_o,
    output logic [9:0]      cmd_buf_o,
    output logic [7:0]      cmd_beat_o,
    output logic [7:0]      cmd_beats_o,
    output logic            cmd_rel_o,
    input  logic            fetch_valid_i,
    output logic            fetch_ready_o,
    input  logic [511:0]    fetch_data_i,
    input  logic            fetch_last_i,
    // KV reads, and what waits for writes
    input  logic            kvr_valid_i,
    output logic            kvr_ready_o,
    input  nic_pkg::kvr_t   kvr_i,
    input  logic [255:0]    kv_pending_i,
    input  logic [255:0]    kv_bad_i,
    input  logic            write_bad_i,
    output logic [1:0]      token_left_o, // 0 the transmitter's, 1 the reader's
    output logic [15:0]     token_o,
    output logic            read_bad_o,   // memory answered with an error
    output logic [63:0]     araddr_o,
    output logic [7:0]      arlen_o,
    output logic            arvalid_o,
    input  logic            arready_i,
    input  logic [511:0]    rdata_i,
    input  logic [1:0]      rresp_i,
    input  logic            rlast_i,
    input  logic            rvalid_i,
    output logic            rready_o,
    output logic            idle_o
);
  // ---- in -----------------------------------------------------------------------------------------
  logic         g_valid, g_last, g_bad, hold, few_q;
  logic [511:0] g_data;
  logic [6:0]   g_bytes;
  logic         alloc_valid, alloc_take, wr_en, drop_valid, rx_busy, tx_busy, rd_busy;
  logic [9:0]   alloc_id, wr_buf, drop_buf;
  logic [7:0]   wr_beat;
  logic [511:0] wr_data;
  logic [10:0]  bufs_free;
  logic [17:0]  fate_bytes;

  localparam int unsigned Few = 16; // frames on their way through the receiver
  always_ff @(posedge clk_i) few_q <= Src == nic_pkg::SRC_HOST && bufs_free < 11'(Few);
  assign hold = few_q;
  nic_guard u_guard (
      .clk_i, .rst_ni, .hold_i(hold), .valid_i(in_valid_i), .ready_o(in_ready_o), .data_i(in_data_i),
      .keep_i(in_keep_i), .last_i(in_last_i), .valid_o(g_valid), .data_o(g_data), .bytes_o(g_bytes),
      .last_o(g_last), .bad_o(g_bad), .hole_o
  );
  nic_rx #(.Src(Src)) u_rx (
      .clk_i, .rst_ni, .own_i, .chain_i, .valid_i(g_valid), .data_i(g_data), .bytes_i(g_bytes), .last_i(g_last),
      .bad_i(g_bad), .alloc_valid_i(alloc_valid), .alloc_id_i(alloc_id), .alloc_take_o(alloc_take),
      .wr_en_o(wr_en), .wr_buf_o(wr_buf), .wr_beat_o(wr_beat), .wr_data_o(wr_data), .drop_valid_o(drop_valid),
      .drop_buf_o(drop_buf), .meta_valid_o, .meta_ready_i, .meta_o, .fate_valid_o, .fate_o,
      .fate_bytes_o(fate_bytes), .busy_o(rx_busy)
  );
  assign fate_bytes_o = fate_bytes[17:16] != '0 ? 16'hFFFF : fate_bytes[15:0];
  nic_buf #(.Bufs(Bufs)) u_buf (
      .clk_i, .rst_ni, .alloc_valid_o(alloc_valid), .alloc_id_o(alloc_id), .alloc_take_i(alloc_take),
      .wr_en_i(wr_en), .wr_buf_i(wr_buf), .wr_beat_i(wr_beat), .wr_data_i(wr_data), .drop_valid_i(drop_valid),
      .drop_buf_i(drop_buf), .ref_valid_i, .ref_buf_i, .ref_count_i, .rd_en_i, .rd_buf_i, .rd_beat_i, .rd_data_o,
      .rel_valid_i, .rel_buf_i, .free_o(bufs_free)
  );

  // ---- out ----------------------------------------------------------------------------------------
  logic         kvf_valid, kvf_ready, kvf_last, kvf_skip, kvp_valid, kvp_ready, txd_ready;
  logic [12:0]  kvf_len;
  logic [15:0]  kvf_sum;
  logic [255:0] kvf_hdr;
  logic [511:0] kvp_data;
  logic [6:0]   txd_free;
  nic_tx u_tx (
      .clk_i, .rst_ni, .own_i, .txd_valid_i, .txd_ready_o(txd_ready), .txd_i, .txd_free_o(txd_free),
      .job_en_o(unused_en[0]), .job_row_o, .job_idx_o(job_index_o), .job_rank_i, .node_en_o(unused_en[1]),
      .node_rank_o, .node_i,
      .res_slot_o, .res_sum_i, .res_ready_i, .kv_pending_i, .kv_bad_i, .kv_left_o(token_left_o[0]),
      .kv_left_token_o(token_o[7:0]), .kvf_valid_i(kvf_valid), .kvf_ready_o(kvf_ready), .kvf_len_i(kvf_len),
      .kvf_sum_i(kvf_sum), .kvf_hdr_i(kvf_hdr), .kvf_last_i(kvf_last), .kvf_skip_i(kvf_skip),
      .kvp_valid_i(kvp_valid), .kvp_ready_o(kvp_ready), .kvp_data_i(kvp_data), .cmd_valid_o, .cmd_ready_i,
      .cmd_mem_o, .cmd_buf_o, .cmd_beat_o, .cmd_beats_o, .cmd_rel_o, .fetch_valid_i, .fetch_ready_o,
      .fetch_data_i, .fetch_last_i, .valid_o(out_valid_o), .ready_i(out_ready_i), .data_o(out_data_o),
      .keep_o(out_keep_o), .last_o(out_last_o), .sent_valid_o, .sent_bytes_o, .sent_retrans_o(unused_retrans),
      .done_valid_o(left_valid_o), .done_slot_o(left_slot_o), .busy_o(tx_busy)
  );
  nic_kvrd u_kvrd (
      .clk_i, .rst_ni, .kvr_valid_i, .kvr_ready_o, .kvr_i, .kv_pending_i, .write_bad_i,
      .left_valid_o(token_left_o[1]), .left_token_o(token_o[15:8]), .frame_valid_o(kvf_valid),
      .frame_ready_i(kvf_ready), .frame_len_o(kvf_len), .frame_sum_o(kvf_sum), .frame_hdr_o(kvf_hdr),
      .frame_last_o(kvf_last), .frame_skip_o(kvf_skip), .data_valid_o(kvp_valid), .data_ready_i(kvp_ready),
      .data_o(kvp_data), .data_last_o(unused_kvp_last), .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rdata_i,
      .rresp_i, .rlast_i, .rvalid_i, .rready_o, .read_bad_o, .busy_o(rd_busy)
  );
  logic unused_retrans, unused_kvp_last;
  logic [1:0] unused_en;
  assign txd_room_o = txd_free >= 7'd4;
  assign idle_o = !rx_busy && !tx_busy && !rd_busy && !meta_valid_o;

  // Dispatch looks for room before it pushes.
  always_ff @(posedge clk_i) if (rst_ni && txd_valid_i) assert (txd_ready);
endmodule
