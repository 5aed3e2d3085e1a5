// What the heads of a contribution multiply their vectors by: a ring of 1,024 heads, written a beat of
// statistics (8 heads) at a time and read 32 consecutive heads at a time, from any of them.
//
// Head h lies in bank h mod 32, so the 32 banks can be read at once: data_o[b] is the head of bank b, the
// cycle after rd_en_i. A head read in the cycle in which it is written gives the old one.
module nic_merge_weights #(
    parameter int unsigned Width = 38
) (
    input  logic                clk_i,
    input  logic                wr_en_i,
    input  logic [6:0]          wr_row_i,
    input  logic [8*Width-1:0]  wr_data_i,
    input  logic                rd_en_i,
    input  logic [9:0]          rd_pos_i,
    output logic [32*Width-1:0] data_o
);
  for (genvar b = 0; b < 32; b++) begin : g_bank
    logic [Width-1:0] mem[0:31];
    logic [Width-1:0] data_q;
    assign data_o[Width*b+:Width] = data_q;
    always_ff @(posedge clk_i) begin
      if (rd_en_i) data_q <= mem[rd_pos_i[9:5] + 5'(6'(b) < {1'b0, rd_pos_i[4:0]})];
      if (wr_en_i && wr_row_i[1:0] == 2'(b / 8)) mem[wr_row_i[6:2]] <= wr_data_i[Width*(b%8)+:Width];
    end
  end
endmodule
