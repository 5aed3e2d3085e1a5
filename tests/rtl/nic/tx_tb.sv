// A transmitter as reader 0 of the crossbar, with the memories of buf_tb; readers 1 and 2 are the bench's, to
// compete for the same memories. The bench plays dispatch, tables, merge engine and KV reader.
module tx_tb (
    input  logic          clk_i,
    input  logic          rst_ni,
    // memories
    output logic [2:0]    alloc_valid_o,
    output logic [29:0]   alloc_id_o,
    input  logic [2:0]    alloc_take_i,
    input  logic          wr_en_i,
    input  logic [1:0]    wr_mem_i,
    input  logic [9:0]    wr_buf_i,
    input  logic [7:0]    wr_beat_i,
    input  logic [511:0]  wr_data_i,
    input  logic [2:0]    ref_valid_i,
    input  logic [29:0]   ref_buf_i,
    input  logic [11:0]   ref_count_i,
    output logic [32:0]   free_o,
    // descriptors, field by field
    input  logic          txd_valid_i,
    output logic          txd_ready_o,
    output logic [6:0]    txd_free_o,
    input  logic [1:0]    kind_i,
    input  logic [1:0]    mem_i,
    input  logic [9:0]    buf_i,
    input  logic [12:0]   off_i,
    input  logic [13:0]   len_i,
    input  logic          inl_i,
    input  logic [63:0]   pay64_i,
    input  logic [15:0]   sum_i,
    input  logic [255:0]  hdr_i,
    input  logic          direct_i,
    input  logic [7:0]    rank_i,
    input  logic [4:0]    job_i,
    input  logic [31:0]   members_i,
    input  logic          host_i,
    input  logic          wait_res_i,
    input  logic          wait_kv_i,
    input  logic [7:0]    token_i,
    input  logic          rel_i,
    input  logic          retrans_i,
    // tables
    input  logic          own_valid_i,
    input  logic [47:0]   own_mac_i,
    input  logic [31:0]   own_ip_i,
    input  logic [15:0]   own_port_i,
    output logic          job_en_o,
    output logic [4:0]    job_row_o,
    output logic [4:0]    job_idx_o,
    input  logic [7:0]    job_rank_i,
    output logic          node_en_o,
    output logic [7:0]    node_rank_o,
    input  logic          node_valid_i,
    input  logic [47:0]   node_mac_i,
    input  logic [31:0]   node_ip_i,
    input  logic [15:0]   node_port_i,
    // waits
    output logic [5:0]    res_slot_o,
    input  logic [15:0]   res_sum_i,
    input  logic [63:0]   res_ready_i,
    input  logic [255:0]  kv_pending_i,
    input  logic [255:0]  kv_bad_i,
    output logic          kv_left_o,
    output logic [7:0]    kv_left_token_o,
    // KV reader
    input  logic          kvf_valid_i,
    output logic          kvf_ready_o,
    input  logic [12:0]   kvf_len_i,
    input  logic [15:0]   kvf_sum_i,
    input  logic [255:0]  kvf_hdr_i,
    input  logic          kvf_last_i,
    input  logic          kvf_skip_i,
    input  logic          kvp_valid_i,
    output logic          kvp_ready_o,
    input  logic [511:0]  kvp_data_i,
    // frames
    output logic          valid_o,
    input  logic          ready_i,
    output logic [511:0]  data_o,
    output logic [63:0]   keep_o,
    output logic          last_o,
    output logic          sent_valid_o,
    output logic [13:0]   sent_bytes_o,
    output logic          sent_retrans_o,
    output logic          done_valid_o,
    output logic [5:0]    done_slot_o,
    output logic          busy_o,
    // a competing reader that reads the first beat of buffer 0 of memory 0 for ever
    input  logic          rival_i
);
  logic [4:0]    cmd_valid, cmd_ready, cmd_rel, valid, ready, last;
  logic [9:0]    cmd_mem;
  logic [49:0]   cmd_buf;
  logic [39:0]   cmd_beat, cmd_beats;
  logic [2559:0] data;
  assign cmd_valid[4:1] = {3'b000, rival_i};
  assign {cmd_mem[9:2], cmd_buf[49:10], cmd_beat[39:8], cmd_rel[4:1]} = '0;
  assign cmd_beats[39:8] = {4{8'd1}};
  assign ready[4:1] = '1;
  buf_tb u_memories (
      .clk_i, .rst_ni, .alloc_valid_o, .alloc_id_o, .alloc_take_i, .wr_en_i, .wr_mem_i, .wr_buf_i, .wr_beat_i,
      .wr_data_i, .drop_valid_i(3'b000), .drop_buf_i(30'd0), .ref_valid_i, .ref_buf_i, .ref_count_i, .free_o,
      .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_mem_i(cmd_mem), .cmd_buf_i(cmd_buf),
      .cmd_beat_i(cmd_beat), .cmd_beats_i(cmd_beats), .cmd_rel_i(cmd_rel), .valid_o(valid), .ready_i(ready),
      .data_o(data), .last_o(last)
  );
  nic_pkg::txd_t  txd;
  nic_pkg::node_t own, node;
  assign txd = {kind_i, mem_i, buf_i, off_i, len_i, inl_i, pay64_i, sum_i, hdr_i, direct_i, rank_i, job_i, members_i,
                host_i, wait_res_i, wait_kv_i, token_i, rel_i, retrans_i};
  assign own = {own_valid_i, own_mac_i, own_ip_i, own_port_i, 1'b0};
  assign node = {node_valid_i, node_mac_i, node_ip_i, node_port_i, 1'b1};
  nic_tx u_tx (
      .clk_i, .rst_ni, .own_i(own), .txd_valid_i, .txd_ready_o, .txd_i(txd), .txd_free_o, .job_en_o, .job_row_o,
      .job_idx_o, .job_rank_i, .node_en_o, .node_rank_o, .node_i(node), .res_slot_o, .res_sum_i, .res_ready_i,
      .kv_pending_i, .kv_bad_i, .kv_left_o, .kv_left_token_o, .kvf_valid_i, .kvf_ready_o, .kvf_len_i, .kvf_sum_i,
      .kvf_hdr_i, .kvf_last_i, .kvf_skip_i, .kvp_valid_i, .kvp_ready_o, .kvp_data_i, .cmd_valid_o(cmd_valid[0]),
      .cmd_ready_i(cmd_ready[0]), .cmd_mem_o(cmd_mem[1:0]), .cmd_buf_o(cmd_buf[9:0]), .cmd_beat_o(cmd_beat[7:0]),
      .cmd_beats_o(cmd_beats[7:0]), .cmd_rel_o(cmd_rel[0]), .fetch_valid_i(valid[0]), .fetch_ready_o(ready[0]),
      .fetch_data_i(data[511:0]), .fetch_last_i(last[0]), .valid_o, .ready_i, .data_o, .keep_o, .last_o,
      .sent_valid_o, .sent_bytes_o, .sent_retrans_o, .done_valid_o, .done_slot_o, .busy_o
  );
  logic unused_rivals;
  assign unused_rivals = ^{cmd_ready[4:1], valid[4:1], last[4:1], data[2559:512]};
endmodule
