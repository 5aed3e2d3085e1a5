// Makes the headers of a frame: Ethernet, IPv4 and UDP with both checksums, Millrace.
//
// frame_i comes with valid_i; the job table's answer to it is taken the cycle after and names the node, whose
// row is taken one more cycle after. built_o follows valid_i by three cycles, a frame a cycle, never held up.
// The UDP checksum comes from the payload's sum; one that is 0 is sent as FFFF. A target without a row in
// the node table makes a frame that is to be dropped.
module nic_tx_head (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  nic_pkg::node_t     own_i,
    input  logic               valid_i,
    input  nic_tx_pkg::frame_t frame_i,
    input  logic [7:0]         job_rank_i,
    output logic               node_en_o,
    output logic [7:0]         node_rank_o,
    input  nic_pkg::node_t     node_i,
    output logic               valid_o,
    output nic_tx_pkg::built_t built_o
);
  logic               va_q, vb_q, vc_q;
  nic_tx_pkg::frame_t a_q, b_q, c_q;
  assign node_en_o = va_q && !a_q.raw && !a_q.host;
  assign node_rank_o = a_q.direct ? a_q.rank : job_rank_i;

  // sums in steps: header, then with lengths, payload and addresses
  logic [19:0]    hdr_sum_b_q, ip_sum_c_q, udp_sum_c_q;
  logic [15:0]    udp_len_b, udp_len_c_q, ip_sum, udp_sum;
  nic_pkg::node_t to;
  logic [47:0]    mac_c_q;
  logic [31:0]    ip_c_q;
  logic [15:0]    port_c_q;
  logic           drop_c_q;
  assign to = b_q.host ? own_i : node_i;
  assign udp_len_b = {2'd0, b_q.len} + 16'd40;

  always_ff @(posedge clk_i) begin
    if (valid_i) a_q <= frame_i;
    if (va_q) begin
      b_q <= a_q;
      if (!a_q.raw) hdr_sum_b_q <= nic_tx_pkg::sum_hdr(a_q.hdr);
    end
    if (vb_q) begin
      c_q <= b_q;
      drop_c_q <= !b_q.raw && !(to.valid && own_i.valid);
      mac_c_q <= to.mac;
      ip_c_q <= to.ip;
      port_c_q <= to.port;
      udp_len_c_q <= udp_len_b;
      // version, IHL; DF; TTL 64 and protocol 17
      ip_sum_c_q <= 20'h4500 + 20'h4000 + 20'h4011 + {4'd0, udp_len_b} + 20'd20 + {4'd0, own_i.ip[31:16]} +
                    {4'd0, own_i.ip[15:0]} + {4'd0, to.ip[31:16]} + {4'd0, to.ip[15:0]};
      udp_sum_c_q <= {4'd0, nic_tx_pkg::fold20(hdr_sum_b_q)} + {4'd0, b_q.sum} + {3'd0, udp_len_b, 1'b0} + 20'd17 +
                     {4'd0, own_i.ip[31:16]} + {4'd0, own_i.ip[15:0]} + {4'd0, to.ip[31:16]} +
                     {4'd0, to.ip[15:0]} + {4'd0, own_i.port} + {4'd0, to.port};
    end
    if (!rst_ni) {va_q, vb_q, vc_q} <= 3'b000;
    else {va_q, vb_q, vc_q} <= {valid_i, va_q, vb_q};
  end

  assign ip_sum = ~nic_tx_pkg::fold20(ip_sum_c_q);
  assign udp_sum = ~nic_tx_pkg::fold20(udp_sum_c_q);

  // headers and inline payload, byte 0 on top; then in lane order
  logic [655:0] bytes;
  assign bytes = !vc_q ? '0 : {mac_c_q, own_i.mac, 16'h0800, 16'h4500, udp_len_c_q + 16'd20, 16'h0000, 16'h4000, 16'h4011, ip_sum,
                  own_i.ip, ip_c_q, own_i.port, port_c_q, udp_len_c_q, udp_sum == 16'd0 ? 16'hFFFF : udp_sum,
                  c_q.hdr, c_q.pay};
  always_comb begin
    built_o = '0;
    if (vc_q) begin
      built_o.raw = c_q.raw;
      built_o.lone = c_q.lone;
      built_o.drop = drop_c_q;
      built_o.done = c_q.done;
      built_o.slot = c_q.slot;
      built_o.retrans = c_q.retrans;
      built_o.bytes = c_q.raw ? c_q.len : c_q.len + 14'd74;
      for (int unsigned b = 0; b < 82; b++) built_o.head[b*8+:8] = bytes[655-b*8-:8];
    end
  end
  assign valid_o = vc_q;

  logic unused_bits;
  assign unused_bits = ^{c_q, own_i.netport, node_i.netport, to.netport};
endmodule
