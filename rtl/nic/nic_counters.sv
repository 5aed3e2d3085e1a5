// The counters of nic_frame_pkg, 64 bits each.
//
// Source k adds inc_amount_i to counter inc_index_i, one increment a cycle; what can happen in one cycle
// comes from different sources. Each source has a bank of its own and a counter is the sum over the banks.
// take_i copies counter sel_i to value_o, all its bits as they were in that cycle, in the next cycle.
// Banks are lookup-table memory, cleared by a reset at once: a word that was never used counts as 0.
module nic_counters #(
    parameter int unsigned Sources = 16 // a multiple of 4
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic [Sources-1:0]    inc_valid_i,
    input  logic [Sources*6-1:0]  inc_index_i,
    input  logic [Sources*16-1:0] inc_amount_i,
    input  logic [5:0]            sel_i,
    input  logic                  take_i,
    output logic [63:0]           value_o
);
  logic [Sources*64-1:0]    read;
  logic [Sources/4*64-1:0]  part_d, part_q;

  if (Sources % 4 != 0) begin : gen_odd
    nic_counters_come_in_fours u_error ();
  end

  for (genvar s = 0; s < Sources; s++) begin : gen_bank
    logic [63:0] bank [0:63];
    logic [63:0] used_q, old;
    logic [5:0]  index;
    assign index = inc_index_i[6*s+:6];
    assign old   = inc_valid_i[s] && used_q[index] ? bank[index] : '0;
    always_ff @(posedge clk_i) begin
      if (inc_valid_i[s]) bank[index] <= old + {48'd0, inc_amount_i[16*s+:16]};
      if (!rst_ni) used_q <= '0;
      else if (inc_valid_i[s]) used_q[index] <= 1'b1;
    end
    assign read[64*s+:64] = take_i && used_q[sel_i] ? bank[sel_i] : '0;
  end

  always_comb begin
    part_d = '0;
    if (take_i) for (int unsigned s = 0; s < Sources; s++)
      part_d[64*(s/4)+:64] = part_d[64*(s/4)+:64] + read[64*s+:64];
    value_o = '0;
    for (int unsigned p = 0; p < Sources / 4; p++) value_o = value_o + part_q[64*p+:64];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) part_q <= '0;
    else if (take_i) part_q <= part_d;
  end
endmodule
