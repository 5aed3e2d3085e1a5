// A group's scratchpad: 4,096 rows of 16 words, one read and one write a cycle, a write enable a word.
// Data one cycle after rd_en_i; a row that is written in the same cycle is read as it was.
module pnm_scratch (
    input  logic         clk_i,
    input  logic         rd_en_i,
    input  logic [11:0]  rd_row_i,
    output logic [511:0] rd_data_o,
    input  logic         wr_en_i,
    input  logic [11:0]  wr_row_i,
    input  logic [15:0]  wr_be_i,
    input  logic [511:0] wr_data_i
);
  logic [511:0] mem [pnm_desc_pkg::SCRATCH_ROWS];
  logic [511:0] data_q;
  assign rd_data_o = data_q;
  always_ff @(posedge clk_i) begin
    if (rd_en_i) data_q <= mem[rd_row_i];
    if (wr_en_i)
      for (int unsigned w = 0; w < 16; w++) if (wr_be_i[w]) mem[wr_row_i][32*w+:32] <= wr_data_i[32*w+:32];
  end
endmodule
