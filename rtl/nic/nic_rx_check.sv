// The fate of a frame as far as its own bytes and the own row decide it: nic.md's fates from runt to the
// second truncated, the first that applies.
//
// end_i marks a frame's last beat in stage 3, beside its fields; total_i is the payload's sum two cycles
// later (nic_rx_sum). valid_o and the outputs follow end_i by four cycles, a frame a cycle. tag_i travels along.
module nic_rx_check #(
    parameter int unsigned TagW = 1
) (
    input  logic              clk_i,
    input  logic              rst_ni,
    input  logic              end_i,
    input  logic [TagW-1:0]   tag_i,
    input  nic_rx_pkg::head_t head_i,
    input  logic [17:0]       bytes_i,
    input  logic [46:0]       total_i,
    output logic              valid_o,
    output logic [TagW-1:0]   tag_o,
    output logic [5:0]        fate_o,
    output logic [17:0]       bytes_o,
    output logic [47:0]       mac_o,
    output logic [6:0]        mr_off_o,
    output logic [15:0]       pay_len_o,
    output logic [15:0]       sum_o,
    output logic [255:0]      hdr_o,
    output logic [63:0]       pay0_o
);
  function automatic logic [255:0] swap32(input logic [255:0] raw);
    for (int unsigned b = 0; b < 32; b++) swap32[255-b*8-:8] = raw[b*8+:8];
  endfunction
  function automatic logic [63:0] swap8(input logic [63:0] raw);
    for (int unsigned b = 0; b < 8; b++) swap8[63-b*8-:8] = raw[b*8+:8];
  endfunction
  // the datagram without what lies behind its end
  function automatic logic [319:0] cut(input logic [319:0] udp, input logic [15:0] bytes);
    for (int unsigned b = 0; b < 40; b++) cut[b*8+:8] = udp[b*8+:8] & {8{16'(b) < bytes}};
  endfunction
  // pseudo header, UDP header and Millrace header; the payload's sum comes on top
  function automatic logic [38:0] head_sum(input logic [63:0] addr, input logic [15:0] len, input logic [319:0] udp);
    head_sum = 39'h1100 + {23'd0, len} + {7'd0, addr[31:0]} + {7'd0, addr[63:32]};
    for (int unsigned w = 0; w < 10; w++) head_sum = head_sum + {7'd0, udp[w*32+:32]};
  endfunction
  function automatic logic bad_field(input logic [7:0] op, input logic [7:0] dtype, input logic [1:0] rop,
                                     input logic [7:0] shards, input logic [15:0] heads, input logic [15:0] dim);
    logic typed, shaped;
    logic [7:0] top;
    shaped = op >= nic_frame_pkg::OP_QUERY && op <= nic_frame_pkg::OP_RESULT;
    typed = op <= nic_frame_pkg::OP_RESULT;
    top = op >= nic_frame_pkg::OP_QUERY && op <= nic_frame_pkg::OP_MERGED ? nic_frame_pkg::DT_FP32
                                                                          : nic_frame_pkg::DT_INT32;
    bad_field = (typed && (dtype == 8'd0 || dtype > top)) || shards == 8'd0 || shards > 8'd32 ||
                (op == nic_frame_pkg::OP_REDUCE && rop > nic_frame_pkg::ROP_MIN) || (shaped && (heads == 16'd0 || dim == 16'd0));
  endfunction

  // ---- stage 4: sums and comparisons ---------------------------------------------------------------
  logic              v4_q, v5_q, v6_q, v7_q;
  logic [TagW-1:0]   tag4_q, tag5_q, tag6_q, tag7_q;
  nic_rx_pkg::head_t h4_q;
  logic [17:0]       bytes4_q, bytes5_q, bytes6_q, bytes7_q;
  logic [38:0]       hsum4_q, hsum5_q;
  logic              runt4_q, ip_beyond4_q, udp_beyond4_q, ip_sum_ok4_q, cut4_q;
  logic [17:0]       l2, l4, ip_end;
  logic [15:0]       ip_pay;
  assign l2 = head_i.vlan ? 18'd18 : 18'd14;
  assign l4 = {11'd0, head_i.l4};
  assign ip_end = l2 + {2'd0, head_i.ip_len};
  assign ip_pay = head_i.ip_len - {10'd0, head_i.ihl, 2'd0};

  logic [255:0] hdr4;
  nic_pkg::hdr_t mr4;
  assign hdr4 = swap32(h4_q.udp_raw[319:64]);
  assign mr4 = hdr4;
  logic unused_bits; // of two records, what later stages do not read
  assign unused_bits = ^{h4_q, mr4};

  // ---- stages 5 to 7 -------------------------------------------------------------------------------
  logic [5:0]   fate_a, fate_b;                    // before and after the UDP checksum
  logic [5:0]   fate_a5_q, fate_b5_q, fate_a6_q, fate_b6_q, fate7_q;
  logic         sum_there5_q, sum_there6_q, len_ok;
  logic [255:0] hdr5_q, hdr6_q, hdr7_q;
  logic [63:0]  pay5_q, pay6_q, pay7_q;
  logic [47:0]  mac5_q, mac6_q, mac7_q, total6_q;
  logic [6:0]   off5_q, off6_q, off7_q;
  logic [15:0]  len5_q, len6_q, len7_q, sum6_q, sum7_q;
  logic [63:0]  pay_mask;
  logic [5:0]   fate6;

  always_comb begin
    fate_a = nic_frame_pkg::FATE_NONE;
    if (cut4_q) fate_a = nic_frame_pkg::FATE_TRUNCATED;
    if (!h4_q.mine || udp_beyond4_q) fate_a = nic_frame_pkg::FATE_NOT_MINE;
    if (h4_q.frag) fate_a = nic_frame_pkg::FATE_FRAGMENT;
    if (h4_q.bad_ver || ip_beyond4_q || !ip_sum_ok4_q) fate_a = nic_frame_pkg::FATE_BAD_IP_CHECKSUM;
    if (h4_q.not_ip) fate_a = nic_frame_pkg::FATE_NOT_IP;
    if (runt4_q) fate_a = nic_frame_pkg::FATE_RUNT;
  end
  always_comb begin
    fate_b = nic_frame_pkg::FATE_NONE;
    if (h4_q.udp_len > 16'(nic_frame_pkg::MAX_UDP_PAYLOAD + 8)) fate_b = nic_frame_pkg::FATE_TOO_LONG;
    if (bad_field(mr4.opcode, mr4.dtype, mr4.flags[5:4], mr4.shards, mr4.heads, mr4.dim)) fate_b = nic_frame_pkg::FATE_BAD_FIELD;
    if (mr4.opcode == 8'd0 || mr4.opcode > nic_frame_pkg::OP_NACK) fate_b = nic_frame_pkg::FATE_BAD_OPCODE;
    if (mr4.version != nic_frame_pkg::VERSION) fate_b = nic_frame_pkg::FATE_BAD_VERSION;
    if (h4_q.udp_len < 16'd40) fate_b = nic_frame_pkg::FATE_TRUNCATED;
  end
  always_comb begin
    fate6 = fate_a6_q;
    if (fate_a6_q == nic_frame_pkg::FATE_NONE) begin
      fate6 = fate_b6_q;
      if (fate_b6_q == nic_frame_pkg::FATE_NONE && !len_ok) fate6 = nic_frame_pkg::FATE_TRUNCATED;
      if (sum_there6_q && nic_rx_pkg::fold48(total6_q) != 16'hFFFF) fate6 = nic_frame_pkg::FATE_BAD_UDP_CHECKSUM;
    end
  end
  // where the payload ends within the first 8 bytes
  assign pay_mask = len6_q >= 16'd8 ? '1 : ~({64{1'b1}} >> {len6_q[2:0], 3'd0});

  // the header in stage 3 as it lies: byte k in lanes 64 + 8k
  nic_rx_len u_len (
      .clk_i, .valid_i(end_i), .opcode_i(head_i.udp_raw[79:72]), .dtype_i(head_i.udp_raw[87:80]),
      .heads_i(nic_rx_pkg::be16(head_i.udp_raw[207:192])), .dim_i(nic_rx_pkg::be16(head_i.udp_raw[223:208])),
      .bytes_i(head_i.udp_len - 16'd40), .ok_o(len_ok)
  );

  always_ff @(posedge clk_i) begin
    if (end_i) begin
      tag4_q <= tag_i;
      h4_q <= head_i;
      bytes4_q <= bytes_i;
      hsum4_q <= head_sum(head_i.addr_raw, head_i.udp_raw[47:32],
                          cut(head_i.udp_raw[319:0], head_i.udp_len));
      runt4_q <= bytes_i < 18'd60;
      ip_beyond4_q <= l4 > bytes_i;
      udp_beyond4_q <= l4 + 18'd8 > bytes_i;
      ip_sum_ok4_q <= nic_rx_pkg::fold48({12'd0, head_i.ip_sum}) == 16'hFFFF;
      // the datagram lies within the IP packet, which lies within the frame
      cut4_q <= head_i.udp_len < 16'd8 || head_i.ip_len < {10'd0, head_i.ihl, 2'd0} || ip_pay < head_i.udp_len ||
                ip_end > bytes_i;
    end
    if (v4_q) begin
      tag5_q <= tag4_q;
      bytes5_q <= bytes4_q;
      hsum5_q <= hsum4_q;
      fate_a5_q <= fate_a;
      fate_b5_q <= fate_b;
      sum_there5_q <= h4_q.udp_raw[63:48] != 16'd0;
      hdr5_q <= hdr4;
      pay5_q <= swap8(h4_q.udp_raw[383:320]);
      mac5_q <= h4_q.mac;
      off5_q <= h4_q.l4 + 7'd8;
      len5_q <= h4_q.udp_len - 16'd40;
    end
    if (v5_q) begin
      tag6_q <= tag5_q;
      bytes6_q <= bytes5_q;
      fate_a6_q <= fate_a5_q;
      fate_b6_q <= fate_b5_q;
      sum_there6_q <= sum_there5_q;
      total6_q <= {1'b0, total_i} + {9'd0, hsum5_q};
      sum6_q <= nic_rx_pkg::fold48({1'b0, total_i});
      {hdr6_q, pay6_q, mac6_q, off6_q, len6_q} <= {hdr5_q, pay5_q, mac5_q, off5_q, len5_q};
    end
    if (v6_q) begin
      tag7_q <= tag6_q;
      bytes7_q <= bytes6_q;
      fate7_q <= fate6;
      mac7_q <= mac6_q;
      if (fate6 == nic_frame_pkg::FATE_NONE) begin
        {hdr7_q, off7_q, len7_q} <= {hdr6_q, off6_q, len6_q};
        pay7_q <= pay6_q & pay_mask;
        sum7_q <= nic_rx_pkg::be16(sum6_q);
      end else {hdr7_q, pay7_q, off7_q, len7_q, sum7_q} <= '0;
    end
    if (!rst_ni) {v4_q, v5_q, v6_q, v7_q} <= 4'b0000;
    else {v4_q, v5_q, v6_q, v7_q} <= {end_i, v4_q, v5_q, v6_q};
  end

  assign valid_o = v7_q;
  assign {tag_o, fate_o, bytes_o, mac_o} = {tag7_q, fate7_q, bytes7_q, mac7_q};
  assign {mr_off_o, pay_len_o, sum_o, hdr_o, pay0_o} = {off7_q, len7_q, sum7_q, hdr7_q, pay7_q};
endmodule
