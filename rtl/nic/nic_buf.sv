// Frame buffers of one port: the beats, the free list, and how many readers each buffer still owes.
//
// A buffer is taken by the receiver, written once, and comes back in one of three ways: the receiver drops
// the frame (drop), dispatch gives it no reader (ref with count 0), or the last of its count readers has
// read it (rel). Each way has its own list, so all three may happen in one cycle; the lists together hold
// every buffer once. Freed buffers are taken again before those that were never used. Read data the cycle
// after rd_en_i. alloc_id_o is the buffer taken when alloc_take_i is high.
module nic_buf #(
    parameter int unsigned Bufs = nic_pkg::NET_BUFS // <= 1023
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    // receiver
    output logic         alloc_valid_o,
    output logic [9:0]   alloc_id_o,
    input  logic         alloc_take_i,
    input  logic         wr_en_i,
    input  logic [9:0]   wr_buf_i,
    input  logic [7:0]   wr_beat_i,
    input  logic [511:0] wr_data_i,
    input  logic         drop_valid_i,
    input  logic [9:0]   drop_buf_i,
    // dispatch: how often the buffer will be released; before its first release
    input  logic         ref_valid_i,
    input  logic [9:0]   ref_buf_i,
    input  logic [3:0]   ref_count_i,
    // crossbar
    input  logic         rd_en_i,
    input  logic [9:0]   rd_buf_i,
    input  logic [7:0]   rd_beat_i,
    output logic [511:0] rd_data_o,
    input  logic         rel_valid_i,
    input  logic [9:0]   rel_buf_i,
    output logic [10:0]  free_o
);
  localparam int unsigned Words = Bufs * nic_pkg::BUF_BEATS;
  localparam int unsigned AddrW = $clog2(Words);
  localparam int unsigned IdW   = $clog2(Bufs);
  // the longest frame: Ethernet with a tag, IPv4 with all options, UDP
  if (nic_pkg::BUF_BEATS * nic_pkg::BEAT_BYTES < 18 + 60 + 8 + nic_frame_pkg::MAX_UDP_PAYLOAD) begin : gen_too_small
    nic_buffer_is_shorter_than_a_frame u_error ();
  end
  logic [IdW-1:0] rel_id, ref_id;
  assign rel_id = rel_buf_i[IdW-1:0];
  assign ref_id = ref_buf_i[IdW-1:0];

  // 144 = 128 + 16
  logic [17:0] wr_word, rd_word;
  assign wr_word = {1'b0, wr_buf_i, 7'd0} + {4'd0, wr_buf_i, 4'd0} + {10'd0, wr_beat_i};
  assign rd_word = {1'b0, rd_buf_i, 7'd0} + {4'd0, rd_buf_i, 4'd0} + {10'd0, rd_beat_i};
  nic_ram #(.Words(Words)) u_ram (
      .clk_i, .wr_en_i, .wr_addr_i(wr_word[AddrW-1:0]), .wr_data_i,
      .rd_en_i, .rd_addr_i(rd_word[AddrW-1:0]), .rd_data_o
  );
  if (AddrW < 18) begin : gen_unused
    logic [35:0] unused_word;
    assign unused_word = {wr_word, rd_word};
  end

  // ---- who still has to read: counts as set, and releases so far of buffers used before ------------
  logic [3:0]      set_mem [0:Bufs-1];
  logic [3:0]      done_mem[0:Bufs-1];
  logic [Bufs-1:0] used_q;
  logic [3:0]      done;
  logic            final_rel, idle_ref;
  assign done = (used_q[rel_id] ? done_mem[rel_id] : 4'd0) + 4'd1;
  assign final_rel = rel_valid_i && done == set_mem[rel_id];
  assign idle_ref = ref_valid_i && ref_count_i == 4'd0;
  always_ff @(posedge clk_i) begin
    if (ref_valid_i) set_mem[ref_id] <= ref_count_i;
    if (rel_valid_i) done_mem[rel_id] <= final_rel ? 4'd0 : done;
    if (!rst_ni) used_q <= '0;
    else if (rel_valid_i) used_q[rel_id] <= 1'b1;
  end

  // ---- the free list -----------------------------------------------------------------------------
  localparam int unsigned CountW = $clog2(Bufs + 1);
  logic [2:0]  push, list_valid, list_ready, list_full_n;
  logic [29:0] push_id, list_id;
  logic [3*CountW-1:0] unused_count;
  logic [9:0]  fresh_q;
  logic        fresh;
  logic [10:0] free_q;
  assign push = {drop_valid_i, idle_ref, final_rel};
  assign push_id = {drop_buf_i, ref_buf_i, rel_buf_i};
  for (genvar k = 0; k < 3; k++) begin : gen_list
    mr_fifo #(.Width(10), .Depth(Bufs)) u_list (
        .clk_i, .rst_ni, .valid_i(push[k]), .ready_o(list_full_n[k]), .data_i(push_id[k*10+:10]),
        .valid_o(list_valid[k]), .ready_i(list_ready[k]), .data_o(list_id[k*10+:10]),
        .count_o(unused_count[k*CountW+:CountW])
    );
  end
  assign fresh = fresh_q != 10'(Bufs);
  assign alloc_valid_o = list_valid != 3'b000 || fresh;
  always_comb begin
    list_ready = 3'b000;
    alloc_id_o = fresh_q;
    if (list_valid[2]) begin
      alloc_id_o = list_id[29:20];
      list_ready[2] = alloc_take_i;
    end else if (list_valid[1]) begin
      alloc_id_o = list_id[19:10];
      list_ready[1] = alloc_take_i;
    end else if (list_valid[0]) begin
      alloc_id_o = list_id[9:0];
      list_ready[0] = alloc_take_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fresh_q <= '0;
      free_q <= 11'(Bufs);
    end else begin
      if (alloc_take_i && list_valid == 3'b000) fresh_q <= fresh_q + 10'd1;
      free_q <= free_q - {10'd0, alloc_take_i} + {10'd0, push[0]} + {10'd0, push[1]} + {10'd0, push[2]};
    end
  end
  assign free_o = free_q;

`ifndef SYNTHESIS
  // No buffer is free twice, and none is touched while it is free.
  logic [Bufs-1:0] taken_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) taken_q <= '0;
    else begin
      if (alloc_take_i) begin
        alloc_there: assert (alloc_valid_o && !taken_q[alloc_id_o[IdW-1:0]]);
        taken_q[alloc_id_o[IdW-1:0]] <= 1'b1;
      end
      if (drop_valid_i) begin
        drop_taken: assert (taken_q[drop_buf_i[IdW-1:0]]);
        taken_q[drop_buf_i[IdW-1:0]] <= 1'b0;
      end
      if (ref_valid_i) ref_taken: assert (taken_q[ref_id]);
      if (idle_ref) taken_q[ref_id] <= 1'b0;
      if (rel_valid_i) rel_taken: assert (taken_q[rel_id] && done <= set_mem[rel_id]);
      if (final_rel) taken_q[rel_id] <= 1'b0;
      if (rd_en_i) read_taken: assert (taken_q[rd_buf_i[IdW-1:0]]);
      if (push != 3'b000) list_room: assert (&list_full_n);
    end
  end
`else
  logic [2:0] unused_full;
  assign unused_full = list_full_n;
`endif
endmodule
