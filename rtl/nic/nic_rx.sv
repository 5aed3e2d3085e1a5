// Receiver of one port: every frame goes to a buffer as it comes, and what dispatch has to know of it to a
// FIFO; frames whose fate the parser knows end here.
//
// Takes a beat every cycle whatever the frame's length, also lone beats back to back, and never waits. A
// frame takes a buffer with its first beat; without one it is parsed all the same and nobuf tells dispatch.
// Seven cycles from a frame's last beat in to meta_valid_o (the guard in front adds one). Beats that do not
// fit the buffer are not stored: a frame of more than 144 beats gives its buffer back and counts as without one.
// fate_valid_o pulses for a frame that ends here: its fate, or overrun when the FIFO is full; its buffer
// is given back; fate_bytes_o is right up to 131,072. Frames of the own host (Src 2) that are addressed elsewhere, and with chain_i frames that are
// not the own row's, have fate not_mine in their meta_t, and nothing else of the header is filled in.
module nic_rx #(
    parameter logic [1:0]  Src       = nic_pkg::SRC_NET0,
    parameter int unsigned MetaDepth = 64
) (
    input  logic           clk_i,
    input  logic           rst_ni,
    input  nic_pkg::node_t own_i,
    input  logic           chain_i,
    // from the guard
    input  logic           valid_i,
    input  logic [511:0]   data_i,
    input  logic [6:0]     bytes_i,
    input  logic           last_i,
    input  logic           bad_i,
    // buffers
    input  logic           alloc_valid_i,
    input  logic [9:0]     alloc_id_i,
    output logic           alloc_take_o,
    output logic           wr_en_o,
    output logic [9:0]     wr_buf_o,
    output logic [7:0]     wr_beat_o,
    output logic [511:0]   wr_data_o,
    output logic           drop_valid_o,
    output logic [9:0]     drop_buf_o,
    // to dispatch
    output logic           meta_valid_o,
    input  logic           meta_ready_i,
    output nic_pkg::meta_t meta_o,
    // frames that end here
    output logic           fate_valid_o,
    output logic [5:0]     fate_o,
    output logic [17:0]    fate_bytes_o,
    output logic           busy_o
);
  localparam logic [17:0] Most = 18'(nic_pkg::BUF_BEATS * nic_pkg::BEAT_BYTES);

  // ---- stage 1: the beat from the guard; where it goes --------------------------------------------
  logic [10:0] beat_q, beat;       // index of the beat, stays at the top
  logic        first_q, have_q, have;
  logic [9:0]  buf_q, buf_now;
  assign beat = first_q ? 11'd0 : beat_q;
  assign have = first_q ? alloc_valid_i : have_q;
  assign buf_now = first_q ? alloc_id_i : buf_q;
  assign alloc_take_o = valid_i && first_q && alloc_valid_i;
  assign wr_en_o = valid_i && have && beat < 11'(nic_pkg::BUF_BEATS);
  assign wr_buf_o = buf_now;
  assign wr_beat_o = beat[7:0];
  assign wr_data_o = data_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) first_q <= 1'b1;
    else if (valid_i) first_q <= last_i;
    if (valid_i) begin
      beat_q <= beat == '1 ? beat : beat + 11'd1;
      have_q <= have;
      buf_q <= buf_now;
    end
  end

  // ---- stages 2 and 3: the beat waits for the headers ---------------------------------------------
  localparam int unsigned TagW = 12; // bad, have, buffer
  logic            v2_q, v3_q, last2_q, last3_q;
  logic [511:0]    data2_q, data3_q;
  logic [10:0]     beat2_q, beat3_q;
  logic [6:0]      bytes2_q, bytes3_q;
  logic [TagW-1:0] tag2_q, tag3_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      data2_q <= data_i;
      {last2_q, beat2_q, bytes2_q, tag2_q} <= {last_i, beat, bytes_i, bad_i, have, buf_now};
    end
    if (!rst_ni) v2_q <= 1'b0;
    else v2_q <= valid_i;
  end

  // what follows has no clock while no frame is in it
  logic [3:0] inside_q;
  logic       clk_busy, end_valid;
  mr_clk_gate u_gate (.clk_i, .en_i(!rst_ni || inside_q != 4'd0), .clk_o(clk_busy));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 4'd0;
    else inside_q <= inside_q + {3'd0, valid_i && first_q} - {3'd0, end_valid};
  end
  always_ff @(posedge clk_busy) begin
    if (v2_q) begin
      data3_q <= data2_q;
      {last3_q, beat3_q, bytes3_q, tag3_q} <= {last2_q, beat2_q, bytes2_q, tag2_q};
    end
    if (!rst_ni) v3_q <= 1'b0;
    else v3_q <= v2_q;
  end

  nic_rx_pkg::head_t head;
  nic_rx_head u_head (
      .clk_i, .clk_busy_i(clk_busy), .rst_ni, .own_i, .valid_i(valid_i && (beat == 11'd1 || (beat == 11'd0 && last_i))),
      .lone_i(beat == 11'd0), .data_i, .first_i(data2_q), .head_o(head)
  );

  logic [46:0] total;
  nic_rx_sum u_sum (
      .clk_i(clk_busy), .rst_ni, .valid_i(v3_q), .data_i(data3_q), .beat_i(beat3_q), .l4_i(head.l4),
      .udp_len_i(head.udp_len), .total_o(total)
  );

  // ---- stages 4 to 7: the fate --------------------------------------------------------------------
  logic            end_bad, end_have;
  logic [9:0]      end_buf;
  logic [5:0]      fate;
  logic [17:0]     end_bytes;
  logic [47:0]     mac;
  logic [6:0]      mr_off;
  logic [15:0]     pay_len, sum;
  logic [255:0]    hdr;
  logic [63:0]     pay0;
  nic_rx_check #(.TagW(TagW)) u_check (
      .clk_i(clk_busy), .rst_ni, .end_i(v3_q && last3_q), .tag_i(tag3_q), .head_i(head),
      .bytes_i({1'b0, beat3_q, 6'd0} + {11'd0, bytes3_q}), .total_i(total),
      .valid_o(end_valid), .tag_o({end_bad, end_have, end_buf}), .fate_o(fate), .bytes_o(end_bytes),
      .mac_o(mac), .mr_off_o(mr_off), .pay_len_o(pay_len), .sum_o(sum), .hdr_o(hdr), .pay0_o(pay0)
  );

  // ---- what becomes of it -------------------------------------------------------------------------
  logic           passes, own_mac, goes_on, pushed, stored, meta_ready;
  nic_pkg::meta_t meta;
  assign own_mac = own_i.valid && mac == own_i.mac;
  always_comb begin
    passes = chain_i && fate == nic_frame_pkg::FATE_NOT_MINE;
    if (Src == nic_pkg::SRC_HOST)
      passes = fate == nic_frame_pkg::FATE_NOT_MINE || fate == nic_frame_pkg::FATE_NOT_IP ||
               (!own_mac && (fate == nic_frame_pkg::FATE_BAD_IP_CHECKSUM || fate == nic_frame_pkg::FATE_FRAGMENT));
    goes_on = end_valid && !end_bad && (passes || fate == nic_frame_pkg::FATE_NONE);
    stored = end_have && end_bytes <= Most;
    pushed = goes_on && meta_ready;
    fate_valid_o = end_valid && !end_bad && !pushed;
    fate_o = fate;
    if (goes_on) fate_o = nic_frame_pkg::FATE_OVERRUN;
    drop_valid_o = end_valid && end_have && !(pushed && stored);
  end
  assign fate_bytes_o = end_bytes;
  assign drop_buf_o = end_buf;
  assign meta = {Src, end_buf, !stored, passes ? nic_frame_pkg::FATE_NOT_MINE : nic_frame_pkg::FATE_NONE,
                 end_bytes, mr_off, pay_len[13:0], sum, hdr, pay0, mac};

  logic [$clog2(MetaDepth + 1)-1:0] waiting;
  mr_fifo #(.Width(nic_pkg::META_W), .Depth(MetaDepth)) u_metas (
      .clk_i, .rst_ni, .valid_i(pushed), .ready_o(meta_ready), .data_i(meta), .valid_o(meta_valid_o),
      .ready_i(meta_ready_i), .data_o(meta_o), .count_o(waiting)
  );

  assign busy_o = inside_q != 4'd0 || waiting != '0;

  logic unused_ports;
  assign unused_ports = ^{own_i.ip, own_i.port, own_i.netport, pay_len[15:14]};
endmodule
