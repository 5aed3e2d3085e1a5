// The KV engines as nic_top has them: one writer, three readers on one AXI4 port, and the tokens that order
// them. Fields of the three readers stand side by side.
module kv_tb (
    input  logic           clk_i,
    input  logic           rst_ni,
    // tokens
    output logic [7:0]     next_o,
    output logic           room_o,
    output logic [7:0]     last_o,
    output logic [255:0]   pending_o,
    output logic [255:0]   bad_o,
    input  logic           hold_i,
    input  logic [7:0]     hold_token_i,
    input  logic [2:0]     left_valid_i,
    input  logic [23:0]    left_token_i,
    // a write
    input  logic           kvw_valid_i,
    output logic           kvw_ready_o,
    input  logic [1:0]     kvw_mem_i,
    input  logic [9:0]     kvw_buf_i,
    input  logic [12:0]    kvw_off_i,
    input  logic [12:0]    kvw_len_i,
    input  logic [63:0]    kvw_addr_i,
    // its buffer
    output logic           cmd_valid_o,
    input  logic           cmd_ready_i,
    output logic [1:0]     cmd_mem_o,
    output logic [9:0]     cmd_buf_o,
    output logic [7:0]     cmd_beat_o,
    output logic [7:0]     cmd_beats_o,
    output logic           cmd_rel_o,
    input  logic           fetch_valid_i,
    output logic           fetch_ready_o,
    input  logic [511:0]   fetch_data_i,
    output logic           done_valid_o,
    output logic [7:0]     done_token_o,
    output logic           done_bad_o,
    output logic [63:0]    bad_addr_o,
    // reads
    input  logic [2:0]     kvr_valid_i,
    output logic [2:0]     kvr_ready_o,
    input  logic [63:0]    kvr_addr_i,
    input  logic [31:0]    kvr_len_i,
    input  logic [31:0]    kvr_offset_i,
    input  logic [255:0]   kvr_hdr_i,
    input  logic [7:0]     kvr_token_i,
    output logic [2:0]     left_valid_o,
    output logic [23:0]    left_token_o,
    output logic [2:0]     frame_valid_o,
    input  logic [2:0]     frame_ready_i,
    output logic [3*13-1:0]  frame_len_o,
    output logic [3*16-1:0]  frame_sum_o,
    output logic [3*256-1:0] frame_hdr_o,
    output logic [2:0]     frame_last_o,
    output logic [2:0]     frame_skip_o,
    output logic [2:0]     data_valid_o,
    input  logic [2:0]     data_ready_i,
    output logic [3*512-1:0] data_o,
    output logic [2:0]     data_last_o,
    output logic [2:0]     read_bad_o,
    output logic [3:0]     busy_o,
    // memory
    output logic [63:0]    awaddr_o,
    output logic [7:0]     awlen_o,
    output logic           awvalid_o,
    input  logic           awready_i,
    output logic [511:0]   wdata_o,
    output logic [63:0]    wstrb_o,
    output logic           wlast_o,
    output logic           wvalid_o,
    input  logic           wready_i,
    input  logic [1:0]     bresp_i,
    input  logic           bvalid_i,
    output logic           bready_o,
    output logic [3:0]     arid_o,
    output logic [63:0]    araddr_o,
    output logic [7:0]     arlen_o,
    output logic           arvalid_o,
    input  logic           arready_i,
    input  logic [3:0]     rid_i,
    input  logic [511:0]   rdata_i,
    input  logic [1:0]     rresp_i,
    input  logic           rlast_i,
    input  logic           rvalid_i,
    output logic           rready_o
);
  logic [3*64-1:0] araddr;
  logic [3*8-1:0]  arlen;
  logic [2:0]      arvalid, arready, rvalid, rready;
  logic [511:0]    rdata;
  logic [1:0]      rresp;
  logic            rlast;

  nic_tokens u_tokens (
    .clk_i, .rst_ni, .next_o, .room_o, .issue_i(kvw_valid_i && kvw_ready_o), .last_o, .hold_i, .hold_token_i,
    .left_valid_i({left_valid_o, left_valid_i}), .left_token_i({left_token_o, left_token_i}),
    .done_valid_i(done_valid_o), .done_token_i(done_token_o), .done_bad_i(done_bad_o), .pending_o, .bad_o
  );
  nic_kvwr u_kvwr (
    .clk_i, .rst_ni, .kvw_valid_i, .kvw_ready_o,
    .kvw_i({kvw_mem_i, kvw_buf_i, kvw_off_i, kvw_len_i, kvw_addr_i, next_o}), .cmd_valid_o, .cmd_ready_i,
    .cmd_mem_o, .cmd_buf_o, .cmd_beat_o, .cmd_beats_o, .cmd_rel_o, .fetch_valid_i, .fetch_ready_o, .fetch_data_i,
    .awaddr_o, .awlen_o, .awvalid_o, .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i, .bresp_i,
    .bvalid_i, .bready_o, .done_valid_o, .done_token_o, .done_bad_o, .bad_addr_o, .busy_o(busy_o[3])
  );
  for (genvar k = 0; k < 3; k++) begin : gen_reader
    nic_kvrd u_kvrd (
      .clk_i, .rst_ni, .kvr_valid_i(kvr_valid_i[k]), .kvr_ready_o(kvr_ready_o[k]),
      .kvr_i({kvr_addr_i, kvr_len_i, kvr_offset_i, kvr_hdr_i, kvr_token_i}), .kv_pending_i(pending_o),
      .write_bad_i(done_valid_o && done_bad_o), .left_valid_o(left_valid_o[k]), .left_token_o(left_token_o[8*k+:8]),
      .frame_valid_o(frame_valid_o[k]), .frame_ready_i(frame_ready_i[k]), .frame_len_o(frame_len_o[13*k+:13]),
      .frame_sum_o(frame_sum_o[16*k+:16]), .frame_hdr_o(frame_hdr_o[256*k+:256]), .frame_last_o(frame_last_o[k]),
      .frame_skip_o(frame_skip_o[k]), .data_valid_o(data_valid_o[k]), .data_ready_i(data_ready_i[k]),
      .data_o(data_o[512*k+:512]), .data_last_o(data_last_o[k]), .araddr_o(araddr[64*k+:64]),
      .arlen_o(arlen[8*k+:8]), .arvalid_o(arvalid[k]), .arready_i(arready[k]), .rdata_i(rdata), .rresp_i(rresp),
      .rlast_i(rlast), .rvalid_i(rvalid[k]), .rready_o(rready[k]), .read_bad_o(read_bad_o[k]), .busy_o(busy_o[k])
    );
  end
  mr_axi_rd_arb #(.Count(3)) u_arb (
    .clk_i, .rst_ni, .araddr_i(araddr), .arlen_i(arlen), .arvalid_i(arvalid), .arready_o(arready), .rdata_o(rdata),
    .rresp_o(rresp), .rlast_o(rlast), .rvalid_o(rvalid), .rready_i(rready), .arid_o, .araddr_o, .arlen_o, .arvalid_o,
    .arready_i, .rid_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_o
  );
endmodule
