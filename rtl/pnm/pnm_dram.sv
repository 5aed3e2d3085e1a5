// Storage of a group's four banks, as a board has it in block memory: takes the controller's commands and
// answers an RD with the data of all banks T_CL cycles later, in order. It keeps no time of its own and
// checks none; ACT, PRE and REF do nothing here but set the row, and a WR is done at once.
module pnm_dram (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          cmd_valid_i,
    input  logic [2:0]    cmd_i,
    input  logic [9:0]    cmd_row_i,
    input  logic [3:0]    cmd_col_i,
    input  logic [3:0]    cmd_banks_i,
    input  logic [63:0]   cmd_wmask_i,  // a bit every two bytes, 16 a bank
    input  logic [1023:0] cmd_wdata_i,
    output logic          rvalid_o,
    output logic [1023:0] rdata_o
);
  localparam int unsigned Depth = pnm_dram_pkg::T_CL;

  logic        rd;
  logic [13:0] at;
  assign rd = cmd_valid_i && cmd_i == 3'd1;
  assign at = {cmd_row_i, cmd_col_i};

  logic [Depth-1:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[Depth-2:0], rd};
  end
  assign rvalid_o = valid_q[Depth-1];

  for (genvar b = 0; b < 4; b++) begin : g_bank
    logic [255:0] mem [pnm_desc_pkg::COLUMNS];
    logic [255:0] data_q [Depth];
    always_ff @(posedge clk_i) begin
      if (cmd_valid_i && cmd_i == 3'd2 && cmd_banks_i[b])
        for (int unsigned l = 0; l < 16; l++)
          if (cmd_wmask_i[16*b+l]) mem[at][16*l+:16] <= cmd_wdata_i[256*b+16*l+:16];
      if (rd) data_q[0] <= mem[at];
      for (int unsigned s = 1; s < Depth; s++) if (valid_q[s-1]) data_q[s] <= data_q[s-1];
    end
    assign rdata_o[256*b+:256] = data_q[Depth-1];
  end
endmodule
