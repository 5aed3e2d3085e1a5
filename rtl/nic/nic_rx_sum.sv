// Ones' complement sum of a frame's payload, the bytes from 40 behind the start of the UDP header to the
// end that the UDP length says; padding and slack are left out, an odd last byte counts as padded with zero.
//
// Beats come in stage 3, beside the frame's fields; the payload never begins before the second beat. total_o
// is complete two cycles after the beat with last. A beat a cycle.
module nic_rx_sum (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        valid_i,
    input  logic [511:0] data_i,
    input  logic [10:0] beat_i,    // index of the beat
    input  logic [6:0]  l4_i,      // byte offset of the UDP header
    input  logic [15:0] udp_len_i,
    output logic [46:0] total_o    // not folded: at most 1,026 beats
);
  // bytes of this beat before the payload and up to its end
  logic [6:0]  start;
  logic [17:0] left;
  logic [63:0] mask;
  logic        whole;
  assign start = l4_i + 7'd40 - 7'd64; // 74..118 - 64, even
  assign left = {11'd0, l4_i} + {2'd0, udp_len_i} - {1'b0, beat_i, 6'd0}; // may be negative
  assign whole = beat_i > 11'd1 && !left[17] && left[16:6] != 11'd0;
  always_comb begin
    mask = '1;
    if (beat_i == 11'd0 || left[17]) mask = '0;
    else begin
      if (beat_i == 11'd1) mask = mask << start[5:0];
      if (left[16:6] == 11'd0) mask = mask & ~({64{1'b1}} << left[5:0]);
    end
  end

  logic        valid_q, first_q;
  logic [35:0] sum_q;
  logic [46:0] total_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      first_q <= beat_i == 11'd0;
      if (whole) sum_q <= nic_rx_pkg::sum_beat(data_i);
      else if (mask == '0) sum_q <= '0;
      else sum_q <= nic_rx_pkg::sum_beat(nic_rx_pkg::mask_beat(data_i, mask));
    end
    if (valid_q) total_q <= (first_q ? 47'd0 : total_q) + {11'd0, sum_q};
    if (!rst_ni) valid_q <= 1'b0;
    else valid_q <= valid_i;
  end
  assign total_o = total_q;

  logic unused_start;
  assign unused_start = start[6];
endmodule
