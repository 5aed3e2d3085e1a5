// The work of a decision, handed out in the two cycles after it.
//
// First cycle: what comes before an answer (the raw frame, copies, KV reads; for a contribution its ACK),
// the buffer's number of readers, the KV write, the event. Second cycle: what comes after (the answer; the
// results). So each port gets at most one descriptor a cycle, in the order in which frames must leave.
// A decision every second cycle at most. The ports have room: nic_decide has seen to it.
module nic_emit (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                fire_i,
    input  nic_pkg::act_t       act_i,
    input  nic_pkg::meta_t      meta_i,
    input  logic                frame_i,   // meta_i is a frame's, not a timer's
    input  logic [4:0]          job_row_i,
    input  logic [31:0]         port1_i,
    input  nic_pkg::dir_t       dir_i,
    input  logic [5:0]          slot_i,
    input  nic_pkg::slot_t      row_i,     // of the slot, this contribution in it
    input  logic [7:0]          own_rank_i,
    input  logic [63:0]         kv_base_i,
    // transmit queues: network 0, network 1, host
    output logic [2:0]          txd_valid_o,
    output logic [3*nic_pkg::TXD_W-1:0] txd_o,
    // readers of the buffer
    output logic                ref_valid_o,
    output logic [1:0]          ref_mem_o,
    output logic [9:0]          ref_buf_o,
    output logic [3:0]          ref_count_o,
    // KV writes and reads
    output logic                kvw_valid_o,
    output nic_pkg::kvw_t       kvw_o,
    output logic [2:0]          kvr_valid_o,
    output nic_pkg::kvr_t       kvr_o,
    input  logic [7:0]          token_next_i,
    input  logic [7:0]          token_last_i,
    output logic                token_issue_o,
    output logic                token_hold_o,
    output logic [7:0]          token_held_o,
    output logic                ev_valid_o,
    output logic [511:0]        ev_o,
    output logic                idle_o
);
  logic             first_q, second_q, frame_q;
  nic_pkg::act_t    act_q;
  nic_pkg::meta_t   meta_q;
  logic [4:0]       job_row_q;
  logic [31:0]      port1_q;
  nic_pkg::dir_t    dir_q;
  logic [5:0]       slot_q;
  nic_pkg::slot_t   row_q;
  logic [7:0]       token_q; // of this frame's KV write
  always_ff @(posedge clk_i) begin
    if (fire_i) begin
      act_q <= act_i;
      meta_q <= meta_i;
      frame_q <= frame_i;
      job_row_q <= job_row_i;
      port1_q <= port1_i;
      dir_q <= dir_i;
      slot_q <= slot_i;
      row_q <= row_i;
    end
    if (first_q) token_q <= token_next_i;
    if (!rst_ni) begin
      first_q <= 1'b0;
      second_q <= 1'b0;
    end else begin
      first_q <= fire_i;
      second_q <= first_q;
    end
  end
  assign idle_o = !first_q && !second_q;

  nic_pkg::hdr_t h;
  assign h = meta_q.hdr;
  logic [12:0] payload_at;
  assign payload_at = {6'd0, meta_q.mr_off} + 13'd32;

  // ---- headers ---------------------------------------------------------------------------------------
  logic [255:0] copy_hdr, answer_hdr, serve_hdr, result_hdr;
  logic [7:0]   result_opcode, result_flags;
  logic         is_merge, is_reduce;
  assign copy_hdr = {h.version, h.opcode, h.dtype, h.flags[7] || act_q.forward, h.flags[6:0], meta_q.hdr[223:0]};
  assign answer_hdr = {h.version, act_q.nack ? nic_frame_pkg::OP_NACK : nic_frame_pkg::OP_ACK, h.opcode, 8'd0, h.job,
      own_rank_i, h.shards, h.request, h.layer, h.head0, 32'd0, h.epoch, h.block, h.offset};
  assign serve_hdr = {h.version, nic_frame_pkg::OP_KV_DATA, h.dtype, 8'd0, h.job, own_rank_i, h.shards, h.request,
      h.layer, h.head0, h.heads, h.dim, dir_q.epoch, h.block, h.offset};
  assign is_merge = row_q.opcode == nic_frame_pkg::OP_PARTIAL;
  assign is_reduce = row_q.opcode == nic_frame_pkg::OP_REDUCE;
  assign result_opcode = is_merge ? nic_frame_pkg::OP_MERGED : is_reduce ? nic_frame_pkg::OP_RESULT :
      nic_frame_pkg::OP_BARRIER;
  assign result_flags = {2'b00, is_reduce ? row_q.rop : 2'd0, row_q.reliable, 3'b001};
  assign result_hdr = {nic_frame_pkg::VERSION, result_opcode, row_q.dtype, result_flags, row_q.key[111:96], own_rank_i,
      row_q.shards, row_q.key[95:32], row_q.heads, row_q.dim, row_q.epoch, row_q.key[31:0], 32'd0};

  // ---- descriptors -----------------------------------------------------------------------------------
  logic [63:0] reason;
  logic [16:0] reason_sum1, reason_sum2;
  logic [15:0] reason_sum;
  assign reason = {29'd0, act_q.reason, act_q.epoch};
  assign reason_sum1 = {1'b0, act_q.epoch[31:16]} + {1'b0, act_q.epoch[15:0]};
  assign reason_sum2 = {1'b0, reason_sum1[15:0]} + {14'd0, act_q.reason} +
      {16'd0, reason_sum1[16]};
  assign reason_sum = reason_sum2[15:0] + {15'd0, reason_sum2[16]};

  nic_pkg::txd_t raw, copy, answer, serve, result;
  always_comb begin
    raw = '0;
    raw.kind = nic_pkg::TX_RAW;
    raw.mem = meta_q.src;
    raw.buf_id = meta_q.buf_id;
    raw.len = meta_q.bytes[13:0];
    raw.rel = 1'b1;

    copy = '0;
    copy.kind = nic_pkg::TX_BUILD;
    copy.mem = meta_q.src;
    copy.buf_id = meta_q.buf_id;
    copy.off = payload_at;
    copy.len = meta_q.pay_len;
    copy.sum = meta_q.sum;
    copy.hdr = copy_hdr;
    copy.job = job_row_q;
    copy.rel = 1'b1;

    answer = '0;
    answer.kind = nic_pkg::TX_BUILD;
    answer.inl = 1'b1;
    answer.hdr = answer_hdr;
    answer.direct = 1'b1;
    answer.rank = h.shard;
    if (act_q.nack) begin
      answer.len = 14'd8;
      answer.pay64 = reason;
      answer.sum = reason_sum;
    end
    answer.wait_kv = act_q.store;
    answer.token = token_q;

    serve = '0;
    serve.kind = nic_pkg::TX_KV;
    serve.direct = 1'b1;
    serve.rank = h.shard;

    result = '0;
    result.kind = nic_pkg::TX_BUILD;
    result.mem = nic_pkg::MEM_RESULT;
    result.buf_id = {4'd0, slot_q};
    result.len = row_q.len;
    result.inl = !is_merge && !is_reduce;
    result.hdr = result_hdr;
    result.job = job_row_q;
    result.wait_res = is_merge || is_reduce;
    result.retrans = act_q.again;
  end

  // ---- who gets which, when ----------------------------------------------------------------------------
  logic       answer_first;
  logic [2:0] before_q, after_q;
  assign answer_first = act_q.put;
  assign before_q = act_q.raw | act_q.copy | act_q.serve | (answer_first ? act_q.answer : 3'b000);
  assign after_q = act_q.result | (answer_first ? 3'b000 : act_q.answer);
  for (genvar p = 0; p < 3; p++) begin : gen_port
    nic_emit_port #(.Port(p)) u_port (
        .first_i(first_q), .raw_i(act_q.raw[p]), .copy_i(act_q.copy[p]), .serve_i(act_q.serve[p]),
        .result_i(act_q.result[p]), .members_i(act_q.members), .port1_i(port1_q), .txd_raw_i(raw),
        .txd_copy_i(copy), .txd_answer_i(answer), .txd_serve_i(serve), .txd_result_i(result),
        .txd_o(txd_o[p*nic_pkg::TXD_W+:nic_pkg::TXD_W])
    );
    assign txd_valid_o[p] = (first_q && before_q[p]) || (second_q && after_q[p]);
  end

  // ---- the buffer ------------------------------------------------------------------------------------
  always_comb begin
    ref_count_o = {3'd0, act_q.store} + {3'd0, act_q.payload};
    for (int unsigned p = 0; p < 3; p++)
      ref_count_o = ref_count_o + {3'd0, act_q.raw[p]} + {3'd0, act_q.copy[p]};
  end
  assign ref_valid_o = first_q && frame_q && !meta_q.nobuf;
  assign ref_mem_o = meta_q.src;
  assign ref_buf_o = meta_q.buf_id;

  // ---- KV --------------------------------------------------------------------------------------------
  logic [63:0] address;
  assign address = kv_base_i + {28'd0, dir_q.page, 12'd0} + {32'd0, h.offset};
  always_comb begin
    kvw_o = '0;
    kvw_o.mem = meta_q.src;
    kvw_o.buf_id = meta_q.buf_id;
    kvw_o.off = payload_at;
    kvw_o.len = meta_q.pay_len[12:0];
    kvw_o.addr = address;
    kvw_o.token = token_next_i;
    kvr_o = '0;
    kvr_o.addr = address;
    kvr_o.len = meta_q.pay0[63:32];
    kvr_o.offset = h.offset;
    kvr_o.hdr = serve_hdr;
    kvr_o.token = token_last_i;
  end
  assign kvw_valid_o = first_q && act_q.store;
  assign kvr_valid_o = first_q ? act_q.serve : 3'b000;
  assign token_issue_o = kvw_valid_o;
  assign token_hold_o = kvr_valid_o != '0 || (second_q && act_q.store && act_q.answer != '0);
  assign token_held_o = second_q ? token_q : token_last_i;

  // ---- event, little-endian; header and payload bytes as in the frame
  logic [255:0] hdr_bytes;
  logic [63:0]  pay_bytes;
  logic         control;
  assign control = act_q.ev_type == nic_frame_pkg::EV_CONTROL;
  for (genvar b = 0; b < 32; b++) begin : gen_hdr_bytes
    assign hdr_bytes[8*b+:8] = control ? meta_q.hdr[248-8*b+:8] : 8'd0;
  end
  for (genvar b = 0; b < 8; b++) begin : gen_pay_bytes
    assign pay_bytes[8*b+:8] = control ? meta_q.pay0[56-8*b+:8] : 8'd0;
  end
  assign ev_valid_o = first_q && act_q.ev;
  assign ev_o = {pay_bytes, hdr_bytes, 32'd0, act_q.ev_ranks, h.block, h.head0, h.layer, h.request, h.job,
      act_q.ev_opcode, act_q.ev_type};

  // What only nic_decide and nic_slots look at.
  logic [973:0] unused_records;
  assign unused_records = {act_q, meta_q, dir_q, row_q};
endmodule
