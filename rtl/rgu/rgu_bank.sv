// One lane of the block buffer: 1,024 entries of 31 bits, one read and one write port.
// Read data the cycle after rd_en_i, held without it; not reset.
module rgu_bank (
    input  logic        clk_i,
    input  logic        wr_en_i,
    input  logic [9:0]  wr_addr_i,
    input  logic [30:0] wr_data_i,
    input  logic        rd_en_i,
    input  logic [9:0]  rd_addr_i,
    output logic [30:0] rd_data_o
);
  logic [30:0] mem [0:1023];
  logic [30:0] rd_q;
  assign rd_data_o = rd_q;
  always_ff @(posedge clk_i) begin
    if (rd_en_i) rd_q <= mem[rd_addr_i];
    if (wr_en_i) mem[wr_addr_i] <= wr_data_i;
  end
endmodule
