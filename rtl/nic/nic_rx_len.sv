// Bytes of payload that a Millrace header implies, and whether a frame has just those.
//
// Registered twice: the product heads x dim, then the sum with the statistics, then ok_o; three cycles from
// head_i to ok_o, a frame a cycle. KV blocks may have 1..4,096 bytes; where dtype is illegal ok_o says nothing.
module nic_rx_len (
    input  logic        clk_i,
    input  logic        valid_i,
    input  logic [7:0]  opcode_i,
    input  logic [7:0]  dtype_i,
    input  logic [15:0] heads_i,
    input  logic [15:0] dim_i,
    input  logic [15:0] bytes_i,  // payload bytes there are
    output logic        ok_o
);
  logic        valid_q, valid2_q, kv_q, kv2_q, many_q, many2_q, wide_q, ok_q;
  logic [31:0] product_q;
  logic [18:0] stats_q;
  logic [34:0] want_q;
  logic [15:0] bytes_q, bytes2_q;
  logic [3:0]  plain_q;
  logic        vector_q;

  // statistics bytes, padded to 64
  function automatic logic [18:0] padded(input logic [18:0] bytes);
    padded = (bytes + 19'd63) & ~19'd63;
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      product_q <= {16'd0, heads_i} * {16'd0, dim_i};
      stats_q <= 19'd0;
      if (opcode_i == nic_frame_pkg::OP_PARTIAL) stats_q <= padded({heads_i, 3'd0});
      if (opcode_i == nic_frame_pkg::OP_MERGED) stats_q <= padded({1'b0, heads_i, 2'd0});
      vector_q <= opcode_i >= nic_frame_pkg::OP_QUERY && opcode_i <= nic_frame_pkg::OP_RESULT;
      kv_q <= opcode_i == nic_frame_pkg::OP_KV_WRITE || opcode_i == nic_frame_pkg::OP_KV_DATA;
      // a reduction has one head
      many_q <= (opcode_i == nic_frame_pkg::OP_REDUCE || opcode_i == nic_frame_pkg::OP_RESULT) && heads_i != 16'd1;
      wide_q <= dtype_i >= nic_frame_pkg::DT_FP32;
      case (opcode_i)
        nic_frame_pkg::OP_KV_READ: plain_q <= 4'd4;
        nic_frame_pkg::OP_NACK: plain_q <= 4'd8;
        default: plain_q <= 4'd0;
      endcase
      bytes_q <= bytes_i;
    end
    if (valid_q) begin
      want_q <= {31'd0, plain_q};
      if (vector_q) want_q <= (wide_q ? {1'b0, product_q, 2'd0} : {2'd0, product_q, 1'b0}) + {16'd0, stats_q};
      kv2_q <= kv_q;
      many2_q <= many_q;
      bytes2_q <= bytes_q;
    end
    if (valid2_q) begin
      ok_q <= kv2_q ? bytes2_q != 16'd0 && bytes2_q <= 16'd4096 : want_q == {19'd0, bytes2_q} && !many2_q;
    end
    valid_q <= valid_i;
    valid2_q <= valid_q;
  end
  assign ok_o = ok_q;
endmodule
