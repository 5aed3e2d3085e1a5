// The two checkers alone, driven directly by the bench so that every rule can be broken.
module check_tb (
    input logic        clk_i,
    input logic        rst_ni,
    input logic        s_valid_i,
    input logic        s_ready_i,
    input logic [15:0] s_data_i,
    input logic [3:0]  s_keep_i,
    input logic        s_last_i,
    input logic [1:0]  awid_i,
    input logic [31:0] awaddr_i,
    input logic [7:0]  awlen_i,
    input logic        awvalid_i,
    input logic        awready_i,
    input logic [63:0] wdata_i,
    input logic [7:0]  wstrb_i,
    input logic        wlast_i,
    input logic        wvalid_i,
    input logic        wready_i,
    input logic [1:0]  bid_i,
    input logic [1:0]  bresp_i,
    input logic        bvalid_i,
    input logic        bready_i,
    input logic [1:0]  arid_i,
    input logic [31:0] araddr_i,
    input logic [7:0]  arlen_i,
    input logic        arvalid_i,
    input logic        arready_i,
    input logic [1:0]  rid_i,
    input logic [63:0] rdata_i,
    input logic [1:0]  rresp_i,
    input logic        rlast_i,
    input logic        rvalid_i,
    input logic        rready_i
);
    mr_stream_check #(.Width(16), .Keep(4)) u_stream (
        .clk_i, .rst_ni, .valid_i(s_valid_i), .ready_i(s_ready_i), .data_i(s_data_i), .keep_i(s_keep_i),
        .last_i(s_last_i)
    );
    mr_axi_check #(.AddrWidth(32), .DataWidth(64), .IdWidth(2)) u_axi (
        .clk_i, .rst_ni, .awid_i, .awaddr_i, .awlen_i, .awvalid_i, .awready_i, .wdata_i, .wstrb_i, .wlast_i,
        .wvalid_i, .wready_i, .bid_i, .bresp_i, .bvalid_i, .bready_i, .arid_i, .araddr_i, .arlen_i,
        .arvalid_i, .arready_i, .rid_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_i
    );
endmodule
