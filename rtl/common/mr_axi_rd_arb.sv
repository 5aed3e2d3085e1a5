// Lets Count read masters share one AXI4 port.
//
// Burst by burst, round robin; the id on the shared port is the master's index, and read data go back by
// their id, interleaved as the slave likes. No storage: a master that does not take its data holds the
// others up, which mr_axi_rd never does (its rready is always high). Latency 0 both ways, one burst and
// one word a cycle.
module mr_axi_rd_arb #(
    parameter int unsigned Count     = 2,
    parameter int unsigned AddrWidth = 64,
    parameter int unsigned DataWidth = 512,
    parameter int unsigned IdWidth   = 4 // at least log2(Count)
) (
    input  logic                       clk_i,
    input  logic                       rst_ni,
    // the masters; master k in the k-th slice
    input  logic [Count*AddrWidth-1:0] araddr_i,
    input  logic [Count*8-1:0]         arlen_i,
    input  logic [Count-1:0]           arvalid_i,
    output logic [Count-1:0]           arready_o,
    output logic [DataWidth-1:0]       rdata_o, // to all masters
    output logic [1:0]                 rresp_o, // to all masters
    output logic                       rlast_o, // to all masters
    output logic [Count-1:0]           rvalid_o,
    input  logic [Count-1:0]           rready_i,
    // the shared port
    output logic [IdWidth-1:0]         arid_o,
    output logic [AddrWidth-1:0]       araddr_o,
    output logic [7:0]                 arlen_o,
    output logic                       arvalid_o,
    input  logic                       arready_i,
    input  logic [IdWidth-1:0]         rid_i,
    input  logic [DataWidth-1:0]       rdata_i,
    input  logic [1:0]                 rresp_i,
    input  logic                       rlast_i,
    input  logic                       rvalid_i,
    output logic                       rready_o
);
    localparam int unsigned IndexWidth = Count > 1 ? $clog2(Count) : 1;

    logic [Count*(AddrWidth+8)-1:0] offers;
    logic [IndexWidth-1:0]          index;
    logic                           unused_last;

    for (genvar k = 0; k < Count; k++) begin : gen_offer
        assign offers[k*(AddrWidth+8)+:AddrWidth+8] = {araddr_i[k*AddrWidth+:AddrWidth], arlen_i[k*8+:8]};
        assign rvalid_o[k] = rvalid_i && rid_i == IdWidth'(k);
    end

    mr_arb #(.Count(Count), .Width(AddrWidth + 8)) u_arb (
        .clk_i, .rst_ni, .valid_i(arvalid_i), .ready_o(arready_o), .data_i(offers), .last_i('1),
        .valid_o(arvalid_o), .ready_i(arready_i), .data_o({araddr_o, arlen_o}), .last_o(unused_last),
        .index_o(index)
    );

    assign arid_o   = IdWidth'(index);
    assign rdata_o  = rdata_i;
    assign rresp_o  = rresp_i;
    assign rlast_o  = rlast_i;
    assign rready_o = (rvalid_o & rready_i) != '0;

    mr_axi_check #(.AddrWidth(AddrWidth), .DataWidth(DataWidth), .IdWidth(IdWidth)) u_check_axi (
        .clk_i, .rst_ni, .awid_i('0), .awaddr_i('0), .awlen_i('0), .awvalid_i(1'b0), .awready_i(1'b0),
        .wdata_i('0), .wstrb_i('0), .wlast_i(1'b0), .wvalid_i(1'b0), .wready_i(1'b0),
        .bid_i('0), .bresp_i('0), .bvalid_i(1'b0), .bready_i(1'b0),
        .arid_i(arid_o), .araddr_i(araddr_o), .arlen_i(arlen_o), .arvalid_i(arvalid_o), .arready_i,
        .rid_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_i(rready_o)
    );
endmodule
