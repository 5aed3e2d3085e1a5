// Which bank of the weights' ring each value of a beat takes its head from: the bank of the first value's
// head plus the number of heads that begin up to the value.
//
// Two stages, each under its own enable, that see the same beat one cycle apart; bank_o (value i in
// [5i +: 5]) the cycle after the second.
module nic_merge_select (
    input  logic         clk_i,
    input  logic [1:0]   en_i,
    input  logic [31:0]  begins0_i,
    input  logic [31:0]  begins1_i,
    input  logic [4:0]   pos1_i,
    output logic [159:0] bank_o
);
  logic [4:0]   count_q[0:3]; // heads that begin before value 8k
  logic [159:0] bank_q;
  assign bank_o = bank_q;
  always_ff @(posedge clk_i) begin : p_select
    logic [4:0] n;
    if (en_i[0]) begin
      n = 5'd0;
      for (int unsigned k = 0; k < 4; k++) begin
        count_q[k] <= n;
        for (int unsigned i = 0; i < 8; i++) n = n + 5'(begins0_i[8*k+i]);
      end
    end
    if (en_i[1]) begin
      for (int unsigned k = 0; k < 4; k++) begin
        n = pos1_i + count_q[k];
        for (int unsigned i = 0; i < 8; i++) begin
          n = n + 5'(begins1_i[8*k+i]);
          bank_q[5*(8*k+i)+:5] <= n;
        end
      end
    end
  end
endmodule
