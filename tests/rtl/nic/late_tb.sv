// The completed keys, and the chain of a key, so that a bench can crowd one.
module late_tb (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         lk_valid_i,
    output logic         lk_ready_o,
    input  logic [111:0] lk_key_i,
    output logic         rsp_valid_o,
    output logic         rsp_seen_o,
    input  logic         ins_valid_i,
    output logic         ins_ready_o,
    input  logic [111:0] ins_key_i,
    output logic [nic_desc_pkg::LATE_HASH_W-1:0] chain_o // of lk_key_i
);
  assign chain_o = nic_desc_pkg::late_hash(lk_key_i);
  nic_late u_late (.*);
endmodule
