// A memory of beats with one write and one read port: what frames and results lie in.
//
// Read data the cycle after rd_en_i, held without it; a word read in the cycle in which it is written gives
// the old one. Not reset.
module nic_ram #(
    parameter int unsigned Words = 1024,
    localparam int unsigned AddrW = $clog2(Words)
) (
    input  logic             clk_i,
    input  logic             wr_en_i,
    input  logic [AddrW-1:0] wr_addr_i,
    input  logic [511:0]     wr_data_i,
    input  logic             rd_en_i,
    input  logic [AddrW-1:0] rd_addr_i,
    output logic [511:0]     rd_data_o
);
  logic [511:0] mem[0:Words-1];
  logic [511:0] rd_q;
  assign rd_data_o = rd_q;
  always_ff @(posedge clk_i) begin
    if (rd_en_i) rd_q <= mem[rd_addr_i];
    if (wr_en_i) mem[wr_addr_i] <= wr_data_i;
  end
endmodule
