// One group: sequencer, matrix side, vector side, mover, scratchpad, banks and their controller.
//
// The scratchpad's read port serves the matrix side before the vector side, its write port the matrix side, then
// rows from other groups, then the vector side; the matrix side reads while it loads activations and every few
// cycles after, and writes a quarter of a row at a time, so none of the others waits long.
module pnm_group #(
    parameter int unsigned Gen        = pnm_stream_pkg::GEN_CENTRED,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16
) (
    input  logic                              clk_i,
    input  logic                              rst_ni,
    input  logic [pnm_dram_pkg::TIMING_W-1:0] timing_i,
    input  logic [3:0]                        own_i,
    // job
    input  logic                              start_i,
    input  logic [63:0]                       base_i,
    input  logic [31:0]                       count_i,
    input  logic                              stop_i,
    output logic                              done_o,
    output logic [7:0]                        error_o,
    output logic [31:0]                       index_o,
    // other groups
    output logic                              send_valid_o,
    input  logic                              send_ready_i,
    input  logic                              send_full_i,
    output logic [1:0]                        send_group_o,
    output logic [528:0]                      send_o,     // {we, row, data, signal, semaphore}
    input  logic                              recv_valid_i,
    output logic                              recv_ready_o,
    output logic                              recv_full_o,  // the semaphore cannot take the signal
    input  logic [528:0]                      recv_i,
    output logic                              at_barrier_o,
    output logic [3:0]                        barrier_o,
    input  logic                              release_i,
    // events and counters
    output logic                              range_o,
    output logic                              nonfinite_o,
    output logic                              late_o,
    output logic                              busy_o,
    output logic                              product_o,
    output logic [1:0]                        in_o,       // beats read
    output logic                              out_o,
    output logic                              stall_in_o,
    output logic                              stall_out_o,
    output logic [639:0]                      counters_o, // ten of 64 bits, in the order of the registers
    output logic [21:0]                       cmd_o,      // {valid, command, row, column, banks}
    // memory: reads of the descriptors and of the mover, writes of the mover
    output logic [127:0]                      araddr_o,
    output logic [15:0]                       arlen_o,
    output logic [1:0]                        arvalid_o,
    input  logic [1:0]                        arready_i,
    input  logic [511:0]                      rdata_i,
    input  logic [1:0]                        rresp_i,
    input  logic                              rlast_i,
    input  logic [1:0]                        rvalid_i,
    output logic [1:0]                        rready_o,
    output logic [63:0]                       awaddr_o,
    output logic [7:0]                        awlen_o,
    output logic                              awvalid_o,
    input  logic                              awready_i,
    output logic [511:0]                      wdata_o,
    output logic [63:0]                       wstrb_o,
    output logic                              wlast_o,
    output logic                              wvalid_o,
    input  logic                              wready_i,
    input  logic [1:0]                        bresp_i,
    input  logic                              bvalid_i,
    output logic                              bready_o
);
  // ---- descriptors -----------------------------------------------------------------------------------
  logic         desc_valid, desc_ready, desc_err, jump, fetch_idle, fetch_beat, seq_done, stopped;
  logic [511:0] desc, m_desc, v_desc;
  logic [31:0]  target, iteration;
  logic         m_start, v_start, m_done, v_done, waiting, signal, sem_full, mo_done;
  logic [7:0]   move_error;
  assign stopped = stop_i || error_o != pnm_desc_pkg::ERR_OK;
  pnm_fetch u_fetch (
      .clk_i, .rst_ni, .start_i, .base_i, .count_i, .jump_i(jump), .target_i(target),
      .stop_i(stopped || seq_done), .valid_o(desc_valid), .ready_i(desc_ready || seq_done || stopped), .desc_o(desc),
      .err_o(desc_err), .idle_o(fetch_idle), .beat_o(fetch_beat),
      .araddr_o(araddr_o[63:0]), .arlen_o(arlen_o[7:0]), .arvalid_o(arvalid_o[0]), .arready_i(arready_i[0]),
      .rdata_i, .rresp_i, .rlast_i, .rvalid_i(rvalid_i[0]), .rready_o(rready_o[0]));
  pnm_seq u_seq (
      .clk_i, .rst_ni, .start_i, .count_i, .own_i, .stop_i, .done_o(seq_done), .error_o, .index_o,
      .desc_valid_i(desc_valid && !stopped), .desc_ready_o(desc_ready), .desc_i(desc), .desc_err_i(desc_err),
      .jump_o(jump), .target_o(target),
      .matrix_start_o(m_start), .matrix_desc_o(m_desc), .matrix_done_i(m_done),
      .vector_start_o(v_start), .vector_desc_o(v_desc), .vector_done_i(v_done),
      .move_error_i(mo_done ? move_error : pnm_desc_pkg::ERR_OK),
      .iteration_o(iteration), .signal_i(signal), .signal_sem_i(recv_i[2:0]), .full_o(sem_full),
      .at_barrier_o, .barrier_o, .release_i, .waiting_o(waiting));
  assign done_o = seq_done && fetch_idle;

  // ---- matrix side -----------------------------------------------------------------------------------
  logic          mv_start, mv_done, mv_rd_valid, mv_rd_ready, mv_wr_valid, mv_wr_ready, mv_req_valid, mv_req_we;
  logic          mv_req_last, stream, mv_nonfinite, wl_start, wl_q, rd_q, req_valid, req_ready, req_we, rvalid;
  logic [11:0]   mv_rd_row, mv_wr_row;
  logic [15:0]   mv_wr_be;
  logic [511:0]  mv_wr_data, rd_data;
  logic [13:0]   mv_req_col, mo_req_col, req_col;
  logic [63:0]   mv_wmask, req_wmask;
  logic [1023:0] mv_wdata, mo_wdata, req_wdata, rdata;
  logic          mo_req_valid;
  assign wl_start = m_start && m_desc[7:0] == pnm_desc_pkg::DESC_WLOAD;
  assign mv_start = m_start && !wl_start;
  pnm_matvec #(.Gen(Gen), .Cut(Cut), .StreamBits(StreamBits)) u_matvec (
      .clk_i, .rst_ni, .start_i(mv_start), .desc_i(m_desc), .done_o(mv_done),
      .rd_valid_o(mv_rd_valid), .rd_ready_i(mv_rd_ready), .rd_row_o(mv_rd_row), .rd_rvalid_i(rd_q), .rd_data_i(rd_data),
      .wr_valid_o(mv_wr_valid), .wr_ready_i(mv_wr_ready), .wr_row_o(mv_wr_row), .wr_be_o(mv_wr_be), .wr_data_o(mv_wr_data),
      .req_valid_o(mv_req_valid), .req_ready_i(req_ready), .req_we_o(mv_req_we), .req_col_o(mv_req_col),
      .req_wmask_o(mv_wmask), .req_wdata_o(mv_wdata), .req_last_o(mv_req_last), .rvalid_i(rvalid), .rdata_i(rdata),
      .stream_o(stream), .product_o, .range_o, .nonfinite_o(mv_nonfinite));

  // a WLOAD and the matrix side's own requests never meet
  assign req_valid = mo_req_valid || mv_req_valid;
  assign req_we    = mo_req_valid || mv_req_we;
  assign req_col   = mo_req_valid ? mo_req_col : mv_req_col;
  assign req_wmask = mo_req_valid ? '1 : mv_wmask;
  assign req_wdata = mo_req_valid ? mo_wdata : mv_wdata;

  logic          cmd_valid;
  logic [2:0]    cmd;
  logic [9:0]    cmd_row;
  logic [3:0]    cmd_col, cmd_banks;
  logic [63:0]   cmd_wmask;
  logic [1023:0] cmd_wdata;
  pnm_bank_ctrl u_ctrl (
      .clk_i, .rst_ni, .timing_i, .req_valid_i(req_valid), .req_ready_o(req_ready), .req_we_i(req_we),
      .req_col_i(req_col), .req_wmask_i(req_wmask), .req_wdata_i(req_wdata), .req_last_i(mv_req_last && !mo_req_valid),
      .cmd_valid_o(cmd_valid), .cmd_o(cmd), .cmd_row_o(cmd_row), .cmd_col_o(cmd_col), .cmd_banks_o(cmd_banks),
      .cmd_wmask_o(cmd_wmask), .cmd_wdata_o(cmd_wdata), .late_o);
  pnm_dram u_dram (
      .clk_i, .rst_ni, .cmd_valid_i(cmd_valid), .cmd_i(cmd), .cmd_row_i(cmd_row), .cmd_col_i(cmd_col),
      .cmd_banks_i(cmd_banks), .cmd_wmask_i(cmd_wmask), .cmd_wdata_i(cmd_wdata), .rvalid_o(rvalid), .rdata_o(rdata));
  assign cmd_o = {cmd_valid, cmd, cmd_row, cmd_col, cmd_banks};

  // ---- vector side -----------------------------------------------------------------------------------
  logic         ve_start, ve_done, ve_rd_valid, ve_rd_ready, ve_wr_valid, ve_wr_ready, ve_nonfinite;
  logic [11:0]  ve_rd_row, ve_wr_row;
  logic [15:0]  ve_wr_be;
  logic [511:0] ve_wr_data;
  logic [4:0]   elems;
  assign ve_start = v_start && v_desc[7:0] == pnm_desc_pkg::DESC_VEC;
  pnm_vec u_vec (
      .clk_i, .rst_ni, .start_i(ve_start), .desc_i(v_desc), .done_o(ve_done),
      .rd_valid_o(ve_rd_valid), .rd_ready_i(ve_rd_ready), .rd_row_o(ve_rd_row), .rd_rvalid_i(rd_q), .rd_data_i(rd_data),
      .wr_valid_o(ve_wr_valid), .wr_ready_i(ve_wr_ready), .wr_row_o(ve_wr_row), .wr_be_o(ve_wr_be), .wr_data_o(ve_wr_data),
      .elems_o(elems), .nonfinite_o(ve_nonfinite));

  logic         mo_rd_valid, mo_rd_ready, mo_wr_valid, mo_wr_ready, mo_start, mo_in;
  logic [11:0]  mo_rd_row, mo_wr_row, mo_send_row;
  logic [511:0] mo_wr_data, mo_send_data;
  logic         mo_send_we, mo_send_signal;
  logic [2:0]   mo_send_sem;
  assign mo_start = wl_start || (v_start && !ve_start);
  pnm_move u_move (
      .clk_i, .rst_ni, .clear_i(start_i), .start_i(mo_start), .desc_i(wl_start || wl_q ? m_desc : v_desc),
      .iteration_i(iteration), .done_o(mo_done), .error_o(move_error),
      .rd_valid_o(mo_rd_valid), .rd_ready_i(mo_rd_ready), .rd_row_o(mo_rd_row), .rd_rvalid_i(rd_q), .rd_data_i(rd_data),
      .wr_valid_o(mo_wr_valid), .wr_ready_i(mo_wr_ready), .wr_row_o(mo_wr_row), .wr_data_o(mo_wr_data),
      .req_valid_o(mo_req_valid), .req_ready_i(req_ready), .req_col_o(mo_req_col), .req_wdata_o(mo_wdata),
      .send_valid_o, .send_ready_i, .send_full_i, .send_group_o, .send_we_o(mo_send_we), .send_row_o(mo_send_row),
      .send_data_o(mo_send_data), .send_signal_o(mo_send_signal), .send_sem_o(mo_send_sem),
      .in_o(mo_in), .out_o, .stall_in_o, .stall_out_o,
      .araddr_o(araddr_o[127:64]), .arlen_o(arlen_o[15:8]), .arvalid_o(arvalid_o[1]), .arready_i(arready_i[1]),
      .rdata_i, .rresp_i, .rlast_i, .rvalid_i(rvalid_i[1]), .rready_o(rready_o[1]),
      .awaddr_o, .awlen_o, .awvalid_o, .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i,
      .bresp_i, .bvalid_i, .bready_o);
  assign send_o = {mo_send_we, mo_send_row, mo_send_data, mo_send_signal, mo_send_sem};
  assign in_o   = {1'b0, fetch_beat} + {1'b0, mo_in};

  assign m_done = mv_done || (mo_done && wl_q);
  assign v_done = ve_done || (mo_done && !wl_q);

  // ---- scratchpad ------------------------------------------------------------------------------------
  logic         rd_en, wr_en, recv_we;
  logic [11:0]  rd_row, wr_row;
  logic [15:0]  wr_be;
  logic [511:0] wr_data;
  assign mv_rd_ready = 1'b1;
  assign ve_rd_ready = !mv_rd_valid;
  assign mo_rd_ready = !mv_rd_valid;  // the mover and the vector unit are never at work together
  assign rd_en       = mv_rd_valid || ve_rd_valid || mo_rd_valid;
  assign rd_row      = mv_rd_valid ? mv_rd_row : ve_rd_valid ? ve_rd_row : mo_rd_row;

  assign recv_we      = recv_valid_i && recv_i[528];
  assign recv_ready_o = !recv_we || !mv_wr_valid;
  assign signal       = recv_valid_i && recv_ready_o && recv_i[3];
  assign recv_full_o  = recv_i[3] && sem_full;
  assign mv_wr_ready  = 1'b1;
  assign ve_wr_ready  = !mv_wr_valid && !recv_we;
  assign mo_wr_ready  = !mv_wr_valid && !recv_we;
  assign wr_en        = mv_wr_valid || recv_we || ve_wr_valid || mo_wr_valid;
  always_comb begin
    wr_row = mo_wr_row;
    wr_be = 16'hFFFF;
    wr_data = mo_wr_data;
    if (mv_wr_valid) begin
      wr_row = mv_wr_row;
      wr_be = mv_wr_be;
      wr_data = mv_wr_data;
    end else if (recv_we) begin
      wr_row = recv_i[527:516];
      wr_data = recv_i[515:4];
    end else if (ve_wr_valid) begin
      wr_row = ve_wr_row;
      wr_be = ve_wr_be;
      wr_data = ve_wr_data;
    end
  end
  pnm_scratch u_scratch (
      .clk_i, .rd_en_i(rd_en), .rd_row_i(rd_row), .rd_data_o(rd_data), .wr_en_i(wr_en), .wr_row_i(wr_row),
      .wr_be_i(wr_be), .wr_data_i(wr_data));

  // ---- counters --------------------------------------------------------------------------------------
  logic        m_busy_q, ve_busy_q;
  logic [63:0] count_q [10];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q      <= 1'b0;
      wl_q      <= 1'b0;
      m_busy_q  <= 1'b0;
      ve_busy_q <= 1'b0;
    end else begin
      rd_q <= rd_en;
      if (wl_start) wl_q <= 1'b1;
      else if (mo_done) wl_q <= 1'b0;
      if (mv_start) m_busy_q <= 1'b1;
      else if (mv_done) m_busy_q <= 1'b0;
      if (ve_start) ve_busy_q <= 1'b1;
      else if (ve_done) ve_busy_q <= 1'b0;
    end
    if (!rst_ni || start_i) begin
      for (int unsigned k = 0; k < 10; k++) count_q[k] <= '0;
    end else begin
      if (m_busy_q) count_q[0] <= count_q[0] + 64'd1;
      if (stream) count_q[1] <= count_q[1] + 64'd1;
      if (ve_busy_q) count_q[2] <= count_q[2] + 64'd1;
      if (elems != 5'd0) count_q[3] <= count_q[3] + {59'd0, elems};
      if (waiting) count_q[4] <= count_q[4] + 64'd1;
      for (int unsigned k = 0; k < 5; k++)
        if (cmd_valid && cmd == 3'(k)) count_q[5+k] <= count_q[5+k] + 64'd1;
    end
  end
  assign counters_o = {count_q[9], count_q[8], count_q[7], count_q[6], count_q[5], count_q[4], count_q[3], count_q[2],
                       count_q[1], count_q[0]};
  assign busy_o      = stream || elems != 5'd0;
  assign nonfinite_o = mv_nonfinite || ve_nonfinite;
endmodule
