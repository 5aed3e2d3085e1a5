// Five readers on four memories of frames: transmitters 0, 1 and host, merge engine, KV writer on the
// receive buffers of network 0, network 1 and host, and the results.
//
// Every memory gives one beat a cycle, round robin among those that ask, beat by beat: a reader alone gets a
// beat every cycle, n of them on one memory one in n each. A reader asks only for what it has room for
// (nic_xbar_port), so the memories wait for nobody and nobody waits for a stalled reader. Command to first
// beat: 3 cycles. With rel one reference of the buffer is dropped, the cycle after the last beat was
// read; results are not counted. Vectors have reader or memory k in slice k; rd_data_i is the memories'
// answer in the cycle after rd_en_o.
module nic_xbar (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic [4:0]    cmd_valid_i,
    output logic [4:0]    cmd_ready_o,
    input  logic [9:0]    cmd_mem_i,
    input  logic [49:0]   cmd_buf_i,
    input  logic [39:0]   cmd_beat_i,
    input  logic [39:0]   cmd_beats_i, // at least 1
    input  logic [4:0]    cmd_rel_i,
    output logic [4:0]    valid_o,
    input  logic [4:0]    ready_i,
    output logic [2559:0] data_o,
    output logic [4:0]    last_o,
    output logic [3:0]    rd_en_o,
    output logic [39:0]   rd_buf_o,
    output logic [31:0]   rd_beat_o,
    input  logic [2047:0] rd_data_i,
    output logic [2:0]    rel_valid_o,
    output logic [29:0]   rel_buf_o
);
  localparam int unsigned ReqW = 19;
  logic [4:0]        req, grant, rel;
  logic [9:0]        mem;
  logic [5*ReqW-1:0] want;
  logic [4*5-1:0]    grants;

  for (genvar c = 0; c < 5; c++) begin : gen_reader
    logic [9:0] buf_id;
    logic [7:0] beat;
    nic_xbar_port u_port (
        .clk_i, .rst_ni, .cmd_valid_i(cmd_valid_i[c]), .cmd_ready_o(cmd_ready_o[c]),
        .cmd_mem_i(cmd_mem_i[c*2+:2]), .cmd_buf_i(cmd_buf_i[c*10+:10]), .cmd_beat_i(cmd_beat_i[c*8+:8]),
        .cmd_beats_i(cmd_beats_i[c*8+:8]), .cmd_rel_i(cmd_rel_i[c]), .req_o(req[c]), .grant_i(grant[c]),
        .mem_o(mem[c*2+:2]), .buf_o(buf_id), .beat_o(beat), .rel_o(rel[c]), .rd_data_i,
        .valid_o(valid_o[c]), .ready_i(ready_i[c]), .data_o(data_o[c*512+:512]), .last_o(last_o[c])
    );
    assign want[c*ReqW+:ReqW] = {rel[c], buf_id, beat};
    assign grant[c] = grants[c] || grants[5+c] || grants[10+c] || grants[15+c];
  end

  for (genvar m = 0; m < 4; m++) begin : gen_memory
    logic [4:0] asks;
    logic       drop, unused_last;
    logic [2:0] unused_index;
    for (genvar c = 0; c < 5; c++) begin : gen_ask
      assign asks[c] = req[c] && mem[c*2+:2] == 2'(m);
    end
    mr_arb #(.Count(5), .Width(ReqW)) u_arb (
        .clk_i, .rst_ni, .valid_i(asks), .ready_o(grants[m*5+:5]), .data_i(want), .last_i('1),
        .valid_o(rd_en_o[m]), .ready_i(1'b1), .data_o({drop, rd_buf_o[m*10+:10], rd_beat_o[m*8+:8]}),
        .last_o(unused_last), .index_o(unused_index)
    );
    if (m < 3) begin : gen_release
      logic       rel_q;
      logic [9:0] rel_buf_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) rel_q <= 1'b0;
        else rel_q <= rd_en_o[m] && drop;
        rel_buf_q <= rd_buf_o[m*10+:10];
      end
      assign rel_valid_o[m] = rel_q;
      assign rel_buf_o[m*10+:10] = rel_buf_q;
    end else begin : gen_no_release
      logic unused_drop;
      assign unused_drop = drop;
    end
  end
endmodule
