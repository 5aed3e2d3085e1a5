// What moves a group's data: LOAD, STORE and SEND of the vector side, WLOAD of the matrix side.
//
// desc_i is stable from start_i, a pulse, to done_o, a pulse; one at a time. error_o counts with done_o. A LOAD's
// rows are written as they come, a WLOAD's columns are two beats each; a STORE is done when its writes are answered.
// Rows of a SEND go out with ready, the last one with the receiver's semaphore; from the last to the first where
// they go to higher rows, so that rows of the own group may meet. A semaphore that is full is the sender's error.
module pnm_move (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          clear_i,     // a new job: errors of the last one are forgotten
    input  logic          start_i,
    /* verilator lint_off UNUSEDSIGNAL */ // fields of other descriptors
    input  logic [511:0]  desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [31:0]   iteration_i,
    output logic          done_o,
    output logic [7:0]    error_o,
    // scratchpad
    output logic          rd_valid_o,
    input  logic          rd_ready_i,
    output logic [11:0]   rd_row_o,
    input  logic          rd_rvalid_i,
    input  logic [511:0]  rd_data_i,
    output logic          wr_valid_o,
    input  logic          wr_ready_i,
    output logic [11:0]   wr_row_o,
    output logic [511:0]  wr_data_o,
    // banks
    output logic          req_valid_o,
    input  logic          req_ready_i,
    output logic [13:0]   req_col_o,
    output logic [1023:0] req_wdata_o,
    // other groups
    output logic          send_valid_o,
    input  logic          send_ready_i,
    input  logic          send_full_i,  // the semaphore, with ready
    output logic [1:0]    send_group_o,
    output logic          send_we_o,
    output logic [11:0]   send_row_o,
    output logic [511:0]  send_data_o,
    output logic          send_signal_o,
    output logic [2:0]    send_sem_o,
    // events
    output logic          in_o,        // 64 bytes from memory
    output logic          out_o,       // 64 bytes to memory
    output logic          stall_in_o,
    output logic          stall_out_o,
    // memory
    output logic [63:0]   araddr_o,
    output logic [7:0]    arlen_o,
    output logic          arvalid_o,
    input  logic          arready_i,
    input  logic [511:0]  rdata_i,
    input  logic [1:0]    rresp_i,
    input  logic          rlast_i,
    input  logic          rvalid_i,
    output logic          rready_o,
    output logic [63:0]   awaddr_o,
    output logic [7:0]    awlen_o,
    output logic          awvalid_o,
    input  logic          awready_i,
    output logic [511:0]  wdata_o,
    output logic [63:0]   wstrb_o,
    output logic          wlast_o,
    output logic          wvalid_o,
    input  logic          wready_i,
    input  logic [1:0]    bresp_i,
    input  logic          bvalid_i,
    output logic          bready_o
);
  logic [7:0]  kind;
  logic        busy_q, is_load, is_wload, is_store, is_send, cmd_q;
  logic [15:0] rows;
  logic [63:0] addr_q;
  logic [16:0] todo_q;   // rows or columns that are not finished
  logic [16:0] ask_q;    // rows that are not read
  logic [11:0] row_q, ask_row_q;
  logic [13:0] col_q;
  assign kind     = desc_i[7:0];
  assign is_load  = kind == pnm_desc_pkg::DESC_LOAD;
  assign is_wload = kind == pnm_desc_pkg::DESC_WLOAD;
  assign is_store = kind == pnm_desc_pkg::DESC_STORE;
  assign is_send  = kind == pnm_desc_pkg::DESC_SEND;
  assign rows     = desc_i[pnm_desc_pkg::D_LOAD_ROWS_LSB+:16];  // the place of SEND's rows too

  // ---- from memory -----------------------------------------------------------------------------------
  logic         rd_cmd_ready, rd_valid, rd_ready, rd_err, half_q, unused_last, unused_idle;
  logic [511:0] rd_data, low_q;
  logic [63:0]  unused_keep;
  mr_axi_rd #(.LenWidth(24), .MaxOutstanding(8), .Buffer(64)) u_rd (
      .clk_i, .rst_ni, .clear_i, .idle_o(unused_idle), .err_o(rd_err),
      .cmd_valid_i(cmd_q && (is_load || is_wload)), .cmd_ready_o(rd_cmd_ready), .cmd_addr_i(addr_q),
      .cmd_len_i(is_wload ? {1'b0, rows, 7'd0} : {2'b0, rows, 6'd0}),
      .valid_o(rd_valid), .ready_i(rd_ready), .data_o(rd_data), .keep_o(unused_keep), .last_o(unused_last),
      .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_o);
  assign wr_valid_o  = is_load && rd_valid;
  assign wr_row_o    = row_q;
  assign wr_data_o   = rd_data;
  assign req_valid_o = is_wload && rd_valid && half_q;
  assign req_col_o   = col_q;
  assign req_wdata_o = {rd_data, low_q};
  assign rd_ready    = is_load ? wr_ready_i : is_wload ? !half_q || req_ready_i : 1'b0;
  assign in_o        = rd_valid && rd_ready;
  assign stall_in_o  = busy_q && (is_load || is_wload) && !rd_valid;

  // ---- rows out of the scratchpad: to memory or another group ----------------------------------------
  logic         row_valid, row_ready, fill_ready, pend_q, w_cmd_ready, w_ready, w_idle, w_err, out;
  logic [2:0]   room_q;
  logic         down;
  logic [511:0] row_data;
  logic [2:0]   unused_count;
  assign down = is_send && desc_i[pnm_desc_pkg::D_SEND_TO_LSB+:12] > desc_i[pnm_desc_pkg::D_SEND_ROW_LSB+:12];
  assign rd_valid_o = busy_q && (is_store || is_send) && ask_q != 17'd0 && room_q != 3'd4;
  assign rd_row_o   = ask_row_q;
  mr_fifo #(.Width(512), .Depth(4)) u_rows (
      .clk_i, .rst_ni, .valid_i(pend_q && rd_rvalid_i), .ready_o(fill_ready), .data_i(rd_data_i),
      .valid_o(row_valid), .ready_i(row_ready), .data_o(row_data), .count_o(unused_count));
  mr_axi_wr #(.LenWidth(24), .MaxBurst(16), .MaxOutstanding(8)) u_wr (
      .clk_i, .rst_ni, .clear_i, .idle_o(w_idle), .err_o(w_err),
      .cmd_valid_i(cmd_q && is_store), .cmd_ready_o(w_cmd_ready), .cmd_addr_i(addr_q), .cmd_len_i({2'b0, rows, 6'd0}),
      .cmd_src_off_i(6'd0), .valid_i(row_valid && is_store), .ready_o(w_ready), .data_i(row_data),
      .awaddr_o, .awlen_o, .awvalid_o, .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i,
      .bresp_i, .bvalid_i, .bready_o);
  assign send_valid_o  = busy_q && is_send && (row_valid || rows == 16'd0);
  assign send_group_o  = desc_i[pnm_desc_pkg::D_SEND_GROUP_LSB+:2];
  assign send_we_o     = rows != 16'd0;
  assign send_row_o    = row_q;
  assign send_data_o   = row_data;
  assign send_signal_o = todo_q <= 17'd1;
  assign send_sem_o    = desc_i[pnm_desc_pkg::D_SEND_SEM_LSB+:3];
  assign row_ready     = is_store ? w_ready : is_send && send_ready_i;
  assign out           = row_valid && row_ready;
  assign out_o         = out && is_store;
  assign stall_out_o   = busy_q && is_store && row_valid && !w_ready;

  // ---- life of a descriptor --------------------------------------------------------------------------
  logic step, ends;
  assign step = (is_load && in_o) || (is_wload && req_valid_o && req_ready_i) || (is_store && out) ||
      (send_valid_o && send_ready_i);
  assign ends = is_store ? todo_q == 17'd0 && !cmd_q && w_idle : step && todo_q <= 17'd1;
  assign done_o  = busy_q && ends;
  assign error_o = is_store ? (w_err ? pnm_desc_pkg::ERR_WRITE : pnm_desc_pkg::ERR_OK)
                 : is_send ? (send_full_i ? pnm_desc_pkg::ERR_SEMAPHORE : pnm_desc_pkg::ERR_OK)
                 : rd_err ? pnm_desc_pkg::ERR_READ : pnm_desc_pkg::ERR_OK;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      cmd_q  <= 1'b0;
      pend_q <= 1'b0;
      room_q <= '0;
      half_q <= 1'b0;
    end else begin
      if (start_i) busy_q <= 1'b1;
      else if (done_o) busy_q <= 1'b0;
      if (start_i) cmd_q <= !is_send;
      else if (is_store ? w_cmd_ready : rd_cmd_ready) cmd_q <= 1'b0;
      pend_q <= rd_valid_o && rd_ready_i;
      room_q <= room_q + {2'd0, rd_valid_o && rd_ready_i} - {2'd0, out};
      if (start_i) half_q <= 1'b0;
      else if (is_wload && in_o) half_q <= !half_q;
    end
    if (is_wload && in_o && !half_q) low_q <= rd_data;
    if (start_i) begin
      addr_q    <= desc_i[pnm_desc_pkg::D_LOAD_ADDR_LSB+:64] +
          {32'd0, iteration_i} * {32'd0, desc_i[pnm_desc_pkg::D_LOAD_STEP_LSB+:32]};
      todo_q    <= {1'b0, rows};
      ask_q     <= {1'b0, rows};
      // the place of SEND's first row is that of the others
      row_q     <= (is_send ? desc_i[pnm_desc_pkg::D_SEND_TO_LSB+:12] : desc_i[pnm_desc_pkg::D_LOAD_ROW_LSB+:12]) +
          (down ? rows[11:0] - 12'd1 : 12'd0);
      ask_row_q <= desc_i[pnm_desc_pkg::D_LOAD_ROW_LSB+:12] + (down ? rows[11:0] - 12'd1 : 12'd0);
      col_q     <= desc_i[pnm_desc_pkg::D_WLOAD_COL_LSB+:14];
    end else begin
      if (step) begin
        todo_q <= todo_q - 17'd1;
        row_q  <= down ? row_q - 12'd1 : row_q + 12'd1;
        col_q  <= col_q + 14'd1;
      end
      if (rd_valid_o && rd_ready_i) begin
        ask_q     <= ask_q - 17'd1;
        ask_row_q <= down ? ask_row_q - 12'd1 : ask_row_q + 12'd1;
      end
    end
    if (rst_ni) assert (!(pend_q && rd_rvalid_i) || fill_ready);
  end
endmodule
