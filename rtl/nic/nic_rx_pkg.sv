// Records and byte arithmetic of the receiver and the transmitter.
//
// Sums are ones' complement sums of 32-bit words as they lie in the frame, lowest lane first. Folded to 16
// bits they are the Internet checksum's sum with its two bytes swapped.
package nic_rx_pkg;
  // What the first two beats of a frame say. Fields named raw hold bytes in lane order, byte 0 in [7:0].
  typedef struct packed {
    logic [47:0]  mac;      // destination, first byte on top
    logic         vlan;
    logic         not_ip;
    logic         bad_ver;  // IP version is not 4 or IHL < 5
    logic [3:0]   ihl;
    logic [35:0]  ip_sum;   // of the IP header, checksum included
    logic         frag;
    logic         mine;     // MAC, protocol, address and port are the own row's
    logic [15:0]  ip_len;
    logic [15:0]  udp_len;
    logic [6:0]   l4;       // byte offset of the UDP header
    logic [63:0]  addr_raw; // IP source and destination
    logic [383:0] udp_raw;  // UDP header, Millrace header, 8 payload bytes
  } head_t;

  function automatic logic [15:0] be16(input logic [15:0] raw);
    be16 = {raw[7:0], raw[15:8]};
  endfunction

  // Ones' complement fold of up to 48 bits; 0 only for 0.
  function automatic logic [15:0] fold48(input logic [47:0] sum);
    logic [17:0] a;
    logic [16:0] b;
    a = {2'd0, sum[15:0]} + {2'd0, sum[31:16]} + {2'd0, sum[47:32]};
    b = {1'b0, a[15:0]} + {15'd0, a[17:16]};
    fold48 = b[15:0] + {15'd0, b[16]};
  endfunction

  // 16 words of a beat.
  function automatic logic [35:0] sum_beat(input logic [511:0] data);
    sum_beat = 36'd0;
    for (int unsigned w = 0; w < 16; w++) sum_beat = sum_beat + {4'd0, data[w*32+:32]};
  endfunction

  // Beat with the lanes of mask that are 0 cleared.
  function automatic logic [511:0] mask_beat(input logic [511:0] data, input logic [63:0] mask);
    for (int unsigned b = 0; b < 64; b++) mask_beat[b*8+:8] = data[b*8+:8] & {8{mask[b]}};
  endfunction
endpackage
