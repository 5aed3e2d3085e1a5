// Lets Count write masters share one AXI4 port.
//
// Burst by burst, round robin; the id on the shared port is the master's index, and responses go back by
// their id, in any order. The words of a burst are not interleaved with others': the masters' words pass
// in the order in which their bursts were granted, at most Depth bursts ahead of the slave's AW.
// AW has a register slice (latency 1), W and B pass straight through; one burst and one word a cycle.
// No deadlock: a grant needs only room here, never the slave's awready, and a granted master's words never
// wait for its AW to be taken. A master that announces a burst before it has its words holds the others up;
// mr_axi_wr with Buffer > 0 does not.
module mr_axi_wr_arb #(
    parameter int unsigned Count     = 2,
    parameter int unsigned AddrWidth = 64,
    parameter int unsigned DataWidth = 512,
    parameter int unsigned IdWidth   = 4, // at least log2(Count)
    parameter int unsigned Depth     = 8,
    localparam int unsigned Bytes    = DataWidth / 8
) (
    input  logic                       clk_i,
    input  logic                       rst_ni,
    // the masters; master k in the k-th slice
    input  logic [Count*AddrWidth-1:0] awaddr_i,
    input  logic [Count*8-1:0]         awlen_i,
    input  logic [Count-1:0]           awvalid_i,
    output logic [Count-1:0]           awready_o,
    input  logic [Count*DataWidth-1:0] wdata_i,
    input  logic [Count*Bytes-1:0]     wstrb_i,
    input  logic [Count-1:0]           wlast_i,
    input  logic [Count-1:0]           wvalid_i,
    output logic [Count-1:0]           wready_o,
    output logic [1:0]                 bresp_o, // to all masters
    output logic [Count-1:0]           bvalid_o,
    input  logic [Count-1:0]           bready_i,
    // the shared port
    output logic [IdWidth-1:0]         awid_o,
    output logic [AddrWidth-1:0]       awaddr_o,
    output logic [7:0]                 awlen_o,
    output logic                       awvalid_o,
    input  logic                       awready_i,
    output logic [DataWidth-1:0]       wdata_o,
    output logic [Bytes-1:0]           wstrb_o,
    output logic                       wlast_o,
    output logic                       wvalid_o,
    input  logic                       wready_i,
    input  logic [IdWidth-1:0]         bid_i,
    input  logic [1:0]                 bresp_i,
    input  logic                       bvalid_i,
    output logic                       bready_o
);
    localparam int unsigned IndexWidth = Count > 1 ? $clog2(Count) : 1;

    logic [Count*(AddrWidth+8)-1:0] offers;
    logic [IndexWidth-1:0]          index, owner;
    logic [AddrWidth+8-1:0]         granted;
    logic                           grant_valid, aw_ready, order_ready, order_valid, unused_last;
    logic [$clog2(Depth + 1)-1:0]   unused_count;

    for (genvar k = 0; k < Count; k++) begin : gen_offer
        assign offers[k*(AddrWidth+8)+:AddrWidth+8] = {awaddr_i[k*AddrWidth+:AddrWidth], awlen_i[k*8+:8]};
        assign wready_o[k] = wready_i && order_valid && owner == IndexWidth'(k);
        assign bvalid_o[k] = bvalid_i && bid_i == IdWidth'(k);
    end

    mr_arb #(.Count(Count), .Width(AddrWidth + 8)) u_arb (
        .clk_i, .rst_ni, .valid_i(awvalid_i), .ready_o(awready_o), .data_i(offers), .last_i('1),
        .valid_o(grant_valid), .ready_i(aw_ready && order_ready), .data_o(granted), .last_o(unused_last),
        .index_o(index)
    );
    mr_stream_reg #(.Width(IdWidth + AddrWidth + 8)) u_aw (
        .clk_i, .rst_ni, .valid_i(grant_valid && order_ready), .ready_o(aw_ready),
        .data_i({IdWidth'(index), granted}), .valid_o(awvalid_o), .ready_i(awready_i),
        .data_o({awid_o, awaddr_o, awlen_o})
    );
    mr_fifo #(.Width(IndexWidth), .Depth(Depth)) u_order (
        .clk_i, .rst_ni, .valid_i(grant_valid && aw_ready), .ready_o(order_ready), .data_i(index),
        .valid_o(order_valid), .ready_i(wvalid_o && wready_i && wlast_o), .data_o(owner),
        .count_o(unused_count)
    );

    assign wvalid_o = order_valid && wvalid_i[owner];
    assign wlast_o  = wlast_i[owner];
    assign wdata_o  = wdata_i[owner*DataWidth+:DataWidth];
    assign wstrb_o  = wstrb_i[owner*Bytes+:Bytes];
    assign bresp_o  = bresp_i;
    assign bready_o = (bvalid_o & bready_i) != '0;

    mr_axi_check #(.AddrWidth(AddrWidth), .DataWidth(DataWidth), .IdWidth(IdWidth)) u_check_axi (
        .clk_i, .rst_ni, .awid_i(awid_o), .awaddr_i(awaddr_o), .awlen_i(awlen_o), .awvalid_i(awvalid_o),
        .awready_i, .wdata_i(wdata_o), .wstrb_i(wstrb_o), .wlast_i(wlast_o), .wvalid_i(wvalid_o), .wready_i,
        .bid_i, .bresp_i, .bvalid_i, .bready_i(bready_o),
        .arid_i('0), .araddr_i('0), .arlen_i('0), .arvalid_i(1'b0), .arready_i(1'b0),
        .rid_i('0), .rdata_i('0), .rresp_i('0), .rlast_i(1'b0), .rvalid_i(1'b0), .rready_i(1'b0)
    );
endmodule
