// Clock gate for a whole unit that rests: the usual latch and AND.
//
// en_i is sampled while the clock is low, so clk_o has whole pulses only. Registers behind it belong to
// the same clock tree: they may exchange data with the ungated side without further care. An FPGA flow
// maps it to its clock buffer with enable; simulation skips everything behind a gate that is shut.
module mr_clk_gate (
    input  logic clk_i,
    input  logic en_i,
    output logic clk_o
);
  logic en_q;
  always_latch begin
    if (!clk_i) en_q = en_i;
  end
  assign clk_o = clk_i & en_q;
endmodule
