// Numbers the KV writes, so that acknowledgements and reads can wait for them.
//
// A write takes the token next_o (issue_i, only when room_o); pending_o has its bit until its response is
// there, bad_o from then on if that was an error. A waiter (a transmit descriptor or a read) holds a token
// from hold_i until nic_waits has seen its write done (left_valid_i), so a stalled port holds none. Tokens are
// 8 bits and come round: they are handed out in four generations of 64, and a generation is entered only
// when nobody holds a token of it from last time. Several waiters may leave in a cycle; latency 1.
module nic_tokens (
    input  logic           clk_i,
    input  logic           rst_ni,
    output logic [7:0]     next_o,
    output logic           room_o,
    input  logic           issue_i,
    output logic [7:0]     last_o,         // of the newest write: what a read waits for
    input  logic           hold_i,
    input  logic [7:0]     hold_token_i,
    input  logic [5:0]     left_valid_i,
    input  logic [6*8-1:0] left_token_i,
    input  logic           done_valid_i,
    input  logic [7:0]     done_token_i,
    input  logic           done_bad_i,
    output logic [255:0]   pending_o,
    output logic [255:0]   bad_o
);
  localparam int unsigned CountW = 10; // more waiters than the queues hold

  logic [7:0]          next_q;
  logic [255:0]        pending_q, bad_q;
  logic [4*CountW-1:0] waiters_q, waiters_d;
  /* verilator lint_off UNUSEDSIGNAL */ // the place within the generation
  logic [6*8-1:0]      left;
  logic [7:0]          hold;
  /* verilator lint_on UNUSEDSIGNAL */
  assign left = left_token_i;
  assign hold = hold_token_i;

  always_comb begin
    waiters_d = waiters_q;
    if (hold_i || left_valid_i != '0) for (int unsigned g = 0; g < 4; g++) begin
      if (hold_i && hold[7:6] == 2'(g)) waiters_d[CountW*g+:CountW] = waiters_d[CountW*g+:CountW] + 1'b1;
      for (int unsigned k = 0; k < 6; k++)
        if (left_valid_i[k] && left[8*k+6+:2] == 2'(g)) waiters_d[CountW*g+:CountW] = waiters_d[CountW*g+:CountW] - 1'b1;
    end
  end

  assign next_o    = next_q;
  assign last_o    = next_q - 1'b1;
  assign room_o    = !pending_q[next_q] && (next_q[5:0] != '0 || waiters_q[CountW*next_q[7:6]+:CountW] == '0);
  assign pending_o = pending_q;
  assign bad_o     = bad_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q    <= '0;
      pending_q <= '0;
      bad_q     <= '0;
      waiters_q <= '0;
    end else begin
      waiters_q <= waiters_d;
      if (done_valid_i) begin
        pending_q[done_token_i] <= 1'b0;
        bad_q[done_token_i]     <= done_bad_i;
      end
      if (issue_i) begin
        pending_q[next_q] <= 1'b1;
        bad_q[next_q]     <= 1'b0;
        next_q            <= next_q + 1'b1;
      end
      issue_has_room: assert (!issue_i || room_o);
      done_is_known:  assert (!done_valid_i || pending_q[done_token_i]);
    end
  end
endmodule
