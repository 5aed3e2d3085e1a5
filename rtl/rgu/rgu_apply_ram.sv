// One write and one read port; read data the cycle after en_i, held without it; not reset.
module rgu_apply_ram #(
    parameter int unsigned Width = 24,
    parameter int unsigned Depth = 64,
    localparam int unsigned AddrW = $clog2(Depth)
) (
    input  logic             clk_i,
    input  logic             we_i,
    input  logic [AddrW-1:0] waddr_i,
    input  logic [Width-1:0] wdata_i,
    input  logic             en_i,
    input  logic [AddrW-1:0] raddr_i,
    output logic [Width-1:0] rdata_o
);
  logic [Width-1:0] mem[0:Depth-1];
  logic [Width-1:0] rdata_q;
  assign rdata_o = rdata_q;
  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    if (en_i) rdata_q <= mem[raddr_i];
  end
endmodule
