// The merge engine with its contribution taken apart into fields.
module merge_tb (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          fold_valid_i,
    output logic          fold_ready_o,
    input  logic [5:0]    slot_i,
    input  logic [1:0]    mem_i,
    input  logic [9:0]    buf_i,
    input  logic [12:0]   off_i,
    input  logic          reduce_i,
    input  logic [2:0]    dtype_i,
    input  logic [1:0]    rop_i,
    input  logic          nat_i,
    input  logic [15:0]   heads_i,
    input  logic [15:0]   dim_i,
    input  logic          first_i,
    input  logic          last_i,
    output logic [63:0]   busy_o,
    output logic          idle_o,
    output logic          cmd_valid_o,
    input  logic          cmd_ready_i,
    output logic [1:0]    cmd_mem_o,
    output logic [9:0]    cmd_buf_o,
    output logic [7:0]    cmd_beat_o,
    output logic [7:0]    cmd_beats_o,
    output logic          cmd_rel_o,
    input  logic          fetch_valid_i,
    output logic          fetch_ready_o,
    input  logic [511:0]  fetch_data_i,
    input  logic          fetch_last_i,
    output logic          done_valid_o,
    output logic [5:0]    done_slot_o,
    output logic [63:0]   res_ready_o,
    input  logic          res_clear_valid_i,
    input  logic [5:0]    res_clear_slot_i,
    output logic [1023:0] res_sum_o,
    input  logic          res_rd_en_i,
    input  logic [5:0]    res_rd_slot_i,
    input  logic [7:0]    res_rd_beat_i,
    output logic [511:0]  res_rd_data_o
);
  nic_pkg::fold_t fold;
  assign fold = {slot_i, mem_i, buf_i, off_i, reduce_i, dtype_i, rop_i, nat_i, heads_i, dim_i, first_i, last_i};
  nic_merge u_merge (
      .clk_i, .rst_ni, .fold_valid_i, .fold_ready_o, .fold_i(fold), .busy_o, .idle_o, .cmd_valid_o,
      .cmd_ready_i, .cmd_mem_o, .cmd_buf_o, .cmd_beat_o, .cmd_beats_o, .cmd_rel_o, .fetch_valid_i,
      .fetch_ready_o, .fetch_data_i, .fetch_last_i, .done_valid_o, .done_slot_o, .res_ready_o,
      .res_clear_valid_i, .res_clear_slot_i, .res_sum_o, .res_rd_en_i, .res_rd_slot_i, .res_rd_beat_i,
      .res_rd_data_o
  );
endmodule
