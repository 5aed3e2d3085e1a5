// Two read and two write masters on one AXI4 port: what a unit with several memory clients is made of.
// Write master 0 passes its words on as they come, master 1 stores a burst first.
module axi_tb #(
    parameter int unsigned DataWidth      = 512,
    parameter int unsigned MaxBurst       = 16,
    parameter int unsigned MaxOutstanding = 8,
    localparam int unsigned Bytes         = DataWidth / 8,
    localparam int unsigned OffWidth      = $clog2(Bytes)
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic [1:0]             clear_i,
    // read masters
    output logic [1:0]             rd_idle_o,
    output logic [1:0]             rd_err_o,
    input  logic [1:0]             rd_cmd_valid_i,
    output logic [1:0]             rd_cmd_ready_o,
    input  logic [2*64-1:0]        rd_addr_i,
    input  logic [2*32-1:0]        rd_len_i,
    output logic [1:0]             rd_valid_o,
    input  logic [1:0]             rd_ready_i,
    output logic [2*DataWidth-1:0] rd_data_o,
    output logic [2*Bytes-1:0]     rd_keep_o,
    output logic [1:0]             rd_last_o,
    // write masters
    output logic [1:0]             wr_idle_o,
    output logic [1:0]             wr_err_o,
    input  logic [1:0]             wr_cmd_valid_i,
    output logic [1:0]             wr_cmd_ready_o,
    input  logic [2*64-1:0]        wr_addr_i,
    input  logic [2*32-1:0]        wr_len_i,
    input  logic [2*8-1:0]         wr_src_off_i,
    input  logic [1:0]             wr_valid_i,
    output logic [1:0]             wr_ready_o,
    input  logic [2*DataWidth-1:0] wr_data_i,
    // the port
    output logic [3:0]             awid_o,
    output logic [63:0]            awaddr_o,
    output logic [7:0]             awlen_o,
    output logic                   awvalid_o,
    input  logic                   awready_i,
    output logic [DataWidth-1:0]   wdata_o,
    output logic [Bytes-1:0]       wstrb_o,
    output logic                   wlast_o,
    output logic                   wvalid_o,
    input  logic                   wready_i,
    input  logic [3:0]             bid_i,
    input  logic [1:0]             bresp_i,
    input  logic                   bvalid_i,
    output logic                   bready_o,
    output logic [3:0]             arid_o,
    output logic [63:0]            araddr_o,
    output logic [7:0]             arlen_o,
    output logic                   arvalid_o,
    input  logic                   arready_i,
    input  logic [3:0]             rid_i,
    input  logic [DataWidth-1:0]   rdata_i,
    input  logic [1:0]             rresp_i,
    input  logic                   rlast_i,
    input  logic                   rvalid_i,
    output logic                   rready_o
);
    logic [2*64-1:0]        araddr, awaddr;
    logic [2*8-1:0]         arlen, awlen;
    logic [1:0]             arvalid, arready, rvalid, rready, awvalid, awready, wlast, wvalid, wready;
    logic [1:0]             bvalid, bready;
    logic [DataWidth-1:0]   rdata;
    logic [1:0]             rresp, bresp;
    logic                   rlast;
    logic [2*DataWidth-1:0] wdata;
    logic [2*Bytes-1:0]     wstrb;

    for (genvar k = 0; k < 2; k++) begin : gen_master
        mr_axi_rd #(
            .DataWidth(DataWidth), .MaxBurst(MaxBurst), .MaxOutstanding(MaxOutstanding), .Buffer(4 * MaxBurst)
        ) u_rd (
            .clk_i, .rst_ni, .clear_i(clear_i[k]), .idle_o(rd_idle_o[k]), .err_o(rd_err_o[k]),
            .cmd_valid_i(rd_cmd_valid_i[k]), .cmd_ready_o(rd_cmd_ready_o[k]),
            .cmd_addr_i(rd_addr_i[k*64+:64]), .cmd_len_i(rd_len_i[k*32+:32]),
            .valid_o(rd_valid_o[k]), .ready_i(rd_ready_i[k]), .data_o(rd_data_o[k*DataWidth+:DataWidth]),
            .keep_o(rd_keep_o[k*Bytes+:Bytes]), .last_o(rd_last_o[k]),
            .araddr_o(araddr[k*64+:64]), .arlen_o(arlen[k*8+:8]), .arvalid_o(arvalid[k]),
            .arready_i(arready[k]), .rdata_i(rdata), .rresp_i(rresp), .rlast_i(rlast),
            .rvalid_i(rvalid[k]), .rready_o(rready[k])
        );
        mr_axi_wr #(
            .DataWidth(DataWidth), .MaxBurst(MaxBurst), .MaxOutstanding(MaxOutstanding),
            .Buffer(k == 0 ? 0 : 2 * MaxBurst)
        ) u_wr (
            .clk_i, .rst_ni, .clear_i(clear_i[k]), .idle_o(wr_idle_o[k]), .err_o(wr_err_o[k]),
            .cmd_valid_i(wr_cmd_valid_i[k]), .cmd_ready_o(wr_cmd_ready_o[k]),
            .cmd_addr_i(wr_addr_i[k*64+:64]), .cmd_len_i(wr_len_i[k*32+:32]),
            .cmd_src_off_i(wr_src_off_i[k*8+:OffWidth]), .valid_i(wr_valid_i[k]), .ready_o(wr_ready_o[k]),
            .data_i(wr_data_i[k*DataWidth+:DataWidth]),
            .awaddr_o(awaddr[k*64+:64]), .awlen_o(awlen[k*8+:8]), .awvalid_o(awvalid[k]),
            .awready_i(awready[k]), .wdata_o(wdata[k*DataWidth+:DataWidth]),
            .wstrb_o(wstrb[k*Bytes+:Bytes]), .wlast_o(wlast[k]), .wvalid_o(wvalid[k]),
            .wready_i(wready[k]), .bresp_i(bresp), .bvalid_i(bvalid[k]), .bready_o(bready[k])
        );
        logic [7-OffWidth:0] unused_off;
        assign unused_off = wr_src_off_i[k*8+7:k*8+OffWidth];
    end

    mr_axi_rd_arb #(.Count(2), .DataWidth(DataWidth)) u_rd_arb (
        .clk_i, .rst_ni, .araddr_i(araddr), .arlen_i(arlen), .arvalid_i(arvalid), .arready_o(arready),
        .rdata_o(rdata), .rresp_o(rresp), .rlast_o(rlast), .rvalid_o(rvalid), .rready_i(rready),
        .arid_o, .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rid_i, .rdata_i, .rresp_i, .rlast_i,
        .rvalid_i, .rready_o
    );
    mr_axi_wr_arb #(.Count(2), .DataWidth(DataWidth)) u_wr_arb (
        .clk_i, .rst_ni, .awaddr_i(awaddr), .awlen_i(awlen), .awvalid_i(awvalid), .awready_o(awready),
        .wdata_i(wdata), .wstrb_i(wstrb), .wlast_i(wlast), .wvalid_i(wvalid), .wready_o(wready),
        .bresp_o(bresp), .bvalid_o(bvalid), .bready_i(bready),
        .awid_o, .awaddr_o, .awlen_o, .awvalid_o, .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o,
        .wready_i, .bid_i, .bresp_i, .bvalid_i, .bready_o
    );
endmodule
