// Queue of events for the host: 64 bytes each, one beat with last.
//
// Neither source can be held up by a host that does not drain: an event that finds the queue full is
// dropped and lost_o pulses (bit 0 the dispatcher's, bit 1 a timer's). A timer event waits only while the
// dispatcher has one in the same cycle. Latency 1; count_o pulses for each event queued.
module nic_events #(
    parameter int unsigned Depth = 256
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         ev_valid_i,
    input  logic [511:0] ev_i,
    input  logic         tm_valid_i,
    output logic         tm_ready_o,
    input  logic [511:0] tm_i,
    output logic         count_o,
    output logic [1:0]   lost_o,
    output logic         m_valid_o,
    input  logic         m_ready_i,
    output logic [511:0] m_data_o,
    output logic         busy_o
);
  logic valid, ready;
  logic [$clog2(Depth + 1)-1:0] unused_count;

  assign tm_ready_o = !ev_valid_i;
  assign valid      = ready && (ev_valid_i || tm_valid_i);
  assign count_o    = valid;
  assign lost_o     = {tm_valid_i && tm_ready_o && !ready, ev_valid_i && !ready};
  assign busy_o     = m_valid_o;

  mr_fifo #(.Width(512), .Depth(Depth)) u_queue (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .data_i(ev_valid_i ? ev_i : tm_i), .valid_o(m_valid_o),
    .ready_i(m_ready_i), .data_o(m_data_o), .count_o(unused_count)
  );
  mr_stream_check #(.Width(512)) u_check_timer (
    .clk_i, .rst_ni, .valid_i(tm_valid_i), .ready_i(tm_ready_o), .data_i(tm_i), .keep_i(1'b1), .last_i(1'b0)
  );
endmodule
