// The entries of a queue that wait for KV writes, each with the token of its write, and how the writes went.
//
// push_i comes with the queue's entry. When a token's write has its response, left_valid_o says that the
// entry holds the token no longer, wherever in the queue it stands and however long it will stand there, and
// left_bad_i, looked up by left_token_o in that cycle, is kept for it. valid_o and bad_o are those of the
// oldest entry that has not been popped; first 2 cycles after its push. At most Depth entries.
module nic_waits #(
    parameter int unsigned Depth = 64
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         push_i,
    input  logic [7:0]   token_i,
    input  logic [255:0] pending_i, // by token: no response yet
    output logic         left_valid_o,
    output logic [7:0]   left_token_o,
    input  logic         left_bad_i,
    output logic         valid_o,
    output logic         bad_o,
    input  logic         pop_i
);
  logic waiting, token_room, result_room;
  logic [$clog2(Depth + 1)-1:0] unused_tokens, unused_results;

  assign left_valid_o = waiting && !pending_i[left_token_o];

  mr_fifo #(.Width(8), .Depth(Depth)) u_tokens (
    .clk_i, .rst_ni, .valid_i(push_i), .ready_o(token_room), .data_i(token_i), .valid_o(waiting),
    .ready_i(left_valid_o), .data_o(left_token_o), .count_o(unused_tokens)
  );
  mr_fifo #(.Width(1), .Depth(Depth)) u_results (
    .clk_i, .rst_ni, .valid_i(left_valid_o), .ready_o(result_room), .data_i(left_bad_i), .valid_o, .ready_i(pop_i),
    .data_o(bad_o), .count_o(unused_results)
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (push_i) token_fits:  assert (token_room);
      if (left_valid_o) result_fits: assert (result_room);
      if (pop_i) not_empty: assert (valid_o);
    end
  end
endmodule
