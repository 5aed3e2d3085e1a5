// The matrix side with its banks; banks can be written from outside while nothing runs.
module matvec_tb #(
    parameter int unsigned Gen = pnm_stream_pkg::GEN_CENTRED
) (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          start_i,
    input  logic [511:0]  desc_i,
    output logic          done_o,
    output logic          rd_valid_o,
    input  logic          rd_ready_i,
    output logic [11:0]   rd_row_o,
    input  logic          rd_rvalid_i,
    input  logic [511:0]  rd_data_i,
    output logic          wr_valid_o,
    input  logic          wr_ready_i,
    output logic [11:0]   wr_row_o,
    output logic [15:0]   wr_be_o,
    output logic [511:0]  wr_data_o,
    output logic          stream_o,
    output logic          product_o,
    output logic          range_o,
    output logic          nonfinite_o,
    output logic          late_o,
    output logic          cmd_valid_o,
    output logic [2:0]    cmd_o,
    output logic [9:0]    cmd_row_o,
    output logic [3:0]    cmd_col_o,
    output logic [3:0]    cmd_banks_o,
    input  logic          back_we_i,
    input  logic [13:0]   back_col_i,
    input  logic [1023:0] back_data_i
);
  logic          req_valid, req_ready, req_we, req_last, rvalid;
  logic [13:0]   req_col;
  logic [63:0]   req_wmask, cmd_wmask;
  logic [1023:0] req_wdata, rdata, cmd_wdata;
  pnm_matvec #(.Gen(Gen)) u_matvec (
      .clk_i, .rst_ni, .start_i, .desc_i, .done_o,
      .rd_valid_o, .rd_ready_i, .rd_row_o, .rd_rvalid_i, .rd_data_i,
      .wr_valid_o, .wr_ready_i, .wr_row_o, .wr_be_o, .wr_data_o,
      .req_valid_o(req_valid), .req_ready_i(req_ready), .req_we_o(req_we), .req_col_o(req_col),
      .req_wmask_o(req_wmask), .req_wdata_o(req_wdata), .req_last_o(req_last),
      .rvalid_i(rvalid), .rdata_i(rdata),
      .stream_o, .product_o, .range_o, .nonfinite_o);
  pnm_bank_ctrl u_ctrl (
      .clk_i, .rst_ni, .timing_i(pnm_dram_pkg::TIMING_M3D),
      .req_valid_i(req_valid), .req_ready_o(req_ready), .req_we_i(req_we), .req_col_i(req_col),
      .req_wmask_i(req_wmask), .req_wdata_i(req_wdata), .req_last_i(req_last),
      .cmd_valid_o, .cmd_o, .cmd_row_o, .cmd_col_o, .cmd_banks_o,
      .cmd_wmask_o(cmd_wmask), .cmd_wdata_o(cmd_wdata), .late_o);
  pnm_dram u_dram (
      .clk_i, .rst_ni,
      .cmd_valid_i(cmd_valid_o || back_we_i),
      .cmd_i(back_we_i ? 3'd2 : cmd_o),
      .cmd_row_i(back_we_i ? back_col_i[13:4] : cmd_row_o),
      .cmd_col_i(back_we_i ? back_col_i[3:0] : cmd_col_o),
      .cmd_banks_i(back_we_i ? 4'hF : cmd_banks_o),
      .cmd_wmask_i(back_we_i ? '1 : cmd_wmask),
      .cmd_wdata_i(back_we_i ? back_data_i : cmd_wdata),
      .rvalid_o(rvalid), .rdata_o(rdata));
endmodule
