// KV read engine of one transmit port: a read of any length becomes KV_DATA frames of up to 4,096 bytes.
//
// A command {addr, len, offset, hdr, token} waits in a queue of 16 until the KV write with its token has its
// response, then is read in pieces of at most 4,096 bytes, the next while earlier ones are on their way
// (two pieces of data at most). A piece is stored whole; frame_valid_o offers its length, the ones'
// complement sum of its bytes and its header, with flags and offset set; its payload follows on data_o, a
// beat a cycle, byte 0 first, zero beyond the end. Frames may be taken ahead of their payload, at most 8.
// Where memory answers a piece with an error, or a write failed while the read waited for it (write_bad_i,
// and up to 16 cycles before the read came), its frame has frame_skip_o and no payload: nothing must be
// sent, and the requester asks again.
// addr and offset are multiples of 4,096 and len is at least 1, so that a piece is one burst.
// Never holds the memory port: data are asked for only when there is room for them.
module nic_kvrd (
    input  logic           clk_i,
    input  logic           rst_ni,
    input  logic           kvr_valid_i,
    output logic           kvr_ready_o,
    input  nic_pkg::kvr_t  kvr_i,
    input  logic [255:0]   kv_pending_i,
    input  logic           write_bad_i,
    output logic           left_valid_o, // a command holds this token no longer
    output logic [7:0]     left_token_o,
    output logic           frame_valid_o,
    input  logic           frame_ready_i,
    output logic [12:0]    frame_len_o,
    output logic [15:0]    frame_sum_o,
    output logic [255:0]   frame_hdr_o,
    output logic           frame_last_o, // of its read
    output logic           frame_skip_o,
    output logic           data_valid_o,
    input  logic           data_ready_i,
    output logic [511:0]   data_o,
    output logic           data_last_o,
    output logic [63:0]    araddr_o,
    output logic [7:0]     arlen_o,
    output logic           arvalid_o,
    input  logic           arready_i,
    input  logic [511:0]   rdata_i,
    input  logic [1:0]     rresp_i,
    input  logic           rlast_i,
    input  logic           rvalid_i,
    output logic           rready_o,
    output logic           read_bad_o, // pulse: memory answered with an error
    output logic           busy_o
);
  localparam int unsigned Queue  = 16;
  localparam int unsigned Pieces = 8;   // asked for and not yet taken as a frame
  localparam int unsigned Store  = 128; // beats
  localparam int unsigned BadW   = 16;
  localparam int unsigned PieceW = 1 + 1 + 13 + 256; // {skip, last, len, hdr}

  // ---- an engine with nothing to do has no clock
  logic clk;
  mr_clk_gate u_gate (.clk_i, .en_i(!rst_ni || kvr_valid_i || busy_o), .clk_o(clk));

  // ---- the queue; an entry remembers how many writes had failed when it came ----
  /* verilator lint_off UNUSEDSIGNAL */ // token, and flags and offset of the header
  nic_pkg::kvr_t    k;
  /* verilator lint_on UNUSEDSIGNAL */
  logic             k_valid, k_pop, push, mark_recent, waited, poison, unused_m_ready, unused_m_valid;
  logic [BadW-1:0]  bad_q, mark_bad;
  logic [4:0]       recent_q;
  logic [$clog2(Queue + 1)-1:0] unused_k_count, unused_m_count;

  assign push = kvr_valid_i && kvr_ready_o;
  mr_fifo #(.Width(nic_pkg::KVR_W), .Depth(Queue)) u_queue (
    .clk_i(clk), .rst_ni, .valid_i(kvr_valid_i), .ready_o(kvr_ready_o), .data_i(kvr_i), .valid_o(k_valid),
    .ready_i(k_pop), .data_o(k), .count_o(unused_k_count)
  );
  mr_fifo #(.Width(BadW + 1), .Depth(Queue)) u_marks (
    .clk_i(clk), .rst_ni, .valid_i(push), .ready_o(unused_m_ready), .data_i({bad_q, recent_q != '0}),
    .valid_o(unused_m_valid), .ready_i(left_valid_o), .data_o({mark_bad, mark_recent}), .count_o(unused_m_count)
  );
  nic_waits #(.Depth(Queue)) u_waits (
    .clk_i(clk), .rst_ni, .push_i(push), .token_i(kvr_i.token), .pending_i(kv_pending_i), .left_valid_o, .left_token_o,
    .left_bad_i(mark_recent || mark_bad != bad_q || write_bad_i), .valid_o(waited), .bad_o(poison), .pop_i(k_pop)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bad_q    <= '0;
      recent_q <= '0;
    end else begin
      if (write_bad_i) bad_q <= bad_q + 1'b1;
      recent_q <= write_bad_i ? 5'd16 : recent_q - 5'(recent_q != '0);
    end
  end

  // ---- pieces ----
  logic             active_q, poison_q, p_go, p_last, p_ready, rd_ready, rd_valid, p_fire;
  logic [63:0]      addr_q;
  logic [31:0]      left_q, offset_q;
  logic [215:0]     hdr_q; // without flags and offset
  logic [12:0]      p_len;
  logic [3:0]       pieces_q;
  logic             frame_fire;

  assign k_pop        = k_valid && !active_q && waited;
  assign p_last       = left_q <= 32'd4096 || poison_q;
  assign p_len        = left_q <= 32'd4096 ? left_q[12:0] : 13'd4096;
  assign p_go         = active_q && pieces_q != 4'(Pieces);
  assign rd_valid     = p_go && p_ready && !poison_q;
  assign p_fire       = p_go && p_ready && (poison_q || rd_ready);

  always_ff @(posedge clk) begin
    if (k_pop) begin
      addr_q   <= k.addr;
      left_q   <= k.len;
      offset_q <= k.offset;
      hdr_q    <= {k.hdr[255:232], k.hdr[223:32]};
      poison_q <= poison;
    end else if (p_fire) begin
      addr_q   <= addr_q + 64'd4096;
      left_q   <= left_q - 32'd4096;
      offset_q <= offset_q + 32'd4096;
    end
    if (!rst_ni) begin
      active_q <= 1'b0;
      pieces_q <= '0;
    end else begin
      active_q <= k_pop || (active_q && !(p_fire && p_last));
      pieces_q <= pieces_q + 4'(p_fire) - 4'(frame_fire);
    end
  end

  // ---- memory ----
  logic         m_valid, m_ready, m_last, m_idle, unused_err;
  logic [511:0] m_data, m_masked;
  logic [63:0]  m_keep;
  mr_axi_rd #(.LenWidth(16), .MaxBurst(64), .MaxOutstanding(8), .Buffer(128)) u_rd (
    .clk_i(clk), .rst_ni, .clear_i(1'b0), .idle_o(m_idle), .err_o(unused_err), .cmd_valid_i(rd_valid),
    .cmd_ready_o(rd_ready), .cmd_addr_i(addr_q), .cmd_len_i({3'b0, p_len}), .valid_o(m_valid), .ready_i(m_ready),
    .data_o(m_data), .keep_o(m_keep), .last_o(m_last), .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rdata_i,
    .rresp_i, .rlast_i, .rvalid_i, .rready_o
  );
  always_comb begin
    m_masked = '0;
    if (m_valid) for (int unsigned b = 0; b < 64; b++) if (m_keep[b]) m_masked[8*b+:8] = m_data[8*b+:8];
  end

  // a piece is a burst: its responses come before its last beat does
  logic burst_bad_q, e_bad, e_valid, unused_e_ready, e_pop;
  logic [$clog2(Pieces + 1)-1:0] unused_e_count, unused_p_count, unused_f_count, unused_w_count;
  always_ff @(posedge clk) begin
    if (!rst_ni) burst_bad_q <= 1'b0;
    else if (rvalid_i) burst_bad_q <= !rlast_i && (burst_bad_q || rresp_i != 2'b00);
  end
  mr_fifo #(.Width(1), .Depth(Pieces)) u_errors (
    .clk_i(clk), .rst_ni, .valid_i(rvalid_i && rlast_i), .ready_o(unused_e_ready),
    .data_i(burst_bad_q || rresp_i != 2'b00), .valid_o(e_valid), .ready_i(e_pop), .data_o(e_bad),
    .count_o(unused_e_count)
  );

  // ---- the store, and the sum of what goes in ----
  logic         s_ready, s_valid, s_pop, s_last, sum_done, sum_room, sum_valid;
  logic [511:0] s_data;
  logic [15:0]  sum, sum_made;
  logic [$clog2(Pieces + 1)-1:0] unused_sum_count;
  logic [$clog2(Store + 1)-1:0] unused_s_count;
  assign m_ready = s_ready;
  mr_fifo #(.Width(513), .Depth(Store)) u_store (
    .clk_i(clk), .rst_ni, .valid_i(m_valid), .ready_o(s_ready), .data_i({m_last, m_masked}), .valid_o(s_valid),
    .ready_i(s_pop), .data_o({s_last, s_data}), .count_o(unused_s_count)
  );
  nic_sum u_sum (
    .clk_i(clk), .rst_ni, .valid_i(m_valid && s_ready), .last_i(m_last), .data_i(m_masked), .done_o(sum_done), .sum_o(sum_made)
  );
  mr_fifo #(.Width(16), .Depth(Pieces)) u_sums (
    .clk_i(clk), .rst_ni, .valid_i(sum_done), .ready_o(sum_room), .data_i(sum_made), .valid_o(sum_valid), .ready_i(e_pop),
    .data_o(sum), .count_o(unused_sum_count)
  );

  // ---- a piece that is all here, or has nothing to come, becomes a frame ----
  logic              p_valid, p_take, p_skip, p_is_last, f_ready, f_valid, f_bad, f_has, w_ready;
  logic [12:0]       f_len;
  logic [255:0]      f_hdr;
  mr_fifo #(.Width(PieceW), .Depth(Pieces)) u_pieces (
    .clk_i(clk), .rst_ni, .valid_i(p_go && (poison_q || rd_ready)), .ready_o(p_ready),
    .data_i({poison_q, p_last, p_len, hdr_q[215:192], 7'd0, p_last, hdr_q[191:0], offset_q}), .valid_o(p_valid),
    .ready_i(p_take), .data_o({p_skip, p_is_last, f_len, f_hdr}), .count_o(unused_p_count)
  );
  assign p_take     = p_valid && (p_skip || sum_valid);
  assign e_pop      = p_valid && !p_skip && sum_valid;
  assign f_bad      = p_skip || e_bad;
  assign read_bad_o = e_pop && e_bad;
  mr_fifo #(.Width(PieceW + 16 + 1), .Depth(Pieces)) u_frames (
    .clk_i(clk), .rst_ni, .valid_i(p_take), .ready_o(f_ready), .data_i({f_bad, p_is_last, f_len, f_hdr, sum, !p_skip}),
    .valid_o(f_valid), .ready_i(frame_ready_i && w_ready),
    .data_o({frame_skip_o, frame_last_o, frame_len_o, frame_hdr_o, frame_sum_o, f_has}), .count_o(unused_f_count)
  );
  assign frame_valid_o = f_valid && w_ready;
  assign frame_fire    = frame_valid_o && frame_ready_i;

  // ---- payload follows its frame; that of a bad piece goes nowhere ----
  logic w_valid, w_drop, w_pop;
  mr_fifo #(.Width(1), .Depth(Pieces)) u_owed (
    .clk_i(clk), .rst_ni, .valid_i(frame_fire && f_has), .ready_o(w_ready), .data_i(frame_skip_o),
    .valid_o(w_valid), .ready_i(w_pop), .data_o(w_drop), .count_o(unused_w_count)
  );
  assign data_valid_o = w_valid && !w_drop && s_valid;
  assign data_o       = s_data;
  assign data_last_o  = s_last;
  assign s_pop        = w_valid && (w_drop || data_ready_i);
  assign w_pop        = s_pop && s_valid && s_last;

  assign busy_o = k_valid || active_q || pieces_q != '0 || w_valid || !m_idle;

  always_ff @(posedge clk) begin
    if (rst_ni) begin
      if (k_valid) aligned: assert (k.addr[11:0] == '0 && k.offset[11:0] == '0 && k.len != '0);
      frame_has_room: assert (!p_take || f_ready);
      sum_has_room:   assert (!sum_done || sum_room);
      sum_has_piece:  assert (!sum_valid || (p_valid && e_valid));
    end
  end
endmodule
