// The rotor generation unit behind its registers: one job at a time, tile or apply mode.
//
//   read port -> rgu_seed -> tables -+-> rgu_tile  -> write port or stream
//           \-> input vectors --------+-> rgu_apply -> write port
//
// job_* fields are stable from ap_start_i to ap_ready_o, which comes with ap_done_o once every write has
// been answered. A job that cannot run is done after three cycles with error_o set, nothing read or written.
// An AXI error, or a scale that is not finite, is reported at the end of the job.
module rgu_top (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         ap_start_i,
    output logic         ap_ready_o,
    output logic         ap_done_o,
    output logic         ap_idle_o,
    // job registers
    input  logic [63:0]  seeds_i,
    input  logic [63:0]  row_scale_i,
    input  logic [63:0]  dst_i,
    input  logic [63:0]  src_i,
    input  logic [31:0]  dst_stride_i,
    input  logic [31:0]  src_stride_i,
    input  logic         mode_apply_i,
    input  logic         mode_row_scale_i,
    input  logic         mode_stream_i,
    input  logic         mode_saturate_i,
    input  logic [3:0]   mode_format_i,
    input  logic [3:0]   mode_n_i,
    input  logic [5:0]   mode_terms_i,
    input  logic         mode_has_odd_i,
    input  logic         mode_has_even_i,
    input  logic [15:0]  chunks_in_i,
    input  logic [15:0]  chunks_out_i,
    input  logic [31:0]  row0_i,
    input  logic [31:0]  row1_i,
    input  logic [31:0]  col0_i,
    input  logic [31:0]  col1_i,
    input  logic [31:0]  scale_i,
    input  logic [31:0]  batch_i,
    input  logic [31:0]  d_in_i,
    input  logic [31:0]  d_out_i,
    // status registers
    output logic [63:0]  cycles_o,
    output logic [63:0]  busy_o,
    output logic [63:0]  stall_in_o,
    output logic [63:0]  stall_out_o,
    output logic [63:0]  items_in_o,
    output logic [63:0]  items_out_o,
    output logic [63:0]  mults_busy_o,
    output logic [7:0]   error_o,
    // AXI4, 512 bits, INCR bursts of full width
    output logic [3:0]   awid_o,
    output logic [63:0]  awaddr_o,
    output logic [7:0]   awlen_o,
    output logic         awvalid_o,
    input  logic         awready_i,
    output logic [511:0] wdata_o,
    output logic [63:0]  wstrb_o,
    output logic         wlast_o,
    output logic         wvalid_o,
    input  logic         wready_i,
    input  logic [3:0]   bid_i,
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
    output logic         rready_o,
    // AXI4-Stream
    output logic         st_valid_o,
    input  logic         st_ready_i,
    output logic [511:0] st_data_o,
    output logic [63:0]  st_keep_o,
    output logic         st_last_o
);
  // ---- can the job run -----------------------------------------------------------------------------
  logic        n10, window_ok;
  logic [7:0]  bad;
  logic [25:0] rows_max, cols_max;
  logic [31:0] row_end, col_end;
  logic [15:0] o0, o1, i0, i1;
  logic [31:0] edge_len;  // of a chunk
  assign n10 = mode_n_i == 4'd10;
  assign edge_len = n10 ? 32'd1024 : 32'd256;
  assign rows_max = n10 ? {chunks_out_i, 10'd0} : {2'd0, chunks_out_i, 8'd0};
  assign cols_max = n10 ? {chunks_in_i, 10'd0} : {2'd0, chunks_in_i, 8'd0};
  // an apply job has all of W as its window, and no chunk more
  assign window_ok = mode_apply_i
      ? d_in_i != 32'd0 && d_out_i != 32'd0 && d_in_i <= {6'd0, cols_max} &&
          d_out_i <= {6'd0, rows_max} && {6'd0, cols_max} - d_in_i < edge_len &&
          {6'd0, rows_max} - d_out_i < edge_len && batch_i != 32'd0
      : row0_i < row1_i && col0_i < col1_i && row1_i <= {6'd0, rows_max} && col1_i <= {6'd0, cols_max};

  always_comb begin
    bad = rgu_pkg::ERR_OK;
    if (mode_n_i != 4'd8 && mode_n_i != 4'd10) bad = rgu_pkg::ERR_N;
    else if (mode_terms_i == 6'd0 || mode_terms_i > 6'd32 || (!mode_has_odd_i && !mode_has_even_i))
      bad = rgu_pkg::ERR_TERMS;
    else if (!window_ok) bad = rgu_pkg::ERR_WINDOW;
    else if ((!mode_apply_i && mode_format_i > rgu_pkg::FMT_FP32) ||
             (!mode_row_scale_i && scale_i[30:23] == 8'hFF)) bad = rgu_pkg::ERR_FORMAT;
    else if (seeds_i[5:0] != 6'd0 || (mode_row_scale_i && row_scale_i[5:0] != 6'd0))
      bad = rgu_pkg::ERR_ALIGN;
  end

  assign row_end = row1_i - 32'd1;
  assign col_end = col1_i - 32'd1;
  assign o0 = mode_apply_i ? 16'd0 : n10 ? row0_i[25:10] : row0_i[23:8];
  assign i0 = mode_apply_i ? 16'd0 : n10 ? col0_i[25:10] : col0_i[23:8];
  assign o1 = mode_apply_i ? chunks_out_i - 16'd1 : n10 ? row_end[25:10] : row_end[23:8];
  assign i1 = mode_apply_i ? chunks_in_i - 16'd1 : n10 ? col_end[25:10] : col_end[23:8];
  logic [27:0] unused_end;
  assign unused_end = {row_end[31:26], row_end[7:0], col_end[31:26], col_end[7:0]};

  // ---- life of a job -------------------------------------------------------------------------------
  typedef enum logic [2:0] {Idle, Check, Start, Run, Drain, Done} state_e;
  state_e state_q, state_d;
  logic   start, unit_done, tile_done, apply_done, quiet;
  logic   rd_err, x_err, wr_err, seed_busy, seed_rd_idle, x_rd_idle, wr_idle, bad_scale;
  logic   running, is_bad;

  assign is_bad = bad != rgu_pkg::ERR_OK;
  assign start = state_q == Start;
  assign unit_done = mode_apply_i ? apply_done : tile_done;
  assign quiet = wr_idle && seed_rd_idle && x_rd_idle && !seed_busy;
  assign running = state_q == Start || state_q == Run || state_q == Drain;

  always_comb begin
    state_d = state_q;
    case (state_q)
      Idle: if (ap_start_i) state_d = Check;
      Check: state_d = is_bad ? Done : Start;
      Start: state_d = Run;
      Run: if (unit_done) state_d = Drain;
      Drain: if (quiet) state_d = Done;
      default: state_d = Idle;
    endcase
  end
  assign ap_done_o = state_q == Done;
  assign ap_ready_o = state_q == Done;
  assign ap_idle_o = state_q == Idle;

  logic [7:0] error_q;
  logic       scale_q;
  assign error_o = error_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      error_q <= rgu_pkg::ERR_OK;
      scale_q <= 1'b0;
    end else begin
      state_q <= state_d;
      if (start) scale_q <= 1'b0;
      else if (bad_scale) scale_q <= 1'b1;
      if (state_q == Check) error_q <= bad;
      if (state_q == Drain && quiet) begin
        error_q <= rd_err || x_err ? rgu_pkg::ERR_READ : wr_err ? rgu_pkg::ERR_WRITE :
            scale_q ? rgu_pkg::ERR_FORMAT : rgu_pkg::ERR_OK;
      end
    end
  end

  // ---- units that have nothing to do get no clock ------------------------------------------------
  logic clk_seed, clk_tile, clk_apply, awake;
  assign awake = state_q != Idle;
  mr_clk_gate u_gate_seed (.clk_i, .en_i(!rst_ni || awake), .clk_o(clk_seed));
  mr_clk_gate u_gate_tile (.clk_i, .en_i(!rst_ni || (awake && !mode_apply_i)), .clk_o(clk_tile));
  mr_clk_gate u_gate_apply (.clk_i, .en_i(!rst_ni || (awake && mode_apply_i)), .clk_o(clk_apply));

  // ---- seed to tables ------------------------------------------------------------------------------
  logic         seed_cmd_valid, seed_cmd_ready, seed_valid, seed_ready, unused_seed_mults;
  logic [63:0]  seed_cmd_addr;
  logic [12:0]  seed_cmd_len;
  logic [511:0] seed_data;
  logic         tab_valid, tab_rs_half, tab_row_last, tab_last, tab_pop, tab_rd_en, rs_en, rs_pop;
  logic [9:0]   tab_e;
  logic [31:0]  tab_odd, rs_data;
  logic [15:0]  tab_row, tab_col;
  logic [8:0]   tab_r_addr, tab_s_addr;
  logic [4:0]   tab_s_xor;
  logic [10:0]  rs_addr;
  logic [703:0] tab_r;
  logic [639:0] tab_s;
  logic         t_tab_pop, t_rd_en, t_rs_en, t_rs_pop, a_tab_pop, a_rd_en, a_rs_en, a_rs_pop;
  logic [8:0]   t_r_addr, t_s_addr, a_addr;
  logic [4:0]   t_s_xor;
  logic [10:0]  t_rs_addr, a_rs_addr;

  // apply mode walks a chunk row once for every group of vectors it has room for
  logic [31:0] visits;
  assign visits = !mode_apply_i ? 32'd1 : n10 ? (batch_i + 32'd3) >> 2 : (batch_i + 32'd15) >> 4;

  rgu_seed u_seed (
      .clk_i(clk_seed),
      .rst_ni,
      .start_i(start),
      .n10_i(n10),
      .terms_i(mode_terms_i),
      .seeds_i,
      .row_scale_i(mode_row_scale_i),
      .rs_base_i(row_scale_i),
      .chunks_in_i,
      .o0_i(o0),
      .o1_i(o1),
      .i0_i(i0),
      .i1_i(i1),
      .visits_i(visits),
      .busy_o(seed_busy),
      .mults_busy_o(unused_seed_mults),
      .cmd_valid_o(seed_cmd_valid),
      .cmd_ready_i(seed_cmd_ready),
      .cmd_addr_o(seed_cmd_addr),
      .cmd_len_o(seed_cmd_len),
      .rd_valid_i(seed_valid),
      .rd_ready_o(seed_ready),
      .rd_data_i(seed_data),
      .rs_en_i(rs_en),
      .rs_addr_i(rs_addr),
      .rs_data_o(rs_data),
      .rs_pop_i(rs_pop),
      .tab_valid_o(tab_valid),
      .tab_e_o(tab_e),
      .tab_odd_o(tab_odd),
      .tab_row_o(tab_row),
      .tab_col_o(tab_col),
      .tab_rs_half_o(tab_rs_half),
      .tab_row_last_o(tab_row_last),
      .tab_last_o(tab_last),
      .tab_pop_i(tab_pop),
      .rd_en_i(tab_rd_en),
      .r_addr_i(tab_r_addr),
      .s_addr_i(tab_s_addr),
      .s_xor_i(tab_s_xor),
      .r_data_o(tab_r),
      .s_data_o(tab_s)
  );

  // the modes are exclusive: the idle unit sees no tables
  assign tab_pop = mode_apply_i ? a_tab_pop : t_tab_pop;
  assign tab_rd_en = mode_apply_i ? a_rd_en : t_rd_en;
  assign tab_r_addr = mode_apply_i ? a_addr : t_r_addr;
  assign tab_s_addr = mode_apply_i ? a_addr : t_s_addr;
  assign tab_s_xor = mode_apply_i ? 5'd0 : t_s_xor;
  assign rs_en = mode_apply_i ? a_rs_en : t_rs_en;
  assign rs_addr = mode_apply_i ? a_rs_addr : t_rs_addr;
  assign rs_pop = mode_apply_i ? a_rs_pop : t_rs_pop;

  // ---- tile mode ---------------------------------------------------------------------------------
  logic         t_wcmd_valid, t_wcmd_ready, t_w_valid, t_w_ready, t_mults, t_busy, t_stall_in;
  logic         t_stall_out;
  logic [63:0]  t_wcmd_addr;
  logic [8:0]   t_wcmd_len;
  logic [5:0]   t_wcmd_off;
  logic [511:0] t_w_data;
  logic [7:0]   t_items;

  rgu_tile u_tile (
      .clk_i(clk_tile),
      .rst_ni,
      .start_i(start && !mode_apply_i),
      .done_o(tile_done),
      .n10_i(n10),
      .terms_i(mode_terms_i),
      .has_odd_i(mode_has_odd_i),
      .has_even_i(mode_has_even_i),
      .format_i(mode_format_i),
      .saturate_i(mode_saturate_i),
      .row_scale_i(mode_row_scale_i),
      .scale_i,
      .stream_i(mode_stream_i),
      .row0_i, .row1_i, .col0_i, .col1_i, .dst_i,
      .stride_i(dst_stride_i),
      .tab_valid_i(tab_valid && !mode_apply_i),
      .tab_e_i(tab_e),
      .tab_odd_i(tab_odd),
      .tab_row_i(tab_row),
      .tab_col_i(tab_col),
      .tab_rs_half_i(tab_rs_half),
      .tab_row_last_i(tab_row_last),
      .tab_last_i(tab_last),
      .tab_pop_o(t_tab_pop),
      .rd_en_o(t_rd_en),
      .r_addr_o(t_r_addr),
      .s_addr_o(t_s_addr),
      .s_xor_o(t_s_xor),
      .r_data_i(tab_r),
      .s_data_i(tab_s),
      .rs_en_o(t_rs_en),
      .rs_addr_o(t_rs_addr),
      .rs_data_i(rs_data),
      .rs_pop_o(t_rs_pop),
      .wr_cmd_valid_o(t_wcmd_valid),
      .wr_cmd_ready_i(t_wcmd_ready),
      .wr_cmd_addr_o(t_wcmd_addr),
      .wr_cmd_len_o(t_wcmd_len),
      .wr_cmd_off_o(t_wcmd_off),
      .wr_valid_o(t_w_valid),
      .wr_ready_i(t_w_ready),
      .wr_data_o(t_w_data),
      .st_valid_o, .st_ready_i, .st_data_o, .st_keep_o, .st_last_o,
      .bad_scale_o(bad_scale),
      .mults_o(t_mults),
      .busy_o(t_busy),
      .stall_in_o(t_stall_in),
      .stall_out_o(t_stall_out),
      .items_o(t_items)
  );

  // ---- apply mode --------------------------------------------------------------------------------
  logic         x_cmd_valid, x_cmd_ready, x_valid, x_ready, a_wcmd_valid, a_wcmd_ready, a_w_valid;
  logic         a_w_ready, a_mults, a_busy, a_stall_in, a_stall_out;
  logic [63:0]  x_cmd_addr, a_wcmd_addr;
  logic [12:0]  x_cmd_len, a_wcmd_len;
  logic [511:0] x_data, a_w_data;
  logic [10:0]  a_items_in, a_items_out;

  rgu_apply u_apply (
      .clk_i(clk_apply),
      .rst_ni,
      .start_i(start && mode_apply_i),
      .n10_i(n10),
      .terms_i(mode_terms_i),
      .row_scale_i(mode_row_scale_i),
      .saturate_i(mode_saturate_i),
      .scale_i, .batch_i, .d_in_i, .d_out_i, .chunks_in_i, .chunks_out_i,
      .src_i, .src_stride_i, .dst_i, .dst_stride_i,
      .done_o(apply_done),
      .tab_valid_i(tab_valid && mode_apply_i),
      .tab_e_i(tab_e),
      .tab_odd_i(tab_odd),
      .tab_rs_half_i(tab_rs_half),
      .tab_pop_o(a_tab_pop),
      .tab_rd_en_o(a_rd_en),
      .tab_addr_o(a_addr),
      .tab_r_i(tab_r),
      .tab_s_i(tab_s),
      .rs_en_o(a_rs_en),
      .rs_addr_o(a_rs_addr),
      .rs_data_i(rs_data),
      .rs_pop_o(a_rs_pop),
      .rd_cmd_valid_o(x_cmd_valid),
      .rd_cmd_ready_i(x_cmd_ready),
      .rd_cmd_addr_o(x_cmd_addr),
      .rd_cmd_len_o(x_cmd_len),
      .rd_valid_i(x_valid),
      .rd_ready_o(x_ready),
      .rd_data_i(x_data),
      .wr_cmd_valid_o(a_wcmd_valid),
      .wr_cmd_ready_i(a_wcmd_ready),
      .wr_cmd_addr_o(a_wcmd_addr),
      .wr_cmd_len_o(a_wcmd_len),
      .wr_valid_o(a_w_valid),
      .wr_ready_i(a_w_ready),
      .wr_data_o(a_w_data),
      .mults_o(a_mults),
      .busy_o(a_busy),
      .stall_in_o(a_stall_in),
      .stall_out_o(a_stall_out),
      .items_in_o(a_items_in),
      .items_out_o(a_items_out)
  );

  // ---- memory port: two readers, one writer ----------------------------------------------------------
  logic [1:0]   ar_valid, ar_ready, r_valid, r_ready;
  logic [127:0] ar_addr;
  logic [15:0]  ar_len;
  logic [511:0] r_data;
  logic [1:0]   r_resp;
  logic         r_last;
  logic [63:0]  unused_seed_keep, unused_x_keep;
  logic         unused_seed_last, unused_x_last;

  mr_axi_rd #(.LenWidth(16), .MaxOutstanding(8)) u_rd_seed (
      .clk_i(clk_seed),
      .rst_ni,
      .clear_i(start),
      .idle_o(seed_rd_idle),
      .err_o(rd_err),
      .cmd_valid_i(seed_cmd_valid),
      .cmd_ready_o(seed_cmd_ready),
      .cmd_addr_i(seed_cmd_addr),
      .cmd_len_i({3'd0, seed_cmd_len}),
      .valid_o(seed_valid),
      .ready_i(seed_ready),
      .data_o(seed_data),
      .keep_o(unused_seed_keep),
      .last_o(unused_seed_last),
      .araddr_o(ar_addr[63:0]),
      .arlen_o(ar_len[7:0]),
      .arvalid_o(ar_valid[0]),
      .arready_i(ar_ready[0]),
      .rdata_i(r_data),
      .rresp_i(r_resp),
      .rlast_i(r_last),
      .rvalid_i(r_valid[0]),
      .rready_o(r_ready[0])
  );
  mr_axi_rd #(.LenWidth(16), .MaxOutstanding(8)) u_rd_vectors (
      .clk_i(clk_apply),
      .rst_ni,
      .clear_i(start),
      .idle_o(x_rd_idle),
      .err_o(x_err),
      .cmd_valid_i(x_cmd_valid),
      .cmd_ready_o(x_cmd_ready),
      .cmd_addr_i(x_cmd_addr),
      .cmd_len_i({3'd0, x_cmd_len}),
      .valid_o(x_valid),
      .ready_i(x_ready),
      .data_o(x_data),
      .keep_o(unused_x_keep),
      .last_o(unused_x_last),
      .araddr_o(ar_addr[127:64]),
      .arlen_o(ar_len[15:8]),
      .arvalid_o(ar_valid[1]),
      .arready_i(ar_ready[1]),
      .rdata_i(r_data),
      .rresp_i(r_resp),
      .rlast_i(r_last),
      .rvalid_i(r_valid[1]),
      .rready_o(r_ready[1])
  );
  mr_axi_rd_arb u_rd_arb (
      .clk_i, .rst_ni,
      .araddr_i(ar_addr),
      .arlen_i(ar_len),
      .arvalid_i(ar_valid),
      .arready_o(ar_ready),
      .rdata_o(r_data),
      .rresp_o(r_resp),
      .rlast_o(r_last),
      .rvalid_o(r_valid),
      .rready_i(r_ready),
      .arid_o, .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rid_i, .rdata_i, .rresp_i, .rlast_i,
      .rvalid_i, .rready_o
  );

  logic         w_cmd_valid, w_cmd_ready, w_valid, w_ready;
  logic [3:0]   unused_bid;
  assign unused_bid = bid_i;
  assign awid_o = 4'd0;
  assign w_cmd_valid = mode_apply_i ? a_wcmd_valid : t_wcmd_valid;
  assign w_valid = mode_apply_i ? a_w_valid : t_w_valid;
  assign a_wcmd_ready = mode_apply_i && w_cmd_ready;
  assign t_wcmd_ready = !mode_apply_i && w_cmd_ready;
  assign a_w_ready = mode_apply_i && w_ready;
  assign t_w_ready = !mode_apply_i && w_ready;

  mr_axi_wr #(.LenWidth(16), .MaxBurst(64), .MaxOutstanding(64)) u_wr (
      .clk_i, .rst_ni,
      .clear_i(start),
      .idle_o(wr_idle),
      .err_o(wr_err),
      .cmd_valid_i(w_cmd_valid),
      .cmd_ready_o(w_cmd_ready),
      .cmd_addr_i(mode_apply_i ? a_wcmd_addr : t_wcmd_addr),
      .cmd_len_i(mode_apply_i ? {3'd0, a_wcmd_len} : {7'd0, t_wcmd_len}),
      .cmd_src_off_i(mode_apply_i ? 6'd0 : t_wcmd_off),
      .valid_i(w_valid),
      .ready_o(w_ready),
      .data_i(mode_apply_i ? a_w_data : t_w_data),
      .awaddr_o, .awlen_o, .awvalid_o, .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i,
      .bresp_i, .bvalid_i, .bready_o
  );

  // ---- counters --------------------------------------------------------------------------------------
  logic [63:0] cycles_q, busy_q, stall_in_q, stall_out_q, items_in_q, items_out_q, mults_q;
  logic [63:0] items_in, items_out;
  logic busy, stall_in, stall_out, mults;
  assign busy = mode_apply_i ? a_busy : t_busy;
  assign stall_in = mode_apply_i ? a_stall_in : t_stall_in;
  assign stall_out = mode_apply_i ? a_stall_out : t_stall_out;
  assign mults = mode_apply_i ? a_mults : t_mults;
  assign items_in = mode_apply_i ? 64'(a_items_in) : tab_pop ? 64'(mode_terms_i) : 64'd0;
  assign items_out = mode_apply_i ? 64'(a_items_out) : 64'(t_items);
  assign cycles_o = cycles_q;
  assign busy_o = busy_q;
  assign stall_in_o = stall_in_q;
  assign stall_out_o = stall_out_q;
  assign items_in_o = items_in_q;
  assign items_out_o = items_out_q;
  assign mults_busy_o = mults_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || (state_q == Idle && ap_start_i)) begin
      cycles_q    <= '0;
      busy_q      <= '0;
      stall_in_q  <= '0;
      stall_out_q <= '0;
      items_in_q  <= '0;
      items_out_q <= '0;
      mults_q     <= '0;
    end else if (state_q != Idle) begin
      cycles_q <= cycles_q + 64'd1;
      if (running) begin
        busy_q      <= busy_q + 64'(busy);
        stall_in_q  <= stall_in_q + 64'(stall_in);
        stall_out_q <= stall_out_q + 64'(stall_out);
        items_in_q  <= items_in_q + items_in;
        items_out_q <= items_out_q + items_out;
        if (mults) mults_q <= mults_q + 64'd32;
      end
    end
  end
endmodule
