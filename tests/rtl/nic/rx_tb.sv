// Guard, receiver and buffers of a network port (lane 0) and of the host port (lane 1); host_i chooses the
// lane that sees the stream and that the bench plays dispatch and crossbar for.
module rx_tb #(
    parameter int unsigned Bufs = 96, // one long frame is read while seventy short ones come
    parameter int unsigned MetaDepth = 128
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         host_i,
    input  logic         chain_i,
    input  logic         own_valid_i,
    input  logic [47:0]  own_mac_i,
    input  logic [31:0]  own_ip_i,
    input  logic [15:0]  own_port_i,
    input  logic         hold_i,
    input  logic         valid_i,
    output logic         ready_o,
    input  logic [511:0] data_i,
    input  logic [63:0]  keep_i,
    input  logic         last_i,
    output logic         hole_o,
    output logic         meta_valid_o,
    input  logic         meta_ready_i,
    output logic [1:0]   meta_src_o,
    output logic [9:0]   meta_buf_o,
    output logic         meta_nobuf_o,
    output logic [5:0]   meta_fate_o,
    output logic [17:0]  meta_bytes_o,
    output logic [6:0]   meta_mr_off_o,
    output logic [13:0]  meta_pay_len_o,
    output logic [15:0]  meta_sum_o,
    output logic [255:0] meta_hdr_o,
    output logic [63:0]  meta_pay0_o,
    output logic [47:0]  meta_dst_mac_o,
    output logic         fate_valid_o,
    output logic [5:0]   fate_o,
    output logic [17:0]  fate_bytes_o,
    input  logic         ref_valid_i,
    input  logic [9:0]   ref_buf_i,
    input  logic [3:0]   ref_count_i,
    input  logic         rel_valid_i,
    input  logic [9:0]   rel_buf_i,
    input  logic         rd_en_i,
    input  logic [9:0]   rd_buf_i,
    input  logic [7:0]   rd_beat_i,
    output logic [511:0] rd_data_o,
    output logic [10:0]  free_o,
    output logic         busy_o
);
  nic_pkg::node_t own;
  assign own = {own_valid_i, own_mac_i, own_ip_i, own_port_i, 1'b0};
  localparam int unsigned MetaW = nic_pkg::META_W;
  logic [1:0]         ready, hole, meta_valid, fate_valid, busy;
  logic [2*MetaW-1:0] metas;
  logic [2*6-1:0]     fates;
  logic [2*18-1:0]    fate_bytes;
  logic [2*512-1:0]   rd_data;
  logic [2*11-1:0]    frees;
  for (genvar k = 0; k < 2; k++) begin : gen_lane
    logic         on;
    logic         g_valid, g_last, g_bad;
    logic [511:0] g_data;
    logic [6:0]   g_bytes;
    logic         alloc_valid, alloc_take, wr_en, drop_valid;
    logic [9:0]   alloc_id, wr_buf, drop_buf;
    logic [7:0]   wr_beat;
    logic [511:0] wr_data;
    assign on = host_i == (k == 1);
    nic_guard u_guard (
        .clk_i, .rst_ni, .hold_i, .valid_i(valid_i && on), .ready_o(ready[k]), .data_i, .keep_i, .last_i,
        .valid_o(g_valid), .data_o(g_data), .bytes_o(g_bytes), .last_o(g_last), .bad_o(g_bad), .hole_o(hole[k])
    );
    nic_rx #(.Src(k == 1 ? nic_pkg::SRC_HOST : nic_pkg::SRC_NET1), .MetaDepth(MetaDepth)) u_rx (
        .clk_i, .rst_ni, .own_i(own), .chain_i, .valid_i(g_valid), .data_i(g_data), .bytes_i(g_bytes),
        .last_i(g_last), .bad_i(g_bad), .alloc_valid_i(alloc_valid), .alloc_id_i(alloc_id),
        .alloc_take_o(alloc_take), .wr_en_o(wr_en), .wr_buf_o(wr_buf), .wr_beat_o(wr_beat), .wr_data_o(wr_data),
        .drop_valid_o(drop_valid), .drop_buf_o(drop_buf), .meta_valid_o(meta_valid[k]),
        .meta_ready_i(meta_ready_i && on), .meta_o(metas[k*MetaW+:MetaW]), .fate_valid_o(fate_valid[k]),
        .fate_o(fates[k*6+:6]), .fate_bytes_o(fate_bytes[k*18+:18]), .busy_o(busy[k])
    );
    nic_buf #(.Bufs(Bufs)) u_buf (
        .clk_i, .rst_ni, .alloc_valid_o(alloc_valid), .alloc_id_o(alloc_id), .alloc_take_i(alloc_take),
        .wr_en_i(wr_en), .wr_buf_i(wr_buf), .wr_beat_i(wr_beat), .wr_data_i(wr_data), .drop_valid_i(drop_valid),
        .drop_buf_i(drop_buf), .ref_valid_i(ref_valid_i && on), .ref_buf_i, .ref_count_i,
        .rd_en_i(rd_en_i && on), .rd_buf_i, .rd_beat_i, .rd_data_o(rd_data[k*512+:512]),
        .rel_valid_i(rel_valid_i && on), .rel_buf_i, .free_o(frees[k*11+:11])
    );
  end
  assign ready_o = ready[host_i];
  assign hole_o = hole[host_i];
  assign meta_valid_o = meta_valid[host_i];
  assign {meta_src_o, meta_buf_o, meta_nobuf_o, meta_fate_o, meta_bytes_o, meta_mr_off_o, meta_pay_len_o,
          meta_sum_o, meta_hdr_o, meta_pay0_o, meta_dst_mac_o} = metas[host_i*MetaW+:MetaW];
  assign fate_valid_o = fate_valid[host_i];
  assign fate_o = fates[host_i*6+:6];
  assign fate_bytes_o = fate_bytes[host_i*18+:18];
  assign rd_data_o = rd_data[host_i*512+:512];
  assign free_o = frees[host_i*11+:11];
  assign busy_o = busy[host_i];
endmodule
