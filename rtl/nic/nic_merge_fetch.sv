// Takes contributions for the merge engine, asks the crossbar for their bytes and says what will come.
//
// Latency 1 from fold to fetch command, one contribution every two cycles when the crossbar takes it at
// once; up to four wait behind the one that streams. heads x dim must fit a frame. The frame stream has a
// word for each command, in order.
module nic_merge_fetch (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  fold_valid_i,
    output logic                  fold_ready_o,
    input  nic_pkg::fold_t        fold_i,
    output logic                  cmd_valid_o,
    input  logic                  cmd_ready_i,
    output logic [1:0]            cmd_mem_o,
    output logic [9:0]            cmd_buf_o,
    output logic [7:0]            cmd_beat_o,
    output logic [7:0]            cmd_beats_o,
    output logic                  frame_valid_o,
    input  logic                  frame_ready_i,
    output nic_merge_pkg::frame_t frame_o
);
  nic_pkg::fold_t        fold_q;
  nic_merge_pkg::frame_t frame;
  logic                  valid_q, room, go;
  logic [12:0]           total_q;
  logic [22:0]           product;
  logic [6:0]            stat_beats;
  logic [13:0]           bytes;
  logic [14:0]           end_byte;
  logic                  wide, wide_d;
  logic [5:0]            whole_q, part_q;
  logic [31:0]           pattern_q;
  logic [2:0]            unused_count;
  logic                  unused;

  assign fold_ready_o = !valid_q || go;
  assign go = cmd_valid_o && cmd_ready_i;
  assign cmd_valid_o = valid_q && room;

  always_ff @(posedge clk_i) begin
    if (fold_valid_i && fold_ready_o) begin
      fold_q  <= fold_i;
      total_q <= product[12:0];
      // how the heads lie in a beat of 32 or 16 values
      whole_q <= 6'd0;
      part_q <= wide_d ? 6'd16 : 6'd32;
      pattern_q <= 32'd1;
      for (int unsigned d = 1; d <= 32; d++) begin
        if (fold_i.dim == 16'(d)) begin
          if (!wide_d) begin
            whole_q <= 6'(32 / d);
            part_q <= 6'(32 % d);
          end else if (d <= 16) begin
            whole_q <= 6'(16 / d);
            part_q <= 6'(16 % d);
          end
          for (int unsigned i = 0; i < 32; i++) pattern_q[i] <= i % d == 0;
        end
      end
    end
    if (!rst_ni) valid_q <= 1'b0;
    else if (fold_ready_o) valid_q <= fold_valid_i;
  end

  assign product = 23'(fold_i.heads[9:0]) * 23'(fold_i.dim[12:0]);
  assign wide_d = fold_i.dtype == nic_merge_pkg::DT_FP32 || fold_i.dtype == nic_merge_pkg::DT_INT32;
  assign wide = fold_q.dtype == nic_merge_pkg::DT_FP32 || fold_q.dtype == nic_merge_pkg::DT_INT32;
  assign stat_beats = fold_q.reduce ? 7'd0 : 7'((fold_q.heads[9:0] + 10'd7) >> 3);
  assign bytes = {1'b0, stat_beats, 6'b0} + (wide ? 14'({total_q, 2'b0}) : {total_q, 1'b0});
  assign end_byte = {1'b0, bytes} + 15'(fold_q.off[5:0]) + 15'd63;

  assign cmd_mem_o = fold_q.mem;
  assign cmd_buf_o = fold_q.buf_id;
  assign cmd_beat_o = {1'b0, fold_q.off[12:6]};
  assign cmd_beats_o = end_byte[13:6];
  assign frame = {
    fold_q.slot, fold_q.reduce, fold_q.dtype, fold_q.rop, fold_q.nat, fold_q.first, fold_q.last,
    fold_q.heads[9:0], fold_q.dim[12:0], total_q, stat_beats, 8'((bytes + 14'd63) >> 6), fold_q.off[5:1],
    end_byte[13:6], whole_q, part_q, pattern_q
  };
  assign unused = ^{unused_count, end_byte[14], end_byte[5:0], fold_q.off[0], fold_q.heads[15:10]};

  mr_fifo #(.Width(nic_merge_pkg::FRAME_W), .Depth(4)) u_frames (
      .clk_i, .rst_ni, .valid_i(go), .ready_o(room), .data_i(frame), .valid_o(frame_valid_o),
      .ready_i(frame_ready_i), .data_o(frame_o), .count_o(unused_count)
  );

  // What the parser let through fits a frame, and payloads begin at even bytes.
  always_ff @(posedge clk_i) begin
    if (rst_ni && fold_valid_i) begin
      assert (fold_i.heads[15:10] == '0 && fold_i.dim[15:13] == '0 && !fold_i.off[0]);
      assert (product != '0 && product <= 23'd4484);
    end
  end
endmodule
