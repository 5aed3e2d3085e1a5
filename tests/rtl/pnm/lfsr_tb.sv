// The shift registers of the lfsr generator alone: both kinds, in the first and in a later lane.
module lfsr_tb (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             seed_we_i,
    input  logic [23:0]      seed_i,
    input  logic             en_i,
    input  logic             restart_i,
    output logic [4*128-1:0] numbers_o,
    output logic [3:0]       fault_o
);
  for (genvar k = 0; k < 4; k++) begin : g_lfsr
    pnm_lfsr #(.Which(k % 2), .Lane(k < 2 ? 0 : 200), .Numbers(16)) u_lfsr (
        .clk_i, .rst_ni, .seed_we_i, .seed_i, .en_i, .restart_i, .numbers_o(numbers_o[128*k+:128]),
        .fault_o(fault_o[k]));
  end
endmodule
