// KV write engine: blocks of frame buffers to memory.
//
// A command {mem, buf, off, len, addr, token} fetches the beats that hold bytes off to off + len - 1 of a
// buffer, dropping its reference, and writes them to addr, a multiple of 4,096, so that a command is one
// burst and has one response. done_valid_o tells each token once, in order, when its response is there;
// done_bad_o: that was an error, and the page at bad_addr_o is not what it should be.
// A queue of 32 commands, 32 writes under way; one beat a cycle, commands back to back (one cycle more for
// one of several beats whose first byte is not the first of its beat). Waits only for memory and for the
// crossbar; a write that has been announced gets its data, since the buffer is complete.
module nic_kvwr (
    input  logic           clk_i,
    input  logic           rst_ni,
    input  logic           kvw_valid_i,
    output logic           kvw_ready_o,
    input  nic_pkg::kvw_t  kvw_i,
    // to the crossbar
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
    // to memory
    output logic [63:0]    awaddr_o,
    output logic [7:0]     awlen_o,
    output logic           awvalid_o,
    input  logic           awready_i,
    output logic [511:0]   wdata_o,
    output logic [63:0]    wstrb_o,
    output logic           wlast_o,
    output logic           wvalid_o,
    input  logic           wready_i,
    input  logic [1:0]     bresp_i,
    input  logic           bvalid_i,
    output logic           bready_o,
    // what has become of the writes
    output logic           done_valid_o,
    output logic [7:0]     done_token_o,
    output logic           done_bad_o,
    output logic [63:0]    bad_addr_o,
    output logic           busy_o
);
  localparam int unsigned Queue = 32;

  nic_pkg::kvw_t k;
  logic          k_valid, k_pop, fetched_q, started_q, wr_valid, wr_ready, order_ready, order_valid, cmd_fire, wr_fire;
  logic          done_q, bad_q, unused_idle, unused_err;
  logic [71:0]   order, order_q;
  logic [13:0]   span;
  logic [5:0]    unused_span;
  logic [$clog2(Queue + 1)-1:0] unused_k_count, unused_order_count;

  // an engine with nothing to do has no clock
  logic clk;
  mr_clk_gate u_gate (.clk_i, .en_i(!rst_ni || kvw_valid_i || busy_o), .clk_o(clk));

  mr_fifo #(.Width(nic_pkg::KVW_W), .Depth(Queue)) u_queue (
    .clk_i(clk), .rst_ni, .valid_i(kvw_valid_i), .ready_o(kvw_ready_o), .data_i(kvw_i), .valid_o(k_valid), .ready_i(k_pop),
    .data_o(k), .count_o(unused_k_count)
  );

  // ---- a command goes to the crossbar and to the write master, each at its own time ----
  assign cmd_valid_o = k_valid && !fetched_q;
  assign cmd_mem_o   = k.mem;
  assign cmd_buf_o   = k.buf_id;
  assign cmd_beat_o  = {1'b0, k.off[12:6]};
  assign span        = {8'd0, k.off[5:0]} + {1'b0, k.len} + 14'd63;
  assign cmd_beats_o = span[13:6];
  assign unused_span = span[5:0];
  assign cmd_rel_o   = 1'b1;
  assign wr_valid    = k_valid && !started_q && order_ready;
  assign cmd_fire    = cmd_valid_o && cmd_ready_i;
  assign wr_fire     = wr_valid && wr_ready;
  assign k_pop       = (fetched_q || cmd_fire) && (started_q || wr_fire);

  always_ff @(posedge clk) begin
    fetched_q <= rst_ni && !k_pop && (fetched_q || cmd_fire);
    started_q <= rst_ni && !k_pop && (started_q || wr_fire);
  end

  mr_axi_wr #(.LenWidth(16), .MaxBurst(64), .MaxOutstanding(Queue)) u_wr (
    .clk_i(clk), .rst_ni, .clear_i(1'b0), .idle_o(unused_idle), .err_o(unused_err), .cmd_valid_i(wr_valid),
    .cmd_ready_o(wr_ready), .cmd_addr_i(k.addr), .cmd_len_i({3'b0, k.len}), .cmd_src_off_i(k.off[5:0]),
    .valid_i(fetch_valid_i), .ready_o(fetch_ready_o), .data_i(fetch_data_i), .awaddr_o, .awlen_o, .awvalid_o,
    .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i, .bresp_i, .bvalid_i, .bready_o
  );

  // ---- responses come in the order of the commands ----
  mr_fifo #(.Width(72), .Depth(Queue)) u_order (
    .clk_i(clk), .rst_ni, .valid_i(wr_fire), .ready_o(order_ready), .data_i({k.token, k.addr}), .valid_o(order_valid),
    .ready_i(bvalid_i), .data_o(order), .count_o(unused_order_count)
  );
  always_ff @(posedge clk) begin
    done_q  <= rst_ni && bvalid_i;
    bad_q   <= bresp_i != 2'b00;
    order_q <= order;
    if (rst_ni) begin
      response_is_known: assert (!bvalid_i || order_valid);
      if (k_valid) one_page: assert (k.addr[11:0] == '0 && k.len != '0 && k.len <= 13'd4096);
    end
  end
  assign done_valid_o = done_q;
  assign done_token_o = order_q[71:64];
  assign done_bad_o   = bad_q;
  assign bad_addr_o   = order_q[63:0];
  assign busy_o       = k_valid || order_valid || done_q;
endmodule
