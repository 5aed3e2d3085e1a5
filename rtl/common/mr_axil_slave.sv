// AXI4-Lite slave: turns the five channels into one write strobe and one read strobe.
//
// A write is performed (wr_en_o for one cycle) when its address and its data have both arrived, in
// either order; a read's data is taken from rd_data_i in the cycle of rd_en_o, so a decoder may be
// combinational and a read with a side effect happens exactly once. One write and one read in
// flight; every response is OKAY. Latency: write response two cycles after the later of address and
// data, read data one cycle after its address is accepted. Ready never waits for valid.
module mr_axil_slave #(
    parameter int unsigned AddrWidth = 12
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic [AddrWidth-1:0] awaddr_i,
    input  logic                 awvalid_i,
    output logic                 awready_o,
    input  logic [31:0]          wdata_i,
    input  logic [3:0]           wstrb_i,
    input  logic                 wvalid_i,
    output logic                 wready_o,
    output logic [1:0]           bresp_o,
    output logic                 bvalid_o,
    input  logic                 bready_i,
    input  logic [AddrWidth-1:0] araddr_i,
    input  logic                 arvalid_i,
    output logic                 arready_o,
    output logic [31:0]          rdata_o,
    output logic [1:0]           rresp_o,
    output logic                 rvalid_o,
    input  logic                 rready_i,
    output logic                 wr_en_o,
    output logic [AddrWidth-1:2] wr_addr_o,
    output logic [31:0]          wr_data_o,
    output logic [31:0]          wr_mask_o,
    output logic                 rd_en_o,
    output logic [AddrWidth-1:2] rd_addr_o,
    input  logic [31:0]          rd_data_i
);
    logic                 aw_full_q, w_full_q, bvalid_q, rvalid_q;
    logic [AddrWidth-1:2] aw_addr_q;
    logic [31:0]          w_data_q, rdata_q;
    logic [3:0]           w_strb_q;
    logic [3:0]           unused_addr;

    assign unused_addr = {awaddr_i[1:0], araddr_i[1:0]};

    assign awready_o = !aw_full_q;
    assign wready_o  = !w_full_q;
    assign wr_en_o   = aw_full_q && w_full_q && !bvalid_q;
    assign wr_addr_o = aw_addr_q;
    assign wr_data_o = w_data_q;
    assign wr_mask_o = {{8{w_strb_q[3]}}, {8{w_strb_q[2]}}, {8{w_strb_q[1]}}, {8{w_strb_q[0]}}};
    assign bvalid_o  = bvalid_q;
    assign bresp_o   = 2'b00;

    assign arready_o = !rvalid_q;
    assign rd_en_o   = arvalid_i && arready_o;
    assign rd_addr_o = araddr_i[AddrWidth-1:2];
    assign rvalid_o  = rvalid_q;
    assign rdata_o   = rdata_q;
    assign rresp_o   = 2'b00;

    always_ff @(posedge clk_i) begin
        if (awvalid_i && awready_o) aw_addr_q <= awaddr_i[AddrWidth-1:2];
        if (wvalid_i && wready_o) begin
            w_data_q <= wdata_i;
            w_strb_q <= wstrb_i;
        end
        if (rd_en_o) rdata_q <= rd_data_i;
        if (!rst_ni) begin
            aw_full_q <= 1'b0;
            w_full_q  <= 1'b0;
            bvalid_q  <= 1'b0;
            rvalid_q  <= 1'b0;
        end else begin
            aw_full_q <= (aw_full_q && !wr_en_o) || (awvalid_i && awready_o);
            w_full_q  <= (w_full_q && !wr_en_o) || (wvalid_i && wready_o);
            bvalid_q  <= wr_en_o || (bvalid_q && !bready_i);
            rvalid_q  <= rd_en_o || (rvalid_q && !rready_i);
        end
    end

    mr_stream_check #(.Width(AddrWidth)) u_check_aw (
        .clk_i, .rst_ni, .valid_i(awvalid_i), .ready_i(awready_o), .data_i(awaddr_i), .keep_i(1'b1),
        .last_i(1'b0)
    );
    mr_stream_check #(.Width(36)) u_check_w (
        .clk_i, .rst_ni, .valid_i(wvalid_i), .ready_i(wready_o), .data_i({wdata_i, wstrb_i}), .keep_i(1'b1),
        .last_i(1'b0)
    );
    mr_stream_check #(.Width(2)) u_check_b (
        .clk_i, .rst_ni, .valid_i(bvalid_o), .ready_i(bready_i), .data_i(bresp_o), .keep_i(1'b1),
        .last_i(1'b0)
    );
    mr_stream_check #(.Width(AddrWidth)) u_check_ar (
        .clk_i, .rst_ni, .valid_i(arvalid_i), .ready_i(arready_o), .data_i(araddr_i), .keep_i(1'b1),
        .last_i(1'b0)
    );
    mr_stream_check #(.Width(34)) u_check_r (
        .clk_i, .rst_ni, .valid_i(rvalid_o), .ready_i(rready_i), .data_i({rdata_o, rresp_o}), .keep_i(1'b1),
        .last_i(1'b0)
    );
endmodule
