// The controller of a group's banks with the timing of the part the unit is built for.
module banks_tb (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          req_valid_i,
    output logic          req_ready_o,
    input  logic          req_we_i,
    input  logic [13:0]   req_col_i,
    input  logic [63:0]   req_wmask_i,
    input  logic [1023:0] req_wdata_i,
    input  logic          req_last_i,
    output logic          cmd_valid_o,
    output logic [2:0]    cmd_o,
    output logic [9:0]    cmd_row_o,
    output logic [3:0]    cmd_col_o,
    output logic [3:0]    cmd_banks_o,
    output logic [63:0]   cmd_wmask_o,
    output logic [1023:0] cmd_wdata_o,
    output logic          late_o
);
  pnm_bank_ctrl u_ctrl (
      .clk_i, .rst_ni, .timing_i(pnm_dram_pkg::TIMING_M3D),
      .req_valid_i, .req_ready_o, .req_we_i, .req_col_i, .req_wmask_i, .req_wdata_i, .req_last_i,
      .cmd_valid_o, .cmd_o, .cmd_row_o, .cmd_col_o, .cmd_banks_o, .cmd_wmask_o, .cmd_wdata_o, .late_o);
endmodule
