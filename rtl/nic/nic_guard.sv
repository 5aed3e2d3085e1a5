// From a board's AXI4-Stream to frames by the house's contract, for a receiver that takes every beat.
//
// Null beats (TKEEP = 0) vanish, a trailing one that carries TLAST included; a frame with a hole (TKEEP not
// contiguous from byte 0, or not full before the last beat) comes out marked bad_o on its last beat, and
// hole_o pulses; a frame of null beats alone is none. One beat is held until the next one says whether it
// was the last: a beat with TLAST leaves the cycle after it came, any other with its successor. A beat
// a cycle. ready_o is low only while hold_i is high and no frame is under way.
module nic_guard (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         hold_i,   // begin no new frame; 0 on a network port
    input  logic         valid_i,
    output logic         ready_o,
    input  logic [511:0] data_i,
    input  logic [63:0]  keep_i,
    input  logic         last_i,
    // never held up; bytes_o is 64 except on last_o, where it is 1..64; lanes above it hold anything
    output logic         valid_o,
    output logic [511:0] data_o,
    output logic [6:0]   bytes_o,
    output logic         last_o,
    output logic         bad_o,    // with last_o: drop the frame
    output logic         hole_o
);
  logic         held_q, last_q, bad_q;
  logic [6:0]   bytes_q;
  logic [511:0] data_q;
  logic         inside_frame, beat, filled, null_last, hole;

  assign inside_frame = held_q && !last_q;
  assign ready_o = !hold_i || inside_frame;
  assign beat = valid_i && ready_o;
  assign filled = beat && keep_i != '0;
  assign null_last = beat && keep_i == '0 && last_i;
  assign hole = !keep_i[0] || (keep_i & (keep_i + 64'd1)) != '0;

  assign valid_o = held_q && (last_q || filled || null_last);
  assign last_o = last_q || null_last;
  assign data_o = data_q;
  assign bytes_o = bytes_q;
  assign bad_o = bad_q;
  assign hole_o = valid_o && last_o && bad_q;

  function automatic logic [6:0] count(input logic [63:0] keep);
    count = 7'd64;
    if (keep != '1) begin
      count = 7'd0;
      for (int unsigned b = 0; b < 64; b++) if (keep[b]) count = 7'(b + 1);
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (filled) begin
      data_q <= data_i;
      bytes_q <= count(keep_i);
      last_q <= last_i;
      bad_q <= hole || (inside_frame && (bad_q || bytes_q != 7'd64));
    end
    if (!rst_ni) held_q <= 1'b0;
    else held_q <= filled || (held_q && !valid_o);
  end

  mr_stream_check #(.Width(577)) u_check (
      .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i({last_i, keep_i, data_i}), .keep_i(1'b1),
      .last_i(1'b0)
  );
endmodule
