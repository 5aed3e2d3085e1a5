// Queue of events for the host: 64 bytes each, one beat with last.
//
// Nothing is held up by a host that does not drain: an event that finds the queue full is dropped and lost_o
// pulses; count_o pulses for each event queued. Latency 1.
module nic_events #(
    parameter int unsigned Depth = 256
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         ev_valid_i,
    input  logic [511:0] ev_i,
    output logic         count_o,
    output logic         lost_o,
    output logic         m_valid_o,
    input  logic         m_ready_i,
    output logic [511:0] m_data_o
);
  logic ready;
  logic [$clog2(Depth + 1)-1:0] unused_count;

  assign count_o = ev_valid_i && ready;
  assign lost_o  = ev_valid_i && !ready;

  mr_fifo #(.Width(512), .Depth(Depth)) u_queue (
    .clk_i, .rst_ni, .valid_i(count_o), .ready_o(ready), .data_i(ev_i), .valid_o(m_valid_o),
    .ready_i(m_ready_i), .data_o(m_data_o), .count_o(unused_count)
  );
endmodule
