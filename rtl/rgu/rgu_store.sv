// Output of the tile generator: row segments to memory commands, or to frames of a stream.
//
// Takes one command a segment (cmd_*) and its lines, at most a few commands ahead of the lines. Memory:
// both pass through queues to a write master, a command {addr, len, offset of the first byte in the
// first line} and its lines. Stream: each segment is a frame; its first beat holds, as little-endian
// 32-bit words, row, first column, bytes, and the byte offset of the first element in the second beat,
// the rest zero; then the lines, the last one cut by tkeep. Queues of 32 commands and 32 lines hide the
// pause between two blocks.
module rgu_store (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         stream_i,       // job: to the stream
    input  logic         cmd_valid_i,
    output logic         cmd_ready_o,
    input  logic [63:0]  cmd_addr_i,
    input  logic [31:0]  cmd_row_i,
    input  logic [31:0]  cmd_col_i,
    input  logic [8:0]   cmd_len_i,
    input  logic [5:0]   cmd_off_i,
    input  logic         valid_i,
    output logic         ready_o,
    input  logic [511:0] data_i,
    // write master
    output logic         wr_cmd_valid_o,
    input  logic         wr_cmd_ready_i,
    output logic [63:0]  wr_cmd_addr_o,
    output logic [8:0]   wr_cmd_len_o,
    output logic [5:0]   wr_cmd_off_o,
    output logic         wr_valid_o,
    input  logic         wr_ready_i,
    output logic [511:0] wr_data_o,
    // stream
    output logic         st_valid_o,
    input  logic         st_ready_i,
    output logic [511:0] st_data_o,
    output logic [63:0]  st_keep_o,
    output logic         st_last_o,
    output logic         busy_o
);
  logic         c_valid, c_ready, l_valid, l_ready;
  logic [63:0]  c_addr;
  logic [8:0]   c_len;
  logic [5:0]   c_off;
  logic [511:0] l_data;
  logic [5:0]   unused_count_c, unused_count_l;

  // A stream command needs row and column, a memory command the address: they share the queue.
  mr_fifo #(.Width(64 + 9 + 6), .Depth(32)) u_cmds (
      .clk_i, .rst_ni,
      .valid_i(cmd_valid_i),
      .ready_o(cmd_ready_o),
      .data_i({stream_i ? {cmd_row_i, cmd_col_i} : cmd_addr_i, cmd_len_i, cmd_off_i}),
      .valid_o(c_valid),
      .ready_i(c_ready),
      .data_o({c_addr, c_len, c_off}),
      .count_o(unused_count_c)
  );
  mr_fifo #(.Width(512), .Depth(32)) u_lines (
      .clk_i, .rst_ni, .valid_i, .ready_o, .data_i,
      .valid_o(l_valid),
      .ready_i(l_ready),
      .data_o(l_data),
      .count_o(unused_count_l)
  );

  // ---- stream: header, then lines; a register slice towards the port -----------------------------
  logic       body_q, st_valid, st_ready, st_last, line_last;
  logic [2:0] left_q, lines;
  logic [9:0] bytes_end;
  logic [63:0] st_keep, end_keep;
  logic [511:0] st_data;
  assign bytes_end = {1'b0, c_len} + {4'd0, c_off};
  assign lines = 3'((bytes_end + 10'd63) >> 6);
  assign line_last = left_q == 3'd1;
  assign end_keep = ~64'd0 >> (6'd0 - bytes_end[5:0]);
  assign st_valid = stream_i && c_valid && (!body_q || l_valid);
  assign st_last = body_q && line_last;
  assign st_keep = st_last ? end_keep : '1;
  assign st_data = body_q ? l_data : {384'd0, 26'd0, c_off, 23'd0, c_len, c_addr[31:0], c_addr[63:32]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) body_q <= 1'b0;
    else if (st_valid && st_ready) body_q <= !st_last;
    if (st_valid && st_ready) left_q <= body_q ? left_q - 3'd1 : lines;
  end

  mr_stream_reg #(.Width(512 + 64 + 1)) u_stream (
      .clk_i, .rst_ni,
      .valid_i(st_valid),
      .ready_o(st_ready),
      .data_i({st_last, st_keep, st_data}),
      .valid_o(st_valid_o),
      .ready_i(st_ready_i),
      .data_o({st_last_o, st_keep_o, st_data_o})
  );
  mr_stream_check #(.Width(512), .Keep(64)) u_check_stream (
      .clk_i, .rst_ni,
      .valid_i(st_valid_o),
      .ready_i(st_ready_i),
      .data_i(st_data_o),
      .keep_i(st_keep_o),
      .last_i(st_last_o)
  );

  // ---- memory ----------------------------------------------------------------------------------------
  assign wr_cmd_valid_o = c_valid && !stream_i;
  assign wr_cmd_addr_o = c_addr;
  assign wr_cmd_len_o = c_len;
  assign wr_cmd_off_o = c_off;
  assign wr_valid_o = l_valid && !stream_i;
  assign wr_data_o = l_data;

  assign c_ready = stream_i ? st_ready && st_last && l_valid : wr_cmd_ready_i;
  assign l_ready = stream_i ? st_ready && body_q && c_valid : wr_ready_i;
  assign busy_o = c_valid || l_valid || st_valid_o;
endmodule
