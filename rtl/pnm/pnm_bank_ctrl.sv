// Controller of a group's banks: requests for columns become ACT, RD, WR, PRE and REF for all banks at once.
//
// Open page, requests in order, one command a cycle. A request is taken (req_ready_o) in the cycle its RD
// or WR goes out, at once when its row is open: one column a cycle. req_last_i says that no more columns of
// the row follow: it is then precharged as soon as its times allow. A refresh that is due waits for a cycle
// without a request, but no longer than seven intervals; late_o tells if one more has passed.
// A row lies in tier row[9:7], which sets its tRCD and tRAS. Times come in cycles, see pnm_dram_pkg.
module pnm_bank_ctrl (
    input  logic                              clk_i,
    input  logic                              rst_ni,
    input  logic [pnm_dram_pkg::TIMING_W-1:0] timing_i,
    // requests
    input  logic                              req_valid_i,
    output logic                              req_ready_o,
    input  logic                              req_we_i,
    input  logic [13:0]                       req_col_i,
    input  logic [63:0]                       req_wmask_i,
    input  logic [1023:0]                     req_wdata_i,
    input  logic                              req_last_i,
    // commands
    output logic                              cmd_valid_o,
    output logic [2:0]                        cmd_o,  // 0 ACT, 1 RD, 2 WR, 3 PRE, 4 REF
    output logic [9:0]                        cmd_row_o,
    output logic [3:0]                        cmd_col_o,
    output logic [3:0]                        cmd_banks_o,
    output logic [63:0]                       cmd_wmask_o,
    output logic [1023:0]                     cmd_wdata_o,
    output logic                              late_o
);
  localparam logic [2:0] ACT = 3'd0, RD = 3'd1, WR = 3'd2, PRE = 3'd3, REF = 3'd4;

  // cycles until the next ACT or REF, column command, precharge may go out
  logic [15:0] act_q, col_q, pre_q;
  logic [15:0] interval_q;
  logic [3:0]  due_q;  // refreshes due
  logic        open_q, close_q;
  logic [9:0]  row_q;
  logic        hit, urgent, go, act, rd, wr, pre, refresh;

  assign hit    = open_q && !close_q && row_q == req_col_i[13:4];
  assign urgent = due_q >= 4'd7;

  always_comb begin
    go = 1'b0;
    act = 1'b0;
    pre = 1'b0;
    refresh = 1'b0;
    if (urgent || (due_q != 4'd0 && !req_valid_i)) begin
      if (open_q) pre = pre_q == 16'd0;
      else refresh = act_q == 16'd0;
    end else if (req_valid_i) begin
      if (hit) go = col_q == 16'd0;
      else if (open_q) pre = pre_q == 16'd0;
      else act = act_q == 16'd0;
    end else if (close_q) begin
      pre = pre_q == 16'd0;
    end
  end
  assign rd = go && !req_we_i;
  assign wr = go && req_we_i;

  // ---- times of the tier of the row that opens -----------------------------------------------------
  logic [7:0] rcd, ras;
  assign rcd = timing_i[pnm_dram_pkg::T_RCD0_LSB+32'(req_col_i[13:11])*8+:8];
  assign ras = timing_i[pnm_dram_pkg::T_RAS0_LSB+32'(req_col_i[13:11])*8+:8];

  // what is left of a time after the command's own cycle; never less than what is left already
  function automatic logic [15:0] later(input logic [15:0] left, input logic [15:0] cycles);
    logic [15:0] less, now;
    less = left == 16'd0 ? 16'd0 : left - 16'd1;
    now = cycles == 16'd0 ? 16'd0 : cycles - 16'd1;
    later = now > less ? now : less;
  endfunction

  logic [15:0] to_act, to_col, to_pre;
  always_comb begin
    to_act = 16'd0;
    to_col = 16'd0;
    to_pre = 16'd0;
    if (act) begin
      to_col = {8'd0, rcd};
      to_pre = {8'd0, ras};
    end
    if (go) to_col = 16'(timing_i[pnm_dram_pkg::T_CCD_LSB+:pnm_dram_pkg::T_CCD_W]);
    if (rd) to_pre = 16'(timing_i[pnm_dram_pkg::T_RTP_LSB+:pnm_dram_pkg::T_RTP_W]);
    if (wr) to_pre = 16'(timing_i[pnm_dram_pkg::T_WR_LSB+:pnm_dram_pkg::T_WR_W]);
    if (pre) to_act = 16'(timing_i[pnm_dram_pkg::T_RP_LSB+:pnm_dram_pkg::T_RP_W]);
    if (refresh) to_act = timing_i[pnm_dram_pkg::T_RFC_LSB+:pnm_dram_pkg::T_RFC_W];
  end

  logic tick;
  assign tick = interval_q == timing_i[pnm_dram_pkg::T_REFI_LSB+:pnm_dram_pkg::T_REFI_W] - 16'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      act_q      <= '0;
      col_q      <= '0;
      pre_q      <= '0;
      interval_q <= '0;
      due_q      <= '0;
      open_q     <= 1'b0;
      close_q    <= 1'b0;
    end else begin
      act_q      <= later(act_q, to_act);
      col_q      <= later(col_q, to_col);
      pre_q      <= later(pre_q, to_pre);
      interval_q <= tick ? 16'd0 : interval_q + 16'd1;
      if (tick && !refresh && due_q != 4'd15) due_q <= due_q + 4'd1;
      else if (refresh && !tick) due_q <= due_q - 4'd1;
      if (act) open_q <= 1'b1;
      else if (pre) open_q <= 1'b0;
      if (pre) close_q <= 1'b0;
      else if (go && req_last_i) close_q <= 1'b1;
    end
    if (act) row_q <= req_col_i[13:4];
  end

  assign req_ready_o = go;
  assign cmd_valid_o = act || go || pre || refresh;
  assign cmd_o       = act ? ACT : rd ? RD : wr ? WR : pre ? PRE : REF;
  assign cmd_row_o   = act ? req_col_i[13:4] : row_q;
  assign cmd_col_o   = req_col_i[3:0];
  // a write whose mask leaves a bank alone is not for that bank
  assign cmd_banks_o = wr ? {|req_wmask_i[63:48], |req_wmask_i[47:32], |req_wmask_i[31:16], |req_wmask_i[15:0]}
                          : 4'hF;
  assign cmd_wmask_o = req_wmask_i;
  assign cmd_wdata_o = req_wdata_i;
  assign late_o      = due_q > 4'd8;

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!go || hit);  // column of a row that is not open
      assert (!act || !open_q);  // two rows open
    end
  end
endmodule
