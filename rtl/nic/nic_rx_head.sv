// Finds the headers of a frame in its first two beats: VLAN tag, IP options, byte realignment.
//
// The header fields of nic.md end by byte 126 at the latest (18 + 60 + 8 + 32 + 8). The beat that completes
// the window (the second, or a lone first one) is seen in stage 1; head_o holds the frame's fields from two
// cycles later, when that beat is in stage 3, until the next frame's arrive. A frame a cycle. Fields that
// lie beyond the frame's end are noise: the checks look at the lengths first.
module nic_rx_head (
    input  logic              clk_i,
    input  logic              clk_busy_i, // the same clock, which may rest while no frame is in stage 2 or later
    input  logic              rst_ni,
    input  nic_pkg::node_t    own_i,
    // stage 1
    input  logic              valid_i, // this beat completes the window
    input  logic              lone_i,  // it is the frame's only one
    input  logic [511:0]      data_i,
    input  logic [511:0]      first_i, // the frame's first beat, unless lone
    output nic_rx_pkg::head_t head_o
);
  logic         valid_q;
  logic [511:0] low;
  logic         vlan;
  assign low = lone_i ? data_i : first_i;
  assign vlan = low[12*8+:16] == 16'h0081;

  // stage 2: the frame from its IP header on
  logic [863:0] ip_q;
  logic [47:0]  mac_q;
  logic         vlan_q, not_ip_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      ip_q <= vlan ? {data_i[495:0], low[511:144]} : {data_i[463:0], low[511:112]};
      not_ip_q <= (vlan ? low[16*8+:16] : low[12*8+:16]) != 16'h0008;
      vlan_q <= vlan;
      mac_q <= {low[7:0], low[15:8], low[23:16], low[31:24], low[39:32], low[47:40]};
    end
    if (!rst_ni) valid_q <= 1'b0;
    else valid_q <= valid_i;
  end

  function automatic logic [35:0] ip_sum(input logic [479:0] ip, input logic [3:0] ihl);
    ip_sum = 36'd0;
    for (int unsigned w = 0; w < 15; w++) if (4'(w) < ihl) ip_sum = ip_sum + {4'd0, ip[w*32+:32]};
  endfunction

  // stage 3: the frame from its UDP header on
  logic [3:0] ihl;
  logic [9:0] udp_at; // in bits
  nic_rx_pkg::head_t head_q;
  assign ihl = ip_q[3:0];
  assign udp_at = {1'b0, ihl, 5'd0};
  always_ff @(posedge clk_busy_i) begin
    if (valid_q) begin
      head_q.mac <= mac_q;
      head_q.vlan <= vlan_q;
      head_q.not_ip <= not_ip_q;
      head_q.bad_ver <= ip_q[7:4] != 4'd4 || ihl < 4'd5;
      head_q.ihl <= ihl;
      head_q.ip_sum <= ip_sum(ip_q[479:0], ihl);
      // more fragments, or an offset
      head_q.frag <= ip_q[53:48] != 6'd0 || ip_q[63:56] != 8'd0;
      head_q.mine <= own_i.valid && mac_q == own_i.mac && ip_q[79:72] == 8'd17 &&
                     {ip_q[135:128], ip_q[143:136], ip_q[151:144], ip_q[159:152]} == own_i.ip &&
                     nic_rx_pkg::be16(ip_q[udp_at+10'd16+:16]) == own_i.port;
      head_q.ip_len <= nic_rx_pkg::be16(ip_q[31:16]);
      head_q.udp_len <= nic_rx_pkg::be16(ip_q[udp_at+10'd32+:16]);
      head_q.l4 <= (vlan_q ? 7'd18 : 7'd14) + {1'b0, ihl, 2'd0};
      head_q.addr_raw <= ip_q[159:96];
      head_q.udp_raw <= ip_q[udp_at+:384];
    end
  end
  assign head_o = head_q;

  logic unused_bits; // the sender's MAC
  assign unused_bits = ^{own_i.netport, low[95:48]};
endmodule
