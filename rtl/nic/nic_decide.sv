// What becomes of a frame, or of work that a timer asks for: the rules, without state or latency.
//
// The order of the questions is the order of the fates. wait_* say that an answer is still needed (which,
// depends on the frame); the decision is good when none is needed or those needed are there. room_i,
// store_room_i and serve_room_i say which queues can take work; without room, or without the buffer that
// it needs, a frame is overrun and nothing happens, and a timer's work is left for the next time.
module nic_decide (
    input  logic [1:0]        work_i,
    input  nic_pkg::meta_t    meta_i,
    input  logic [7:0]        own_rank_i,
    // tables
    input  logic              job_hit_i,
    input  logic [4:0]        job_row_i,
    input  nic_pkg::job_t     job_i,
    input  logic              member_i,     // the sender is one
    input  logic [4:0]        index_i,
    input  logic              node_valid_i, // the sender's row
    input  logic              node_port_i,
    input  logic              mac_port_i,   // network port of the destination MAC
    input  nic_pkg::dir_t     dir_i,
    input  logic              late_i,
    input  logic              held_i,       // every page that is read is written
    output logic              wait_held_o,
    // slot
    input  logic              hit_i,
    input  logic              free_i,
    input  logic              filling_i,
    input  logic              done_i,
    input  logic              sent_i,
    input  nic_pkg::slot_t    row_i,
    input  logic [31:0]       in_i,
    input  logic [31:0]       silent_i,
    input  logic              pool_full_i,  // as many are parked as may be
    input  logic              started_i,
    input  logic [31:0]       newest_i,
    // queues
    input  logic [2:0]        room_i,
    input  logic              store_room_i,
    input  logic [2:0]        serve_room_i,
    output nic_pkg::act_t     act_o,
    output nic_pkg::slot_t    row_o,        // the slot with this contribution
    output logic [31:0]       in_o
);
  nic_pkg::hdr_t h;
  assign h = meta_i.hdr;

  logic        from_host, reliable, bit_last, bit_forwarded;
  logic [31:0] self_bit, all_bits, index_bit;
  logic [2:0]  to_sender;
  assign from_host = meta_i.src == nic_pkg::SRC_HOST;
  assign reliable = h.flags[nic_frame_pkg::FL_RELIABLE];
  assign bit_last = h.flags[nic_frame_pkg::FL_LAST];
  assign bit_forwarded = h.flags[nic_frame_pkg::FL_FORWARDED];
  assign self_bit = job_i.self ? 32'd1 << job_i.self_idx : 32'd0;
  assign all_bits = job_i.count[5] ? 32'hFFFF_FFFF : (32'd1 << job_i.count[4:0]) - 32'd1;
  assign index_bit = 32'd1 << index_i;
  assign to_sender = h.shard == own_rank_i ? 3'b100 : !node_valid_i ? 3'b000 : node_port_i ? 3'b010 : 3'b001;

  // ---- KV -------------------------------------------------------------------------------------------
  logic        is_kv, here, outside, kv_ok;
  logic [31:0] length;
  logic [32:0] kv_end;
  assign is_kv = h.opcode <= nic_frame_pkg::OP_KV_DATA;
  assign here = (dir_i.named & self_bit) != '0;
  assign length = h.opcode == nic_frame_pkg::OP_KV_READ ? meta_i.pay0[63:32] : {18'd0, meta_i.pay_len};
  assign kv_end = {1'b0, h.offset} + {1'b0, length};
  assign outside = h.offset[11:0] != '0 || length == '0 || kv_end > {1'b0, dir_i.bytes};
  assign kv_ok = job_hit_i && member_i && dir_i.hit && h.epoch >= dir_i.epoch && !outside;
  assign wait_held_o = work_i == nic_pkg::WORK_FRAME && meta_i.fate == nic_frame_pkg::FATE_NONE && kv_ok &&
      h.opcode == nic_frame_pkg::OP_KV_READ && here;

  // ---- contributions ----------------------------------------------------------------------------------
  logic        is_barrier, old, agrees, complete, at_once;
  logic [31:0] in_now, below, since_newest;
  logic [5:0]  count;
  logic        everyone;
  assign is_barrier = h.opcode == nic_frame_pkg::OP_BARRIER;
  assign since_newest = h.request - (newest_i - 32'd63);
  assign old = started_i && since_newest[31];
  assign agrees = row_i.opcode == h.opcode && row_i.heads == h.heads && row_i.dim == h.dim &&
      row_i.dtype == h.dtype && row_i.shards == h.shards &&
      (h.opcode != nic_frame_pkg::OP_REDUCE || row_i.rop == h.flags[5:4]);
  assign in_now = (hit_i ? in_i : 32'd0) | index_bit;
  always_comb begin
    count = '0;
    for (int unsigned m = 0; m < 32; m++) count = count + {5'd0, in_now[m]};
  end
  assign complete = {2'd0, count} == h.shards;
  assign below = index_bit - 32'd1;
  assign at_once = complete || (in_now & below) == below || is_barrier;
  assign everyone = is_barrier || h.flags[nic_frame_pkg::FL_EVERYONE] || (hit_i && row_i.everyone);

  // Payload of the result: statistics of 4 bytes a head instead of 8.
  logic [13:0] in_stats, out_stats, result_len;
  assign in_stats = {8'((h.heads[10:0] + 11'd7) >> 3), 6'd0};
  assign out_stats = {8'((h.heads[10:0] + 11'd15) >> 4), 6'd0};
  assign result_len = h.opcode == nic_frame_pkg::OP_PARTIAL ? meta_i.pay_len - in_stats + out_stats : meta_i.pay_len;

  always_comb begin
    row_o = row_i;
    if (!hit_i) begin
      row_o.opcode = h.opcode;
      row_o.dtype = h.dtype;
      row_o.shards = h.shards;
      row_o.rop = h.flags[5:4];
      row_o.heads = h.heads;
      row_o.dim = h.dim;
      row_o.len = result_len;
      row_o.job_row = job_row_i;
      row_o.key = nic_pkg::key_of(meta_i.hdr);
    end
    row_o.reliable = reliable || (hit_i && row_i.reliable);
    row_o.everyone = everyone;
    if (!hit_i || index_i < row_i.lowest) begin
      row_o.lowest = index_i;
      row_o.epoch = h.epoch;
    end
  end
  assign in_o = in_now;

  // ---- targets of a result: members, ports
  logic [31:0] targets, others;
  logic [2:0]  target_ports, silent_ports;
  assign targets = everyone ? all_bits : 32'd1 << job_i.root;
  assign others = targets & ~self_bit;
  assign target_ports = {(targets & self_bit) != '0, (others & job_i.port1) != '0, (others & ~job_i.port1) != '0};
  assign silent_ports = {1'b0, (silent_i & job_i.port1) != '0, (silent_i & ~job_i.port1) != '0};
  // ... of a copy
  logic [31:0] named_others, query_others;
  logic [31:0] owner_bit;
  assign named_others = dir_i.named & ~self_bit;
  assign query_others = all_bits & ~self_bit;
  assign owner_bit = 32'd1 << dir_i.owner;

  logic [7:0] result_opcode;
  assign result_opcode = row_i.opcode == nic_frame_pkg::OP_PARTIAL ? nic_frame_pkg::OP_MERGED :
      row_i.opcode == nic_frame_pkg::OP_REDUCE ? nic_frame_pkg::OP_RESULT : nic_frame_pkg::OP_BARRIER;

  // ---- the fate, and what it brings with it -------------------------------------------------------------
  nic_pkg::act_t want;
  logic          deliver; // to the own host as it is, acknowledged
  always_comb begin
    want = '0;
    want.fate = nic_frame_pkg::FATE_NONE;
    deliver = 1'b0;
    if (work_i == nic_pkg::WORK_RESEND) begin
      if (done_i && sent_i && job_hit_i) begin
        want.result = silent_ports;
        want.members = silent_i;
        want.again = 1'b1;
      end
    end else if (work_i == nic_pkg::WORK_SILENT) begin
      if (done_i && sent_i) begin
        want.quiet = 1'b1;
        want.ev = silent_i != '0;
        want.ev_type = nic_frame_pkg::EV_UNACKNOWLEDGED;
        want.ev_opcode = result_opcode;
        want.ev_ranks = silent_i;
      end
    end else if (work_i == nic_pkg::WORK_TIMEOUT) begin
      if (filling_i) begin
        want.kill = 1'b1;
        want.ev = 1'b1;
        want.ev_type = nic_frame_pkg::EV_SLOT_TIMEOUT;
        want.ev_opcode = row_i.opcode;
        want.ev_ranks = all_bits & ~in_i;
      end
    end else if (meta_i.fate != nic_frame_pkg::FATE_NONE) begin
      // not for this node: out of the port that leads there, or further down the chain
      want.fate = from_host ? nic_frame_pkg::FATE_NOT_MINE : nic_frame_pkg::FATE_PASSED;
      want.raw = (from_host ? mac_port_i : meta_i.src == nic_pkg::SRC_NET0) ? 3'b010 : 3'b001;
    end else if (!job_hit_i || (!member_i && !is_kv)) begin
      want.fate = nic_frame_pkg::FATE_NO_ENTRY;
    end else if (is_kv) begin
      want.nack = 1'b1;
      want.epoch = dir_i.epoch;
      if (!member_i || !dir_i.hit) begin
        want.fate = nic_frame_pkg::FATE_NO_ENTRY;
        want.reason = nic_frame_pkg::NACK_NO_ENTRY[2:0];
        want.epoch = '0;
      end else if (h.epoch < dir_i.epoch) begin
        want.fate = nic_frame_pkg::FATE_STALE_EPOCH;
        want.reason = nic_frame_pkg::NACK_STALE_EPOCH[2:0];
      end else if (outside) begin
        want.fate = nic_frame_pkg::FATE_OUT_OF_RANGE;
        want.reason = nic_frame_pkg::NACK_OUT_OF_RANGE[2:0];
      end else if (h.opcode == nic_frame_pkg::OP_KV_WRITE && (here || !bit_forwarded)) begin
        want.nack = 1'b0;
        want.fate = here ? nic_frame_pkg::FATE_KV_WRITTEN : nic_frame_pkg::FATE_KV_FORWARDED;
        want.store = here;
        want.forward = !here && !from_host;
        if (!here || from_host) want.members = named_others;
        if (here && reliable) want.answer = to_sender;
      end else if (h.opcode == nic_frame_pkg::OP_KV_READ && here && held_i) begin
        want.nack = 1'b0;
        want.fate = nic_frame_pkg::FATE_KV_SERVED;
        want.serve = to_sender;
      end else if (h.opcode == nic_frame_pkg::OP_KV_READ && owner_bit != self_bit && !bit_forwarded) begin
        want.nack = 1'b0;
        want.fate = nic_frame_pkg::FATE_KV_FORWARDED;
        want.forward = 1'b1;
        want.members = owner_bit;
      end else if (h.opcode == nic_frame_pkg::OP_KV_DATA) begin
        want.nack = 1'b0;
        deliver = 1'b1;
      end else begin
        want.fate = nic_frame_pkg::FATE_NO_ENTRY;
        want.reason = nic_frame_pkg::NACK_NO_ENTRY[2:0];
      end
      if (want.nack) want.answer = to_sender;
      want.copy = {1'b0, (want.members & job_i.port1) != '0, (want.members & ~job_i.port1) != '0};
    end else if (h.opcode == nic_frame_pkg::OP_QUERY && from_host) begin
      want.fate = nic_frame_pkg::FATE_HOST_DELIVERED;
      want.members = query_others;
      want.copy = {1'b0, (query_others & job_i.port1) != '0, (query_others & ~job_i.port1) != '0};
      deliver = job_i.self;
    end else if (h.opcode == nic_frame_pkg::OP_ACK || h.opcode == nic_frame_pkg::OP_NACK) begin
      want.fate = nic_frame_pkg::FATE_CONTROL;
      if (h.opcode == nic_frame_pkg::OP_ACK && done_i && silent_i != '0 && result_opcode == h.dtype) begin
        want.quiet = 1'b1;
        want.silent = silent_i & ~index_bit;
      end else begin
        want.ev = 1'b1;
        want.ev_type = nic_frame_pkg::EV_CONTROL;
        want.ev_opcode = h.dtype;
        want.ev_ranks = index_bit;
      end
    end else if (h.opcode == nic_frame_pkg::OP_PARTIAL || h.opcode == nic_frame_pkg::OP_REDUCE ||
                 (is_barrier && !bit_last)) begin
      if (old || (hit_i ? !filling_i : late_i)) begin
        want.fate = nic_frame_pkg::FATE_LATE;
        if (reliable) want.answer = to_sender;
      end else if (hit_i && (in_i & index_bit) != '0) begin
        want.fate = nic_frame_pkg::FATE_DUPLICATE;
        if (reliable) want.answer = to_sender;
      end else if (hit_i && !agrees) begin
        want.fate = nic_frame_pkg::FATE_MISMATCH;
        want.answer = to_sender;
        want.nack = 1'b1;
        want.reason = nic_frame_pkg::NACK_MISMATCH[2:0];
      end else if ((!hit_i && !free_i) || (!at_once && pool_full_i)) begin
        want.fate = nic_frame_pkg::FATE_NO_SLOT;
        want.answer = to_sender;
        want.nack = 1'b1;
        want.reason = nic_frame_pkg::NACK_NO_SLOT[2:0];
      end else begin
        want.fate = nic_frame_pkg::FATE_CONTRIBUTED;
        want.put = 1'b1;
        want.payload = !is_barrier;
        want.complete = complete;
        if (reliable) want.answer = to_sender;
        if (complete) begin
          want.result = target_ports;
          want.members = others;
          want.quiet = 1'b1;
          want.silent = row_o.reliable ? others : 32'd0;
        end
      end
    end else begin
      deliver = 1'b1;
    end
    if (deliver) begin
      want.fate = nic_frame_pkg::FATE_HOST_DELIVERED;
      want.raw = 3'b100;
      if (reliable && h.opcode != nic_frame_pkg::OP_KV_DATA) want.answer = to_sender;
    end
  end

  // ---- whole or not at all ------------------------------------------------------------------------------
  logic [2:0] ports;
  logic       needs_buffer, fits;
  assign ports = want.raw | want.copy | want.answer | want.result | want.serve;
  assign needs_buffer = want.raw != '0 || want.copy != '0 || want.store || want.payload;
  assign fits = (ports & ~room_i) == '0 && (!want.store || store_room_i) &&
      (want.serve & ~serve_room_i) == '0 && !(needs_buffer && meta_i.nobuf);
  always_comb begin
    act_o = want;
    if (!fits) begin
      act_o = '0;
      act_o.fate = work_i == nic_pkg::WORK_FRAME ? nic_frame_pkg::FATE_OVERRUN : nic_frame_pkg::FATE_NONE;
    end
  end

  // Whole records come in; what is built from the rest is nic_emit's.
  logic [1177:0] unused_records;
  assign unused_records = {meta_i, job_i, dir_i, h, since_newest};
endmodule
