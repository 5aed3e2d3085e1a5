// The compute-NIC: two network ports and the host's, one dispatcher, a merge engine, KV memory.
//
//   net 0 -> nic_port -- frames -- nic_xbar -- nic_port -> net 0     each nic_port has its own frame memory
//   net 1 -> nic_port -- frames ----/ | \----- nic_port -> net 1
//   host  -> nic_port -- frames ----/ | \----- nic_port -> host
//               | metas        nic_merge, nic_kvwr
//          nic_dispatch <- nic_jobs nic_nodes nic_dir nic_late nic_valid;  -> nic_folds -> nic_merge
//
// A frame is written to its port's memory once, as it came, and stays there until everyone who needs it
// has read it. Registers are nic_regs, tables are written by descriptors (nic_cmd); frames are dealt with
// from reset on. Shared resources and why none of them can lock up:
//  * frame memories: a read port each, beat by beat in turn; a consumer that stalls has no beat outstanding.
//  * buffers: PARK contributions, the transmit queues and the KV writes together are fewer than NET_BUFS,
//    so a port that is never served and a host that never drains leave room to receive; folds are always
//    served, because the merge engine waits for nobody.
//  * slots: see nic_slots; dispatch: see nic_dispatch.
//  * transmit queues: their heads wait for the merge engine, for a write's response or for KV data, none
//    of which waits for a transmit queue of another port.
//  * memory port: writers have all their data before they ask, readers room for what they ask.
module nic_top #(
    parameter int unsigned NetBufs    = nic_pkg::NET_BUFS,
    parameter int unsigned HostBufs   = nic_pkg::HOST_BUFS,
    parameter int unsigned BucketBits = 17,
    parameter int unsigned PageBits   = 20
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    // commands
    input  logic         ap_start_i,
    output logic         ap_ready_o,
    output logic         ap_done_o,
    output logic         ap_idle_o,
    input  logic         mode_memory_i,
    input  logic [31:0]  count_i,
    input  logic [63:0]  addr_i,
    input  logic [511:0] desc_i,
    output logic [7:0]   error_o,
    output logic [31:0]  error_index_o,
    // options in force
    output logic [7:0]   rank_o,
    output logic         chain_o,
    output logic         present_o,
    output logic [31:0]  rto_o,
    output logic [31:0]  slot_timeout_o,
    output logic [63:0]  kv_base_o,
    output logic         idle_o,
    // counters
    output logic [63:0]  cycles_o,
    output logic [63:0]  busy_o,
    output logic [63:0]  stall_in_o,
    output logic [63:0]  stall_out_o,
    output logic [63:0]  items_in_o,
    output logic [63:0]  items_out_o,
    output logic [31:0]  write_errors_o,
    output logic [31:0]  read_errors_o,
    input  logic [5:0]   counter_sel_i,
    input  logic         counter_take_i,
    output logic [63:0]  counter_o,
    // streams, port k (network 0, network 1, host) in slice k
    input  logic [2:0]   in_valid_i,
    output logic [2:0]   in_ready_o,
    input  logic [3*512-1:0] in_data_i,
    input  logic [3*64-1:0]  in_keep_i,
    input  logic [2:0]   in_last_i,
    output logic [2:0]   out_valid_o,
    input  logic [2:0]   out_ready_i,
    output logic [3*512-1:0] out_data_o,
    output logic [3*64-1:0]  out_keep_o,
    output logic [2:0]   out_last_o,
    output logic         event_valid_o,
    input  logic         event_ready_i,
    output logic [511:0] event_data_o,
    // AXI4, 512 bits, INCR bursts of full width
    output logic [63:0]  awaddr_o,
    output logic [7:0]   awlen_o,
    output logic         awvalid_o,
    input  logic         awready_i,
    output logic [511:0] wdata_o,
    output logic [63:0]  wstrb_o,
    output logic         wlast_o,
    output logic         wvalid_o,
    input  logic         wready_i,
    input  logic [1:0]   bresp_i,
    input  logic         bvalid_i,
    output logic         bready_o,
    output logic [3:0]   arid_o,
    output logic [63:0]  araddr_o,
    output logic [7:0]   arlen_o,
    output logic         arvalid_o,
    input  logic         arready_i,
    input  logic [3:0]   rid_i,
    input  logic [511:0] rdata_i,
    input  logic [1:0]   rresp_i,
    input  logic         rlast_i,
    input  logic         rvalid_i,
    output logic         rready_o
);
  localparam int unsigned MW = nic_pkg::META_W;
  localparam int unsigned TW = nic_pkg::TXD_W;
  localparam int unsigned NW = nic_pkg::NODE_W;

  // ---- commands and options --------------------------------------------------------------------------
  logic         upd_valid, upd_ready, upd_fire, upd_grant, dir_upd_ready, valid_upd_ready, drop_valid;
  logic [511:0] upd_desc;
  logic [3:0]   ar_valid, ar_ready, r_valid, r_ready;
  logic [255:0] ar_addr;
  logic [31:0]  ar_len;
  logic [511:0] r_data;
  logic [1:0]   r_resp;
  logic         r_last;
  nic_cmd #(.DirSlotBits(BucketBits + 2), .PageBits(PageBits)) u_cmd (
      .clk_i, .rst_ni, .ap_start_i, .ap_ready_o, .ap_done_o, .ap_idle_o, .mode_memory_i, .count_i, .addr_i, .desc_i,
      .error_o, .error_index_o, .upd_valid_o(upd_valid), .upd_ready_i(upd_ready), .upd_desc_o(upd_desc),
      .araddr_o(ar_addr[255:192]), .arlen_o(ar_len[31:24]), .arvalid_o(ar_valid[3]), .arready_i(ar_ready[3]),
      .rdata_i(r_data), .rresp_i(r_resp), .rlast_i(r_last), .rvalid_i(r_valid[3]), .rready_o(r_ready[3]),
      .opt_rank_o(rank_o), .opt_chain_o(chain_o), .opt_rto_o(rto_o), .opt_slot_timeout_o(slot_timeout_o),
      .opt_kv_base_o(kv_base_o)
  );
  assign upd_ready = upd_grant && dir_upd_ready && valid_upd_ready;
  assign upd_fire = upd_valid && upd_ready;
  assign drop_valid = upd_fire && upd_desc[7:0] == nic_desc_pkg::DESC_JOB;

  // ---- ports -----------------------------------------------------------------------------------------
  nic_pkg::node_t    own;
  logic [2:0]        meta_valid, meta_ready, fate_valid, hole, txd_valid, txd_room, left, sent_valid, port_idle;
  logic [3*MW-1:0]   meta;
  logic [17:0]       fate, left_slot, res_slot;
  logic [47:0]       fate_bytes, res_sum;
  logic [3*TW-1:0]   txd;
  logic [14:0]       job_row, job_index;
  logic [23:0]       job_rank;
  logic [31:0]       node_rank;
  logic [4*NW-1:0]   node;
  logic [63:0]       res_ready;
  logic [41:0]       sent_bytes;
  logic [4:0]        cmd_valid, cmd_ready, cmd_rel, fetch_valid, fetch_ready, fetch_last;
  logic [9:0]        cmd_mem;
  logic [49:0]       cmd_buf;
  logic [39:0]       cmd_beat, cmd_beats;
  logic [5*512-1:0]  fetch_data;
  logic [3:0]        rd_en;
  logic [39:0]       rd_buf;
  logic [31:0]       rd_beat;
  logic [4*512-1:0]  rd_data;
  logic [2:0]        rel_valid, kvr_valid, kvr_ready, ref_valid;
  logic [29:0]       rel_buf;
  logic [9:0]        ref_buf;
  logic [3:0]        ref_count;
  nic_pkg::kvr_t     kvr;
  logic [255:0]      kv_pending, kv_bad;
  logic              kv_done, kv_done_bad;
  logic [2:0]        read_bad;
  logic [5:0]        token_left;
  logic [47:0]       token_back;

  for (genvar p = 0; p < 3; p++) begin : gen_port
    nic_port #(.Src(p), .Bufs(p == 2 ? HostBufs : NetBufs)) u_port (
        .clk_i, .rst_ni, .own_i(own), .chain_i(chain_o), .in_valid_i(in_valid_i[p]), .in_ready_o(in_ready_o[p]),
        .in_data_i(in_data_i[p*512+:512]), .in_keep_i(in_keep_i[p*64+:64]), .in_last_i(in_last_i[p]),
        .out_valid_o(out_valid_o[p]), .out_ready_i(out_ready_i[p]), .out_data_o(out_data_o[p*512+:512]),
        .out_keep_o(out_keep_o[p*64+:64]), .out_last_o(out_last_o[p]), .meta_valid_o(meta_valid[p]),
        .meta_ready_i(meta_ready[p]), .meta_o(meta[p*MW+:MW]), .fate_valid_o(fate_valid[p]),
        .fate_o(fate[p*6+:6]), .fate_bytes_o(fate_bytes[p*16+:16]), .hole_o(hole[p]), .ref_valid_i(ref_valid[p]),
        .ref_buf_i(ref_buf), .ref_count_i(ref_count), .rd_en_i(rd_en[p]), .rd_buf_i(rd_buf[p*10+:10]),
        .rd_beat_i(rd_beat[p*8+:8]), .rd_data_o(rd_data[p*512+:512]), .rel_valid_i(rel_valid[p]),
        .rel_buf_i(rel_buf[p*10+:10]), .txd_valid_i(txd_valid[p]), .txd_i(txd[p*TW+:TW]),
        .txd_room_o(txd_room[p]), .job_row_o(job_row[p*5+:5]), .job_index_o(job_index[p*5+:5]),
        .job_rank_i(job_rank[p*8+:8]), .node_rank_o(node_rank[p*8+:8]), .node_i(node[p*NW+:NW]),
        .res_slot_o(res_slot[p*6+:6]), .res_sum_i(res_sum[p*16+:16]), .res_ready_i(res_ready),
        .left_valid_o(left[p]), .left_slot_o(left_slot[p*6+:6]), .sent_valid_o(sent_valid[p]),
        .sent_bytes_o(sent_bytes[p*14+:14]), .cmd_valid_o(cmd_valid[p]), .cmd_ready_i(cmd_ready[p]),
        .cmd_mem_o(cmd_mem[p*2+:2]), .cmd_buf_o(cmd_buf[p*10+:10]), .cmd_beat_o(cmd_beat[p*8+:8]),
        .cmd_beats_o(cmd_beats[p*8+:8]), .cmd_rel_o(cmd_rel[p]), .fetch_valid_i(fetch_valid[p]),
        .fetch_ready_o(fetch_ready[p]), .fetch_data_i(fetch_data[p*512+:512]), .fetch_last_i(fetch_last[p]),
        .kvr_valid_i(kvr_valid[p]), .kvr_ready_o(kvr_ready[p]), .kvr_i(kvr), .kv_pending_i(kv_pending),
        .kv_bad_i(kv_bad), .write_bad_i(kv_done && kv_done_bad), .token_left_o({token_left[3+p], token_left[p]}),
        .token_o({token_back[(3+p)*8+:8], token_back[p*8+:8]}), .read_bad_o(read_bad[p]), .araddr_o(ar_addr[p*64+:64]),
        .arlen_o(ar_len[p*8+:8]), .arvalid_o(ar_valid[p]), .arready_i(ar_ready[p]), .rdata_i(r_data),
        .rresp_i(r_resp), .rlast_i(r_last), .rvalid_i(r_valid[p]), .rready_o(r_ready[p]), .idle_o(port_idle[p])
    );
  end

  nic_xbar u_xbar (
      .clk_i, .rst_ni, .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_mem_i(cmd_mem), .cmd_buf_i(cmd_buf),
      .cmd_beat_i(cmd_beat), .cmd_beats_i(cmd_beats), .cmd_rel_i(cmd_rel), .valid_o(fetch_valid),
      .ready_i(fetch_ready), .data_o(fetch_data), .last_o(fetch_last), .rd_en_o(rd_en), .rd_buf_o(rd_buf),
      .rd_beat_o(rd_beat), .rd_data_i(rd_data), .rel_valid_o(rel_valid), .rel_buf_o(rel_buf)
  );
  mr_axi_rd_arb #(.Count(4)) u_rd_arb (
      .clk_i, .rst_ni, .araddr_i(ar_addr), .arlen_i(ar_len), .arvalid_i(ar_valid), .arready_o(ar_ready),
      .rdata_o(r_data), .rresp_o(r_resp), .rlast_o(r_last), .rvalid_o(r_valid), .rready_i(r_ready), .arid_o,
      .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rid_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_o
  );

  // ---- tables ----------------------------------------------------------------------------------------
  logic             job_en, job_hit, member, mac_en, mac_hit, mac_port;
  logic [15:0]      job_number;
  logic [7:0]       shard, unused_mac_rank;
  logic [4:0]       job_at, member_index;
  nic_pkg::job_t    job;
  logic [47:0]      mac;
  assign node_rank[31:24] = shard;
  nic_nodes u_nodes (
      .clk_i, .rst_ni, .upd_fire_i(upd_fire), .upd_desc_i(upd_desc), .own_rank_i(rank_o), .own_o(own),
      .rd_rank_i(node_rank), .rd_node_o(node), .mac_en_i(mac_en), .mac_i(mac), .mac_hit_o(mac_hit),
      .mac_netport_o(mac_port), .mac_rank_o(unused_mac_rank)
  );
  nic_jobs u_jobs (
      .clk_i, .rst_ni, .upd_fire_i(upd_fire), .upd_desc_i(upd_desc), .own_rank_i(rank_o), .lk_en_i(job_en),
      .lk_job_i(job_number), .lk_shard_i(shard), .lk_hit_o(job_hit), .lk_row_o(job_at), .lk_job_o(job),
      .lk_member_o(member), .lk_index_o(member_index), .tx_row_i(job_row),
      .tx_index_i(job_index), .tx_rank_o(job_rank)
  );
  assign present_o = own[NW-1];

  logic                      dir_valid, dir_ready, dir_rsp_valid, late_valid, late_ready, late_rsp_valid, late_rsp;
  logic                      done_valid, done_ready, chk_valid, chk_ready, chk_done, chk_ok, set_valid, set_ready;
  logic [63:0]               dir_key, bad_addr, bad_at;
  logic [nic_pkg::KEY_W-1:0] late_key, done_key;
  nic_pkg::dir_t             dir_rsp;
  logic [23:0]               chk_page, set_page;
  logic [20:0]               chk_count;
  nic_dir #(.BucketBits(BucketBits)) u_dir (
      .clk_i, .rst_ni, .upd_fire_i(upd_fire), .upd_ready_o(dir_upd_ready), .upd_desc_i(upd_desc),
      .lk_valid_i(dir_valid), .lk_ready_o(dir_ready), .lk_key_i(dir_key), .rsp_valid_o(dir_rsp_valid), .rsp_o(dir_rsp)
  );
  nic_late u_late (
      .clk_i, .rst_ni, .lk_valid_i(late_valid), .lk_ready_o(late_ready), .lk_key_i(late_key),
      .rsp_valid_o(late_rsp_valid), .rsp_seen_o(late_rsp), .ins_valid_i(done_valid), .ins_ready_o(done_ready),
      .ins_key_i(done_key)
  );
  assign bad_at = bad_addr - kv_base_o;
  nic_valid #(.PageBits(PageBits)) u_valid (
      .clk_i, .rst_ni, .upd_fire_i(upd_fire), .upd_ready_o(valid_upd_ready), .upd_desc_i(upd_desc),
      .chk_valid_i(chk_valid), .chk_ready_o(chk_ready), .chk_page_i(chk_page), .chk_count_i(chk_count),
      .chk_done_o(chk_done), .chk_ok_o(chk_ok), .set_valid_i(set_valid), .set_ready_o(set_ready),
      .set_page_i(set_page), .bad_valid_i(kv_done && kv_done_bad), .bad_page_i(bad_at[35:12])
  );

  // ---- KV writes ---------------------------------------------------------------------------------------
  logic          kvw_valid, kvw_ready, kvw_busy, token_room, token_issue, token_hold;
  nic_pkg::kvw_t kvw;
  logic [7:0]    token_next, token_last, token_held, kv_done_token;
  nic_tokens u_tokens (
      .clk_i, .rst_ni, .next_o(token_next), .room_o(token_room), .issue_i(token_issue), .last_o(token_last),
      .hold_i(token_hold), .hold_token_i(token_held), .left_valid_i(token_left), .left_token_i(token_back),
      .done_valid_i(kv_done), .done_token_i(kv_done_token), .done_bad_i(kv_done_bad), .pending_o(kv_pending),
      .bad_o(kv_bad)
  );
  nic_kvwr u_kvwr (
      .clk_i, .rst_ni, .kvw_valid_i(kvw_valid), .kvw_ready_o(kvw_ready), .kvw_i(kvw), .cmd_valid_o(cmd_valid[4]),
      .cmd_ready_i(cmd_ready[4]), .cmd_mem_o(cmd_mem[9:8]), .cmd_buf_o(cmd_buf[49:40]), .cmd_beat_o(cmd_beat[39:32]),
      .cmd_beats_o(cmd_beats[39:32]), .cmd_rel_o(cmd_rel[4]), .fetch_valid_i(fetch_valid[4]),
      .fetch_ready_o(fetch_ready[4]), .fetch_data_i(fetch_data[4*512+:512]), .awaddr_o, .awlen_o, .awvalid_o, .awready_i,
      .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i, .bresp_i, .bvalid_i, .bready_o, .done_valid_o(kv_done),
      .done_token_o(kv_done_token), .done_bad_o(kv_done_bad), .bad_addr_o(bad_addr), .busy_o(kvw_busy)
  );

  // ---- dispatch, slots, folds ----------------------------------------------------------------------------
  logic           put_valid, put_new, put_payload, put_done, killed_valid, op_valid, op_ready, op_done;
  logic           begin_valid, resent_valid, scan_filling, scan_silent, scan_held, dispatch_idle;
  logic           ev_valid, count_valid, count_host, count_refused, work_valid, answer_valid, answer_nack;
  logic           d_ref_valid;
  logic [1:0]     d_ref_mem, op_kind;
  logic [9:0]     d_ref_buf;
  logic [3:0]     d_ref_count;
  logic [4:0]     put_index;
  nic_pkg::fold_t put, fold;
  logic [63:0]    kill, merge_busy;
  logic [5:0]     killed_slot, op_slot, begin_slot, resent_slot, scan_slot, count_fate, work_index, work_amount;
  logic [15:0]    count_bytes;
  logic [511:0]   ev;
  nic_dispatch u_dispatch (
      .clk_i, .rst_ni, .own_rank_i(rank_o), .kv_base_i(kv_base_o), .meta_valid_i(meta_valid), .meta_ready_o(meta_ready),
      .meta_i(meta), .upd_valid_i(upd_valid), .upd_grant_o(upd_grant), .upd_fire_i(upd_fire),
      .drop_valid_i(drop_valid), .drop_row_i(upd_desc[12:8]), .job_en_o(job_en), .job_o(job_number), .shard_o(shard),
      .job_hit_i(job_hit), .job_row_i(job_at), .job_i(job), .member_i(member), .index_i(member_index),
      .node_i(node[3*NW+:NW]), .mac_en_o(mac_en), .mac_o(mac), .mac_hit_i(mac_hit), .mac_port_i(mac_port),
      .dir_valid_o(dir_valid), .dir_ready_i(dir_ready), .dir_key_o(dir_key), .dir_rsp_valid_i(dir_rsp_valid),
      .dir_rsp_i(dir_rsp), .late_valid_o(late_valid), .late_ready_i(late_ready), .late_key_o(late_key),
      .late_rsp_valid_i(late_rsp_valid), .late_rsp_i(late_rsp), .done_valid_o(done_valid), .done_ready_i(done_ready),
      .done_key_o(done_key), .chk_valid_o(chk_valid), .chk_ready_i(chk_ready), .chk_page_o(chk_page),
      .chk_count_o(chk_count), .chk_done_i(chk_done), .chk_ok_i(chk_ok), .set_valid_o(set_valid),
      .set_ready_i(set_ready), .set_page_o(set_page), .token_next_i(token_next), .token_room_i(token_room),
      .token_last_i(token_last), .token_issue_o(token_issue), .token_hold_o(token_hold), .token_held_o(token_held),
      .txd_valid_o(txd_valid), .txd_o(txd), .txd_room_i(txd_room), .left_i(left), .left_slot_i(left_slot),
      .kvw_valid_o(kvw_valid), .kvw_ready_i(kvw_ready), .kvw_o(kvw), .kvr_valid_o(kvr_valid), .kvr_ready_i(kvr_ready),
      .kvr_o(kvr), .ref_valid_o(d_ref_valid), .ref_mem_o(d_ref_mem), .ref_buf_o(d_ref_buf), .ref_count_o(d_ref_count),
      .put_valid_o(put_valid), .put_new_o(put_new), .put_payload_o(put_payload), .put_done_o(put_done),
      .put_index_o(put_index), .put_o(put), .kill_o(kill), .killed_valid_i(killed_valid), .killed_slot_i(killed_slot),
      .op_valid_i(op_valid), .op_ready_o(op_ready), .op_kind_i(op_kind), .op_slot_i(op_slot), .op_done_o(op_done),
      .begin_valid_o(begin_valid), .begin_slot_o(begin_slot), .resent_valid_o(resent_valid), .resent_slot_o(resent_slot),
      .scan_slot_i(scan_slot), .scan_filling_o(scan_filling), .scan_silent_o(scan_silent), .scan_held_o(scan_held),
      .ev_valid_o(ev_valid), .ev_o(ev), .fate_valid_o(count_valid), .fate_o(count_fate), .fate_bytes_o(count_bytes),
      .host_valid_o(count_host), .host_refused_o(count_refused), .work_valid_o(work_valid), .work_index_o(work_index),
      .work_amount_o(work_amount), .answer_valid_o(answer_valid), .answer_nack_o(answer_nack), .idle_o(dispatch_idle)
  );
  nic_timer u_timer (
      .clk_i, .rst_ni, .rto_i(rto_o), .slot_timeout_i(slot_timeout_o), .begin_valid_i(begin_valid),
      .begin_slot_i(begin_slot), .resent_valid_i(resent_valid), .resent_slot_i(resent_slot), .scan_slot_o(scan_slot),
      .scan_filling_i(scan_filling), .scan_silent_i(scan_silent), .scan_held_i(scan_held), .op_valid_o(op_valid),
      .op_ready_i(op_ready), .op_done_i(op_done), .op_kind_o(op_kind), .op_slot_o(op_slot)
  );

  logic       fold_valid, fold_ready, free_valid, free_ready, folds_idle, merge_idle, unused_done;
  logic [1:0] free_mem;
  logic [9:0] free_buf;
  logic [5:0] unused_done_slot;
  logic [1023:0] res_sums;
  nic_folds u_folds (
      .clk_i, .rst_ni, .put_valid_i(put_valid), .put_new_i(put_new), .put_payload_i(put_payload), .put_done_i(put_done),
      .put_index_i(put_index), .put_i(put), .kill_i(kill), .fold_valid_o(fold_valid), .fold_ready_i(fold_ready),
      .fold_o(fold), .busy_i(merge_busy), .free_valid_o(free_valid), .free_ready_i(free_ready), .free_mem_o(free_mem),
      .free_buf_o(free_buf), .killed_valid_o(killed_valid), .killed_slot_o(killed_slot), .idle_o(folds_idle)
  );
  // a buffer's readers are set by dispatch; one that nobody will read is freed in between
  assign free_ready = !d_ref_valid;
  assign ref_buf = d_ref_valid ? d_ref_buf : free_buf;
  assign ref_count = d_ref_valid ? d_ref_count : 4'd0;
  for (genvar p = 0; p < 3; p++) begin : gen_ref
    assign ref_valid[p] = d_ref_valid ? d_ref_mem == 2'(p) : free_valid && free_mem == 2'(p);
  end

  nic_merge u_merge (
      .clk_i, .rst_ni, .fold_valid_i(fold_valid), .fold_ready_o(fold_ready), .fold_i(fold), .busy_o(merge_busy), .idle_o(merge_idle),
      .cmd_valid_o(cmd_valid[3]), .cmd_ready_i(cmd_ready[3]), .cmd_mem_o(cmd_mem[7:6]), .cmd_buf_o(cmd_buf[39:30]),
      .cmd_beat_o(cmd_beat[31:24]), .cmd_beats_o(cmd_beats[31:24]), .cmd_rel_o(cmd_rel[3]),
      .fetch_valid_i(fetch_valid[3]), .fetch_ready_o(fetch_ready[3]), .fetch_data_i(fetch_data[3*512+:512]),
      .fetch_last_i(fetch_last[3]), .done_valid_o(unused_done), .done_slot_o(unused_done_slot), .res_ready_o(res_ready),
      .res_clear_valid_i(put_valid && put_new), .res_clear_slot_i(put.slot), .res_sum_o(res_sums),
      .res_rd_en_i(rd_en[3]), .res_rd_slot_i(rd_buf[35:30]), .res_rd_beat_i(rd_beat[31:24]),
      .res_rd_data_o(rd_data[3*512+:512])
  );
  for (genvar p = 0; p < 3; p++) begin : gen_sum
    assign res_sum[16*p+:16] = res_sums[{res_slot[6*p+:6], 4'd0}+:16];
  end

  // ---- events ----------------------------------------------------------------------------------------
  logic ev_count, ev_lost;
  nic_events u_events (
      .clk_i, .rst_ni, .ev_valid_i(ev_valid), .ev_i(ev), .count_o(ev_count), .lost_o(ev_lost), .m_valid_o(event_valid_o),
      .m_ready_i(event_ready_i), .m_data_o(event_data_o)
  );

  // ---- counters ----------------------------------------------------------------------------------------
  localparam int unsigned Sources = 24;
  logic [Sources-1:0]    inc_valid;
  logic [Sources*6-1:0]  inc_index;
  logic [Sources*16-1:0] inc_amount;
  always_comb begin
    inc_valid = '0;
    inc_index = '0;
    inc_amount = '0;
    // what the two network receivers and dispatch say of a frame: fate, frames, bytes
    for (int unsigned k = 0; k < 3; k++) begin
      inc_valid[3*k+:3] = {3{k == 2 ? count_valid : fate_valid[k]}};
      inc_index[18*k+:18] = {6'(nic_frame_pkg::CNT_RX_BYTES), 6'(nic_frame_pkg::CNT_RX_FRAMES),
                             k == 2 ? count_fate : fate[6*k+:6]};
      inc_amount[48*k+:48] = {k == 2 ? count_bytes : fate_bytes[16*k+:16], 16'd1, 16'd1};
    end
    // the network transmitters
    for (int unsigned k = 0; k < 2; k++) begin
      inc_valid[9+2*k+:2] = {2{sent_valid[k]}};
      inc_index[6*(9+2*k)+:12] = {6'(nic_frame_pkg::CNT_TX_BYTES), 6'(nic_frame_pkg::CNT_TX_FRAMES)};
      inc_amount[16*(9+2*k)+:32] = {2'd0, sent_bytes[14*k+:14], 16'd1};
    end
    // the host's frames, in dispatch and in its receiver
    inc_valid[16:13] = {fate_valid[2], fate_valid[2], count_refused, count_host};
    inc_index[6*13+:24] = {6'(nic_frame_pkg::CNT_HOST_REFUSED), 6'(nic_frame_pkg::CNT_HOST_FRAMES),
                           6'(nic_frame_pkg::CNT_HOST_REFUSED), 6'(nic_frame_pkg::CNT_HOST_FRAMES)};
    inc_amount[16*13+:64] = {4{16'd1}};
    // work
    inc_valid[18:17] = {answer_valid, work_valid};
    inc_index[6*17+:12] = {answer_nack ? 6'(nic_frame_pkg::CNT_NACKS) : 6'(nic_frame_pkg::CNT_ACKS), work_index};
    inc_amount[16*17+:32] = {16'd1, 10'd0, work_amount};
    // events and holes
    inc_valid[23:19] = {hole, ev_lost, ev_count};
    inc_index[6*19+:30] = {{3{6'(nic_frame_pkg::CNT_HOLES)}}, 6'(nic_frame_pkg::CNT_EVENTS_LOST),
                           6'(nic_frame_pkg::CNT_EVENTS)};
    inc_amount[16*19+:80] = {5{16'd1}};
  end
  nic_counters #(.Sources(Sources)) u_counters (
      .clk_i, .rst_ni, .inc_valid_i(inc_valid), .inc_index_i(inc_index), .inc_amount_i(inc_amount),
      .sel_i(counter_sel_i), .take_i(counter_take_i), .value_o(counter_o)
  );

  logic [63:0] cycles_q, busy_q, stall_in_q, stall_out_q, items_in_q, items_out_q;
  logic [31:0] write_errors_q, read_errors_q;
  logic [1:0]  arrived, gone, bad_reads;
  assign arrived = {1'b0, in_valid_i[0] && in_ready_o[0] && in_last_i[0]} +
      {1'b0, in_valid_i[1] && in_ready_o[1] && in_last_i[1]} + {1'b0, in_valid_i[2] && in_ready_o[2] && in_last_i[2]};
  assign gone = {1'b0, sent_valid[0]} + {1'b0, sent_valid[1]} + {1'b0, sent_valid[2]};
  assign bad_reads = {1'b0, read_bad[0]} + {1'b0, read_bad[1]} + {1'b0, read_bad[2]};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_errors_q <= '0;
      read_errors_q <= '0;
      cycles_q <= '0;
      busy_q <= '0;
      stall_in_q <= '0;
      stall_out_q <= '0;
      items_in_q <= '0;
      items_out_q <= '0;
    end else begin
      if (kv_done && kv_done_bad) write_errors_q <= write_errors_q + 32'd1;
      read_errors_q <= read_errors_q + {30'd0, bad_reads};
      cycles_q <= cycles_q + 64'd1;
      if (fetch_valid[3] && fetch_ready[3]) busy_q <= busy_q + 64'd1;
      if (!merge_idle && !fetch_valid[3]) stall_in_q <= stall_in_q + 64'd1;
      if ((out_valid_o & ~out_ready_i) != '0) stall_out_q <= stall_out_q + 64'd1;
      items_in_q <= items_in_q + {62'd0, arrived};
      items_out_q <= items_out_q + {62'd0, gone};
    end
  end
  assign write_errors_o = write_errors_q;
  assign read_errors_o = read_errors_q;
  assign cycles_o = cycles_q;
  assign busy_o = busy_q;
  assign stall_in_o = stall_in_q;
  assign stall_out_o = stall_out_q;
  assign items_in_o = items_in_q;
  assign items_out_o = items_out_q;

  assign idle_o = port_idle == '1 && dispatch_idle && folds_idle && merge_idle && !kvw_busy && !put_valid;

  // What the host's receiver says of a frame is only whether it was refused; a memory has 64 slots.
  logic [127:0] unused_bits;
  assign unused_bits = {fate[17:12], fate_bytes[47:32], rd_buf[39:36], bad_at[63:36], bad_at[11:0], sent_bytes[41:28],
                        fetch_last[4], 47'd0};
endmodule
