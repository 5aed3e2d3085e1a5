// The order of things: frames of three sources and the timers' work, one after the other, each decided
// whole before the next.
//
// Three stages of two cycles, moving together. A: one of the sources is taken in turn, the look-ups start
// (job, sender, node, directory, completed keys). B: they come back. C: the slot is looked up, then the
// decision is made and takes effect in one cycle, so each frame sees what the one before it did. The
// pipeline stands still while an answer is missing (a long chain of completed keys, a KV read's pages).
// A frame every 2 cycles; seven cycles from meta_valid_i to a descriptor when the pipeline is empty.
//
// Tables change between frames only: on upd_valid_i nothing new is taken, and once the stages are empty
// upd_grant_o is high until the update is done; then up to eight waiting frames go first, so that a host
// that writes tables without end holds nobody up.
//
// Deadlock: an answer never waits for a queue or a port. What a frame needs is looked at once; where room
// is missing the frame is overrun and gone, so that the head of the line never waits for a port.
module nic_dispatch (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic [7:0]          own_rank_i,
    input  logic [63:0]         kv_base_i,
    // received frames: network 0, network 1, host
    input  logic [2:0]          meta_valid_i,
    output logic [2:0]          meta_ready_o,
    input  logic [3*nic_pkg::META_W-1:0] meta_i,
    // table updates
    input  logic                upd_valid_i,
    output logic                upd_grant_o,
    input  logic                upd_fire_i,
    input  logic                drop_valid_i, // a row of the job table is written
    input  logic [4:0]          drop_row_i,
    // nic_jobs, nic_nodes: answers a cycle later
    output logic                job_en_o,
    output logic [15:0]         job_o,
    output logic [7:0]          shard_o,
    input  logic                job_hit_i,
    input  logic [4:0]          job_row_i,
    input  nic_pkg::job_t       job_i,
    input  logic                member_i,
    input  logic [4:0]          index_i,
    input  nic_pkg::node_t      node_i,
    output logic                mac_en_o,
    output logic [47:0]         mac_o,
    input  logic                mac_hit_i,
    input  logic                mac_port_i,
    // nic_dir, nic_late, nic_valid
    output logic                dir_valid_o,
    input  logic                dir_ready_i,
    output logic [63:0]         dir_key_o,
    input  logic                dir_rsp_valid_i,
    input  nic_pkg::dir_t       dir_rsp_i,
    output logic                late_valid_o,
    input  logic                late_ready_i,
    output logic [nic_pkg::KEY_W-1:0] late_key_o,
    input  logic                late_rsp_valid_i,
    input  logic                late_rsp_i,
    output logic                done_valid_o,  // completed keys
    input  logic                done_ready_i,
    output logic [nic_pkg::KEY_W-1:0] done_key_o,
    output logic                chk_valid_o,
    input  logic                chk_ready_i,
    output logic [23:0]         chk_page_o,
    output logic [20:0]         chk_count_o,
    input  logic                chk_done_i,
    input  logic                chk_ok_i,
    output logic                set_valid_o,
    input  logic                set_ready_i,
    output logic [23:0]         set_page_o,
    // nic_tokens
    input  logic [7:0]          token_next_i,
    input  logic                token_room_i,
    input  logic [7:0]          token_last_i,
    output logic                token_issue_o,
    output logic                token_hold_o,
    output logic [7:0]          token_held_o,
    // transmit queues
    output logic [2:0]          txd_valid_o,
    output logic [3*nic_pkg::TXD_W-1:0] txd_o,
    input  logic [2:0]          txd_room_i,    // at least four more
    input  logic [2:0]          left_i,        // a result has left
    input  logic [17:0]         left_slot_i,
    output logic                kvw_valid_o,
    input  logic                kvw_ready_i,
    output nic_pkg::kvw_t       kvw_o,
    output logic [2:0]          kvr_valid_o,
    input  logic [2:0]          kvr_ready_i,
    output nic_pkg::kvr_t       kvr_o,
    // frame buffers
    output logic                ref_valid_o,
    output logic [1:0]          ref_mem_o,
    output logic [9:0]          ref_buf_o,
    output logic [3:0]          ref_count_o,
    // nic_folds
    output logic                put_valid_o,
    output logic                put_new_o,
    output logic                put_payload_o,
    output logic                put_done_o,
    output logic [4:0]          put_index_o,
    output nic_pkg::fold_t      put_o,
    output logic [63:0]         kill_o,
    input  logic                killed_valid_i,
    input  logic [5:0]          killed_slot_i,
    // nic_timer
    input  logic                op_valid_i,
    output logic                op_ready_o,
    input  logic [1:0]          op_kind_i,
    input  logic [5:0]          op_slot_i,
    output logic                op_done_o,
    output logic                begin_valid_o,
    output logic [5:0]          begin_slot_o,
    output logic                resent_valid_o,
    output logic [5:0]          resent_slot_o,
    input  logic [5:0]          scan_slot_i,
    output logic                scan_filling_o,
    output logic                scan_silent_o,
    output logic                scan_held_o,
    // events and counters
    output logic                ev_valid_o,
    output logic [511:0]        ev_o,
    output logic                fate_valid_o,  // of a frame from the network
    output logic [5:0]          fate_o,
    output logic [15:0]         fate_bytes_o,  // 65,535 for longer frames
    output logic                host_valid_o,  // a frame from the host
    output logic                host_refused_o,
    output logic                work_valid_o,  // merged, reduced, released, retransmissions, time-outs
    output logic [5:0]          work_index_o,
    output logic [5:0]          work_amount_o,
    output logic                answer_valid_o,
    output logic                answer_nack_o,
    output logic                idle_o
);
  // ---- stages ----------------------------------------------------------------------------------------
  logic           second_q;              // second cycle of the stages
  logic           advance, empty, fire, fired_q;
  logic           a_valid_q, b_valid_q, c_valid_q;
  logic [1:0]     a_work_q, b_work_q, c_work_q;
  nic_pkg::meta_t a_meta_q, b_meta_q, c_meta_q;
  logic           a_dir_q, a_late_q;     // look-ups of A that were accepted
  logic           emit_idle;

  // ---- choose a source ---------------------------------------------------------------------------------
  logic           hold_q;
  logic [3:0]     turn_q; // frames that go before the next table update
  logic [3:0]     want, grant;
  logic [1:0]     next_q;
  logic           load;
  assign want = hold_q ? 4'd0 : {op_valid_i, meta_valid_i};
  always_comb begin
    grant = '0;
    case (next_q)
      2'd0: grant = want[0] ? 4'd1 : want[1] ? 4'd2 : want[2] ? 4'd4 : want[3] ? 4'd8 : 4'd0;
      2'd1: grant = want[1] ? 4'd2 : want[2] ? 4'd4 : want[3] ? 4'd8 : want[0] ? 4'd1 : 4'd0;
      2'd2: grant = want[2] ? 4'd4 : want[3] ? 4'd8 : want[0] ? 4'd1 : want[1] ? 4'd2 : 4'd0;
      default: grant = want[3] ? 4'd8 : want[0] ? 4'd1 : want[1] ? 4'd2 : want[2] ? 4'd4 : 4'd0;
    endcase
  end
  assign meta_ready_o = advance ? grant[2:0] : 3'b000;
  assign op_ready_o = advance && grant[3];
  assign load = advance && grant != '0;

  logic [nic_pkg::KEY_W-1:0]  op_key;
  logic [nic_pkg::META_W-1:0] chosen;
  nic_pkg::meta_t             op_meta;
  always_comb begin
    op_meta = '0;
    op_meta.fate = nic_frame_pkg::FATE_NONE;
    op_meta.nobuf = 1'b1;
    op_meta.hdr = {32'd0, op_key[111:96], 16'd0, op_key[95:32], 64'd0, op_key[31:0], 32'd0};
  end
  assign chosen = grant[0] ? meta_i[0+:nic_pkg::META_W] : grant[1] ? meta_i[nic_pkg::META_W+:nic_pkg::META_W] :
      grant[2] ? meta_i[2*nic_pkg::META_W+:nic_pkg::META_W] : op_meta;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q <= 2'd0;
      hold_q <= 1'b0;
      turn_q <= 4'd0;
    end else begin
      if (load) next_q <= grant[0] ? 2'd1 : grant[1] ? 2'd2 : grant[2] ? 2'd3 : 2'd0;
      if (!upd_valid_i || upd_fire_i) hold_q <= 1'b0;
      else if (turn_q == '0) hold_q <= 1'b1;
      if (upd_fire_i) turn_q <= 4'd8;
      else if (want == '0 && !hold_q) turn_q <= 4'd0;
      else if (load && turn_q != '0) turn_q <= turn_q - 4'd1;
    end
  end
  assign empty = !a_valid_q && !b_valid_q && !c_valid_q;
  assign upd_grant_o = hold_q && upd_valid_i && empty;

  // ---- A: look-ups ---------------------------------------------------------------------------------------
  nic_pkg::hdr_t a_h;
  logic          a_frame, a_needs_dir, a_needs_late;
  assign a_h = a_meta_q.hdr;
  assign a_frame = a_valid_q && a_work_q == nic_pkg::WORK_FRAME && a_meta_q.fate == nic_frame_pkg::FATE_NONE;
  assign a_needs_dir = a_frame && a_h.opcode <= nic_frame_pkg::OP_KV_DATA;
  assign a_needs_late = a_frame && (a_h.opcode == nic_frame_pkg::OP_PARTIAL ||
      a_h.opcode == nic_frame_pkg::OP_REDUCE || a_h.opcode == nic_frame_pkg::OP_BARRIER);
  assign job_en_o = a_valid_q && !second_q;
  assign job_o = a_h.job;
  assign shard_o = a_h.shard;
  assign mac_en_o = a_valid_q && !second_q;
  assign mac_o = a_meta_q.dst_mac;
  assign dir_valid_o = a_needs_dir && !a_dir_q;
  assign dir_key_o = {a_h.job, a_h.layer, a_h.block};
  assign late_valid_o = a_needs_late && !a_late_q;
  assign late_key_o = nic_pkg::key_of(a_meta_q.hdr);

  logic a_asked;
  assign a_asked = (!a_needs_dir || a_dir_q || dir_ready_i) && (!a_needs_late || a_late_q || late_ready_i);

  // Answers wait for their frame: of the directory and of the completed keys, in order.
  logic              dir_there, late_there, late_seen, dir_pop, late_pop;
  nic_pkg::dir_t     dir;
  logic [2:0]        unused_dir_count, unused_late_count;
  logic [1:0]        fifo_ready;
  logic [nic_pkg::DIR_W-1:0] dir_bits;
  mr_fifo #(.Width(nic_pkg::DIR_W), .Depth(4)) u_dir (
      .clk_i, .rst_ni, .valid_i(dir_rsp_valid_i), .ready_o(fifo_ready[0]), .data_i(dir_rsp_i), .valid_o(dir_there),
      .ready_i(dir_pop), .data_o(dir_bits), .count_o(unused_dir_count)
  );
  mr_fifo #(.Width(1), .Depth(4)) u_late (
      .clk_i, .rst_ni, .valid_i(late_rsp_valid_i), .ready_o(fifo_ready[1]), .data_i(late_rsp_i), .valid_o(late_there),
      .ready_i(late_pop), .data_o(late_seen), .count_o(unused_late_count)
  );
  assign dir = dir_bits;

  // ---- B: the tables' answers
  logic           b_job_hit_q, c_job_hit_q, b_member_q, c_member_q, b_node_q, c_node_q, b_port_q, c_port_q;
  logic           b_mac_port_q, c_mac_port_q, b_needs_dir_q, c_needs_dir_q, b_needs_late_q, c_needs_late_q;
  logic [4:0]     b_row_q, c_row_q, b_index_q, c_index_q;
  nic_pkg::job_t  b_job_q, c_job_q;

  // ---- C: slot, decision ----------------------------------------------------------------------------------
  nic_pkg::hdr_t  c_h;
  nic_pkg::act_t  act;
  nic_pkg::slot_t slot_row, new_row;
  logic [31:0]    slot_in, slot_silent, new_in;
  logic           look, slot_hit, slot_free, slot_filling, slot_done, slot_sent, slots_settled, pool_full;
  logic [5:0]     slot;
  logic           wait_held, answered, held, is_frame, started;
  logic [31:0]    newest_mem [0:31];
  logic [31:0]    started_q;
  logic [31:0]    newest, ahead;
  logic [1:0]     chk_q; // 0: not asked, 1: asked, 2: no, 3: yes
  assign c_h = c_meta_q.hdr;
  assign is_frame = c_work_q == nic_pkg::WORK_FRAME;
  assign look = c_valid_q && !second_q;
  assign newest = newest_mem[c_row_q];
  assign ahead = c_h.request - newest;
  assign started = started_q[c_row_q];
  assign held = chk_q == 2'd3;

  nic_slots u_slots (
      .clk_i, .rst_ni, .advance_i(advance), .look_valid_i(look), .look_key_i(nic_pkg::key_of(c_meta_q.hdr)),
      .hit_o(slot_hit), .free_o(slot_free), .slot_o(slot), .filling_o(slot_filling), .done_o(slot_done),
      .sent_o(slot_sent), .row_o(slot_row), .in_o(slot_in), .silent_o(slot_silent),
      .put_valid_i(fire && act.put), .put_row_i(new_row), .put_in_i(new_in), .put_done_i(act.complete),
      .put_payload_i(act.payload), .silent_valid_i(fire && act.quiet), .silent_i(act.silent),
      .kill_valid_i(fire && act.kill), .killed_valid_i, .killed_slot_i,
      .push_i(fire ? act.result : 3'b000), .push_slot_i(slot), .left_i, .left_slot_i,
      .drop_valid_i, .drop_row_i, .kill_o, .scan_slot_i, .scan_filling_o, .scan_silent_o, .scan_held_o,
      .op_slot_i, .op_key_o(op_key), .pool_full_o(pool_full), .settled_o(slots_settled)
  );

  nic_decide u_decide (
      .work_i(c_work_q), .meta_i(c_meta_q), .own_rank_i, .job_hit_i(c_job_hit_q), .job_row_i(c_row_q), .job_i(c_job_q),
      .member_i(c_member_q), .index_i(c_index_q), .node_valid_i(c_node_q), .node_port_i(c_port_q),
      .mac_port_i(c_mac_port_q), .dir_i(dir), .late_i(late_seen), .held_i(held), .wait_held_o(wait_held),
      .hit_i(slot_hit), .free_i(slot_free), .filling_i(slot_filling), .done_i(slot_done), .sent_i(slot_sent),
      .row_i(slot_row), .in_i(slot_in), .silent_i(slot_silent), .pool_full_i(pool_full), .started_i(started),
      .newest_i(newest), .room_i(txd_room_i), .store_room_i(kvw_ready_i && token_room_i), .serve_room_i(kvr_ready_i),
      .act_o(act), .row_o(new_row), .in_o(new_in)
  );

  // pages of a read
  logic [31:0] read_end;
  logic [23:0] page;
  logic        chk_go;
  assign page = dir.page + {4'd0, c_h.offset[31:12]};
  assign read_end = c_meta_q.pay0[63:32] + 32'd4095;
  assign chk_valid_o = c_valid_q && second_q && !fired_q && (!c_needs_dir_q || dir_there) && wait_held && chk_q == 2'd0;
  assign chk_go = chk_valid_o && chk_ready_i;
  assign chk_page_o = page;
  assign chk_count_o = {1'b0, read_end[31:12]};

  assign answered = c_valid_q && second_q && !fired_q && (!c_needs_dir_q || dir_there) &&
      (!c_needs_late_q || late_there) && (!wait_held || chk_q[1]);
  // a page is marked, a key is remembered, in the same cycle as the rest
  assign set_valid_o = answered && act.store;
  assign set_page_o = page;
  assign done_valid_o = answered && (act.complete || act.kill);
  assign done_key_o = nic_pkg::key_of(c_meta_q.hdr);
  assign fire = answered && (!set_valid_o || set_ready_i) && (!done_valid_o || done_ready_i);
  assign dir_pop = fire && c_needs_dir_q;
  assign late_pop = fire && c_needs_late_q;

  assign advance = empty || (second_q && a_asked && (!c_valid_q || fired_q || fire));

  always_ff @(posedge clk_i) begin
    if (load) begin
      a_meta_q <= chosen;
      a_work_q <= grant[3] ? op_kind_i : nic_pkg::WORK_FRAME;
    end
    if (advance) begin
      b_meta_q <= a_meta_q;
      b_work_q <= a_work_q;
      b_job_hit_q <= job_hit_i;
      b_row_q <= job_row_i;
      b_job_q <= job_i;
      b_member_q <= member_i;
      b_index_q <= index_i;
      b_node_q <= node_i.valid;
      b_port_q <= node_i.netport;
      b_mac_port_q <= mac_hit_i && mac_port_i;
      b_needs_dir_q <= a_needs_dir;
      b_needs_late_q <= a_needs_late;
      c_meta_q <= b_meta_q;
      c_work_q <= b_work_q;
      c_job_hit_q <= b_job_hit_q;
      c_row_q <= b_row_q;
      c_job_q <= b_job_q;
      c_member_q <= b_member_q;
      c_index_q <= b_index_q;
      c_node_q <= b_node_q;
      c_port_q <= b_port_q;
      c_mac_port_q <= b_mac_port_q;
      c_needs_dir_q <= b_needs_dir_q;
      c_needs_late_q <= b_needs_late_q;
    end
    if (fire && act.put && (!started || (ahead != '0 && !ahead[31]))) newest_mem[c_row_q] <= c_h.request;
    if (!rst_ni) begin
      second_q <= 1'b0;
      fired_q <= 1'b0;
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
      a_dir_q <= 1'b0;
      a_late_q <= 1'b0;
      chk_q <= 2'd0;
      started_q <= '0;
    end else begin
      second_q <= !advance;
      if (advance) begin
        a_valid_q <= load;
        b_valid_q <= a_valid_q;
        c_valid_q <= b_valid_q;
      end
      a_dir_q <= !advance && (a_dir_q || (dir_valid_o && dir_ready_i));
      a_late_q <= !advance && (a_late_q || (late_valid_o && late_ready_i));
      fired_q <= !advance && (fired_q || fire);
      if (advance) chk_q <= 2'd0;
      else if (chk_go) chk_q <= 2'd1;
      else if (chk_done_i) chk_q <= {1'b1, chk_ok_i};
      if (drop_valid_i) started_q[drop_row_i] <= 1'b0;
      else if (fire && act.put) started_q[c_row_q] <= 1'b1;
    end
  end

  // ---- the work is handed out -------------------------------------------------------------------------------
  logic [5:0]     d_slot_q;
  logic           d_fire_q;
  nic_pkg::act_t  d_act_q;
  nic_pkg::fold_t d_put_q;
  logic [4:0]     d_index_q;
  logic           d_new_q;
  nic_pkg::fold_t put;
  nic_emit u_emit (
      .clk_i, .rst_ni, .fire_i(fire), .act_i(act), .meta_i(c_meta_q), .frame_i(is_frame), .job_row_i(c_row_q),
      .port1_i(c_job_q.port1), .dir_i(dir), .slot_i(slot), .row_i(act.put ? new_row : slot_row), .own_rank_i, .kv_base_i,
      .txd_valid_o, .txd_o, .ref_valid_o, .ref_mem_o, .ref_buf_o, .ref_count_o, .kvw_valid_o, .kvw_o, .kvr_valid_o,
      .kvr_o, .token_next_i, .token_last_i, .token_issue_o, .token_hold_o, .token_held_o, .ev_valid_o, .ev_o,
      .idle_o(emit_idle)
  );

  always_comb begin
    put = '0;
    put.slot = slot;
    put.mem = c_meta_q.src;
    put.buf_id = c_meta_q.buf_id;
    put.off = {6'd0, c_meta_q.mr_off} + 13'd32;
    put.reduce = c_h.opcode == nic_frame_pkg::OP_REDUCE;
    put.dtype = c_h.dtype[2:0];
    put.rop = c_h.flags[5:4];
    put.nat = c_h.flags[nic_frame_pkg::FL_NATURAL];
    put.heads = c_h.heads;
    put.dim = c_h.dim;
  end
  logic [5:0] resends;
  always_comb begin
    resends = '0;
    for (int unsigned m = 0; m < 32; m++) resends = resends + {5'd0, d_act_q.members[m]};
  end

  logic       d_frame_q, d_host_q;
  logic [15:0] d_bytes_q;
  logic [7:0] d_opcode_q;
  always_ff @(posedge clk_i) begin
    if (fire) begin
      d_act_q <= act;
      d_slot_q <= slot;
      d_put_q <= put;
      d_index_q <= c_index_q;
      d_new_q <= !slot_hit;
      d_frame_q <= is_frame;
      d_host_q <= c_meta_q.src == nic_pkg::SRC_HOST;
      d_bytes_q <= c_meta_q.bytes[17:16] != 2'd0 ? 16'hFFFF : c_meta_q.bytes[15:0];
      d_opcode_q <= c_h.opcode;
    end
    if (!rst_ni) d_fire_q <= 1'b0;
    else d_fire_q <= fire;
  end

  assign put_valid_o = d_fire_q && d_act_q.put;
  assign put_new_o = d_new_q;
  assign put_payload_o = d_act_q.payload;
  assign put_done_o = d_act_q.complete;
  assign put_index_o = d_index_q;
  assign put_o = d_put_q;

  assign op_done_o = d_fire_q && !d_frame_q;
  assign begin_valid_o = d_fire_q && d_act_q.put && (d_new_q || d_act_q.complete);
  assign begin_slot_o = d_slot_q;
  assign resent_valid_o = d_fire_q && d_act_q.again;
  assign resent_slot_o = d_slot_q;

  assign fate_valid_o = d_fire_q && d_frame_q && !d_host_q;
  assign fate_o = d_act_q.fate;
  assign fate_bytes_o = d_bytes_q;
  assign host_valid_o = d_fire_q && d_frame_q && d_host_q;
  assign host_refused_o = host_valid_o && d_act_q.fate <= nic_frame_pkg::FATE_OVERRUN &&
      d_act_q.fate != nic_frame_pkg::FATE_NOT_MINE;
  assign answer_valid_o = d_fire_q && d_act_q.answer != '0;
  assign answer_nack_o = d_act_q.nack;
  always_comb begin
    work_amount_o = 6'd1;
    work_index_o = d_opcode_q == nic_frame_pkg::OP_PARTIAL ? 6'(nic_frame_pkg::CNT_MERGED) :
        d_opcode_q == nic_frame_pkg::OP_REDUCE ? 6'(nic_frame_pkg::CNT_REDUCED) : 6'(nic_frame_pkg::CNT_RELEASED);
    if (d_act_q.again) begin
      work_index_o = 6'(nic_frame_pkg::CNT_RETRANSMISSIONS);
      work_amount_o = resends;
    end else if (d_act_q.kill) work_index_o = 6'(nic_frame_pkg::CNT_SLOT_TIMEOUTS);
    else if (d_act_q.ev) work_index_o = 6'(nic_frame_pkg::CNT_UNACKNOWLEDGED);
  end
  assign work_valid_o = d_fire_q && (d_act_q.complete || d_act_q.again || d_act_q.kill ||
                                     (d_act_q.ev && d_act_q.ev_type == nic_frame_pkg::EV_UNACKNOWLEDGED));

  assign idle_o = empty && emit_idle && !d_fire_q && slots_settled && meta_valid_i == '0;

  // An answer comes only where one was asked for, so there is room for it.
  always_ff @(posedge clk_i) begin
    if (rst_ni && dir_rsp_valid_i) assert (fifo_ready[0]);
    if (rst_ni && late_rsp_valid_i) assert (fifo_ready[1]);
    if (rst_ni && drop_valid_i) assert (empty);
  end
  // Of whole records this module looks at some fields.
  logic [nic_pkg::NODE_W+2*nic_pkg::HDR_W+nic_pkg::ACT_W+31:0] unused_records;
  assign unused_records = {node_i, a_h, c_h, d_act_q, read_end};
endmodule
