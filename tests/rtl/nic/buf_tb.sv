// The crossbar with three buffer memories and one of results; the bench plays receivers, dispatch, and
// the five readers.
module buf_tb #(
    parameter int unsigned Bufs = 40
) (
    input  logic          clk_i,
    input  logic          rst_ni,
    // receivers: memory k in slice k; one write port, wr_mem_i 3 is the results'
    output logic [2:0]    alloc_valid_o,
    output logic [29:0]   alloc_id_o,
    input  logic [2:0]    alloc_take_i,
    input  logic          wr_en_i,
    input  logic [1:0]    wr_mem_i,
    input  logic [9:0]    wr_buf_i,
    input  logic [7:0]    wr_beat_i,
    input  logic [511:0]  wr_data_i,
    input  logic [2:0]    drop_valid_i,
    input  logic [29:0]   drop_buf_i,
    input  logic [2:0]    ref_valid_i,
    input  logic [29:0]   ref_buf_i,
    input  logic [11:0]   ref_count_i,
    output logic [32:0]   free_o,
    // readers
    input  logic [4:0]    cmd_valid_i,
    output logic [4:0]    cmd_ready_o,
    input  logic [9:0]    cmd_mem_i,
    input  logic [49:0]   cmd_buf_i,
    input  logic [39:0]   cmd_beat_i,
    input  logic [39:0]   cmd_beats_i,
    input  logic [4:0]    cmd_rel_i,
    output logic [4:0]    valid_o,
    input  logic [4:0]    ready_i,
    output logic [2559:0] data_o,
    output logic [4:0]    last_o
);
  logic [3:0]    rd_en;
  logic [39:0]   rd_buf;
  logic [31:0]   rd_beat;
  logic [2047:0] rd_data;
  logic [2:0]    rel_valid;
  logic [29:0]   rel_buf;
  nic_xbar u_xbar (
      .clk_i, .rst_ni, .cmd_valid_i, .cmd_ready_o, .cmd_mem_i, .cmd_buf_i, .cmd_beat_i, .cmd_beats_i, .cmd_rel_i,
      .valid_o, .ready_i, .data_o, .last_o, .rd_en_o(rd_en), .rd_buf_o(rd_buf), .rd_beat_o(rd_beat),
      .rd_data_i(rd_data), .rel_valid_o(rel_valid), .rel_buf_o(rel_buf)
  );
  for (genvar m = 0; m < 3; m++) begin : gen_buf
    nic_buf #(.Bufs(Bufs)) u_buf (
        .clk_i, .rst_ni, .alloc_valid_o(alloc_valid_o[m]), .alloc_id_o(alloc_id_o[m*10+:10]),
        .alloc_take_i(alloc_take_i[m]), .wr_en_i(wr_en_i && wr_mem_i == 2'(m)), .wr_buf_i, .wr_beat_i, .wr_data_i,
        .drop_valid_i(drop_valid_i[m]), .drop_buf_i(drop_buf_i[m*10+:10]), .ref_valid_i(ref_valid_i[m]),
        .ref_buf_i(ref_buf_i[m*10+:10]), .ref_count_i(ref_count_i[m*4+:4]), .rd_en_i(rd_en[m]),
        .rd_buf_i(rd_buf[m*10+:10]), .rd_beat_i(rd_beat[m*8+:8]), .rd_data_o(rd_data[m*512+:512]),
        .rel_valid_i(rel_valid[m]), .rel_buf_i(rel_buf[m*10+:10]), .free_o(free_o[m*11+:11])
    );
  end
  // 64 slots of 144 beats
  logic [13:0] wr_word, rd_word;
  assign wr_word = {1'b0, wr_buf_i[5:0], 7'd0} + {4'd0, wr_buf_i[5:0], 4'd0} + {6'd0, wr_beat_i};
  assign rd_word = {1'b0, rd_buf[35:30], 7'd0} + {4'd0, rd_buf[35:30], 4'd0} + {6'd0, rd_beat[31:24]};
  nic_ram #(.Words(64 * 144)) u_results (
      .clk_i, .wr_en_i(wr_en_i && wr_mem_i == 2'd3), .wr_addr_i(wr_word), .wr_data_i, .rd_en_i(rd_en[3]),
      .rd_addr_i(rd_word), .rd_data_o(rd_data[2047:1536])
  );
  logic unused_slot;
  assign unused_slot = ^rd_buf[39:36];
endmodule
