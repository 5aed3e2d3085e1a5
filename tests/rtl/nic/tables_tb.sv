// The command block and the tables that its descriptors change, the counters and the queue of events.
module tables_tb (
    input  logic           clk_i,
    input  logic           rst_ni,
    // commands
    input  logic           ap_start_i,
    output logic           ap_ready_o,
    output logic           ap_done_o,
    output logic           ap_idle_o,
    input  logic           mode_memory_i,
    input  logic [31:0]    count_i,
    input  logic [63:0]    addr_i,
    input  logic [511:0]   desc_i,
    output logic [7:0]     error_o,
    output logic [31:0]    error_index_o,
    input  logic           grant_i, // the dispatcher's: between two frames
    output logic           upd_fire_o,
    output logic [511:0]   upd_desc_o,
    output logic [63:0]    araddr_o,
    output logic [7:0]     arlen_o,
    output logic           arvalid_o,
    input  logic           arready_i,
    input  logic [511:0]   rdata_i,
    input  logic [1:0]     rresp_i,
    input  logic           rlast_i,
    input  logic           rvalid_i,
    output logic           rready_o,
    output logic [7:0]     opt_rank_o,
    output logic           opt_chain_o,
    output logic [31:0]    opt_rto_o,
    output logic [31:0]    opt_slot_timeout_o,
    output logic [63:0]    opt_kv_base_o,
    // nodes: node_t is {valid, mac48, ip32, port16, netport}
    output logic [97:0]    own_o,
    input  logic [31:0]    rd_rank_i,
    output logic [4*98-1:0] rd_node_o,
    input  logic           mac_en_i,
    input  logic [47:0]    mac_i,
    output logic           mac_hit_o,
    output logic           mac_netport_o,
    output logic [7:0]     mac_rank_o,
    // jobs: job_t is {valid, job16, count6, ranks256, root5, self, self_idx5, port1_32}
    input  logic           lk_en_i,
    input  logic [15:0]    lk_job_i,
    input  logic [7:0]     lk_shard_i,
    output logic           lk_hit_o,
    output logic [4:0]     lk_row_o,
    output logic [321:0]   lk_job_o,
    output logic           lk_member_o,
    output logic [4:0]     lk_index_o,
    input  logic [14:0]    tx_row_i,
    input  logic [14:0]    tx_index_i,
    output logic [23:0]    tx_rank_o,
    // pages
    input  logic           chk_valid_i,
    output logic           chk_ready_o,
    input  logic [23:0]    chk_page_i,
    input  logic [20:0]    chk_count_i,
    output logic           chk_done_o,
    output logic           chk_ok_o,
    input  logic           set_valid_i,
    output logic           set_ready_o,
    input  logic [23:0]    set_page_i,
    input  logic           bad_valid_i,
    input  logic [23:0]    bad_page_i,
    // directory
    input  logic           dir_valid_i,
    output logic           dir_ready_o,
    input  logic [63:0]    dir_key_i,
    output logic           dir_rsp_o,
    output logic [125:0]   dir_o,
    // counters
    input  logic [15:0]    inc_valid_i,
    input  logic [95:0]    inc_index_i,
    input  logic [255:0]   inc_amount_i,
    input  logic [5:0]     sel_i,
    input  logic           take_i,
    output logic [63:0]    value_o,
    // events
    input  logic           ev_valid_i,
    input  logic [511:0]   ev_i,
    output logic           ev_count_o,
    output logic           ev_lost_o,
    output logic           m_valid_o,
    input  logic           m_ready_i,
    output logic [511:0]   m_data_o
);
  logic upd_valid, upd_ready, dir_ready, valid_ready;
  assign upd_ready  = grant_i && dir_ready && valid_ready;
  assign upd_fire_o = upd_valid && upd_ready;

  nic_cmd #(.DirSlotBits(10), .PageBits(16)) u_cmd (
    .clk_i, .rst_ni, .ap_start_i, .ap_ready_o, .ap_done_o, .ap_idle_o, .mode_memory_i, .count_i, .addr_i, .desc_i,
    .error_o, .error_index_o, .upd_valid_o(upd_valid), .upd_ready_i(upd_ready), .upd_desc_o, .araddr_o, .arlen_o,
    .arvalid_o, .arready_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_o, .opt_rank_o, .opt_chain_o, .opt_rto_o,
    .opt_slot_timeout_o, .opt_kv_base_o
  );
  nic_nodes u_nodes (
    .clk_i, .rst_ni, .upd_fire_i(upd_fire_o), .upd_desc_i(upd_desc_o), .own_rank_i(opt_rank_o), .own_o, .rd_rank_i,
    .rd_node_o, .mac_en_i, .mac_i, .mac_hit_o, .mac_netport_o, .mac_rank_o
  );
  nic_jobs u_jobs (
    .clk_i, .rst_ni, .upd_fire_i(upd_fire_o), .upd_desc_i(upd_desc_o), .own_rank_i(opt_rank_o), .lk_en_i, .lk_job_i,
    .lk_shard_i, .lk_hit_o, .lk_row_o, .lk_job_o, .lk_member_o, .lk_index_o, .tx_row_i,
    .tx_index_i, .tx_rank_o
  );
  nic_valid #(.PageBits(16)) u_valid (
    .clk_i, .rst_ni, .upd_fire_i(upd_fire_o), .upd_ready_o(valid_ready), .upd_desc_i(upd_desc_o), .chk_valid_i,
    .chk_ready_o, .chk_page_i, .chk_count_i, .chk_done_o, .chk_ok_o, .set_valid_i, .set_ready_o, .set_page_i,
    .bad_valid_i, .bad_page_i
  );
  nic_dir #(.BucketBits(8)) u_dir (
    .clk_i, .rst_ni, .upd_fire_i(upd_fire_o), .upd_ready_o(dir_ready), .upd_desc_i(upd_desc_o),
    .lk_valid_i(dir_valid_i), .lk_ready_o(dir_ready_o), .lk_key_i(dir_key_i), .rsp_valid_o(dir_rsp_o), .rsp_o(dir_o)
  );
  nic_counters u_counters (
    .clk_i, .rst_ni, .inc_valid_i, .inc_index_i, .inc_amount_i, .sel_i, .take_i, .value_o
  );
  nic_events u_events (
    .clk_i, .rst_ni, .ev_valid_i, .ev_i, .count_o(ev_count_o), .lost_o(ev_lost_o), .m_valid_o, .m_ready_i, .m_data_o
  );
endmodule
