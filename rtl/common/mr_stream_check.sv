// The handshake contract of a stream port as assertions; instantiate one beside every port.
//
// Clocked immediate assertions with history in registers, alive wherever the simulator runs with
// assertions on, absent from synthesis. A port without keep ties keep_i to all ones; one without frames
// ties last_i to 0. The fifth line of the contract, valid never follows ready combinationally, is not a
// property of sampled values: the test benches check it by changing ready within a cycle.
module mr_stream_check #(
    parameter int unsigned Width = 8, // payload bits that must hold still
    parameter int unsigned Keep  = 1  // byte lanes
) (
    input logic             clk_i,
    input logic             rst_ni,
    input logic             valid_i,
    input logic             ready_i,
    input logic [Width-1:0] data_i,
    input logic [Keep-1:0]  keep_i,
    input logic             last_i
);
`ifndef SYNTHESIS
    logic             stalled_q;
    logic [Width-1:0] data_q;
    logic [Keep-1:0]  keep_q;
    logic             last_q;

    always_ff @(posedge clk_i) begin
        if (rst_ni && stalled_q) begin
            valid_stays:  assert (valid_i);
            data_stable:  assert (data_i == data_q);
            keep_stable:  assert (keep_i == keep_q);
            last_stable:  assert (last_i == last_q);
        end
        if (rst_ni && valid_i) begin
            keep_full:       assert (last_i || (&keep_i));
            keep_not_empty:  assert (keep_i[0]);
            keep_contiguous: assert ((keep_i & (keep_i + 1'b1)) == '0);
        end
        // written after they are read: the simulator then needs no copies of wide payloads
        stalled_q <= rst_ni && valid_i && !ready_i;
        if (valid_i && !ready_i) begin
            data_q <= data_i;
            keep_q <= keep_i;
            last_q <= last_i;
        end
    end
`else
    logic unused_ports;
    assign unused_ports = &{clk_i, rst_ni, valid_i, ready_i, data_i, keep_i, last_i};
`endif
endmodule
