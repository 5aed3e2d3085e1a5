// One port's share of a decision: which descriptor it gets, with the members that live behind it.
// Combinational; part of nic_emit.
module nic_emit_port #(
    parameter int unsigned Port = 0 // 0, 1: network; 2: the own host
) (
    input  logic           first_i,  // what comes before an answer; else what comes after
    input  logic           raw_i,
    input  logic           copy_i,
    input  logic           serve_i,
    input  logic           result_i,
    input  logic [31:0]    members_i,
    input  logic [31:0]    port1_i,
    input  nic_pkg::txd_t  txd_raw_i,
    input  nic_pkg::txd_t  txd_copy_i,
    input  nic_pkg::txd_t  txd_answer_i,
    input  nic_pkg::txd_t  txd_serve_i,
    input  nic_pkg::txd_t  txd_result_i,
    output nic_pkg::txd_t  txd_o
);
  logic is_multicast;
  assign is_multicast = first_i ? copy_i && !raw_i : result_i;
  nic_pkg::txd_t txd;
  always_comb begin
    txd = txd_answer_i;
    if (first_i) begin
      if (raw_i) txd = txd_raw_i;
      else if (copy_i) txd = txd_copy_i;
      else if (serve_i) txd = txd_serve_i;
    end else if (result_i) txd = txd_result_i;
    if (is_multicast) txd.members = Port == 2 ? 32'd0 : members_i & (Port == 1 ? port1_i : ~port1_i);
    txd.host = Port == 2;
  end
  assign txd_o = txd;
endmodule
