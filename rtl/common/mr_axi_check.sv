// Rules of an AXI4 port as assertions, for master and slave; instantiate one beside every port.
//
// Clocked immediate assertions with history in registers, alive wherever the simulator runs with
// assertions on, absent from synthesis. All bursts are INCR of full bus width (the ports have no size or
// burst type). W may run ahead of AW. Checked: payload and valid hold still while stalled, on all five
// channels; no burst leaves its 4 KiB page; every write burst has AWLEN+1 beats with WLAST on the last
// one only; a write response only for a burst that is complete, once, with its id; read data only for
// an outstanding id, ARLEN+1 beats with RLAST on the last one only, in order within an id.
module mr_axi_check #(
    parameter int unsigned AddrWidth = 64,
    parameter int unsigned DataWidth = 512,
    parameter int unsigned IdWidth   = 4,
    parameter int unsigned LogDepth  = 8, // log2 of the bursts it can remember
    localparam int unsigned Bytes    = DataWidth / 8
) (
    input logic                 clk_i,
    input logic                 rst_ni,
    input logic [IdWidth-1:0]   awid_i,
    input logic [AddrWidth-1:0] awaddr_i,
    input logic [7:0]           awlen_i,
    input logic                 awvalid_i,
    input logic                 awready_i,
    input logic [DataWidth-1:0] wdata_i,
    input logic [Bytes-1:0]     wstrb_i,
    input logic                 wlast_i,
    input logic                 wvalid_i,
    input logic                 wready_i,
    input logic [IdWidth-1:0]   bid_i,
    input logic [1:0]           bresp_i,
    input logic                 bvalid_i,
    input logic                 bready_i,
    input logic [IdWidth-1:0]   arid_i,
    input logic [AddrWidth-1:0] araddr_i,
    input logic [7:0]           arlen_i,
    input logic                 arvalid_i,
    input logic                 arready_i,
    input logic [IdWidth-1:0]   rid_i,
    input logic [DataWidth-1:0] rdata_i,
    input logic [1:0]           rresp_i,
    input logic                 rlast_i,
    input logic                 rvalid_i,
    input logic                 rready_i
);
`ifndef SYNTHESIS
    localparam int unsigned Ids = 1 << IdWidth;
    localparam int unsigned D   = 1 << LogDepth;

    // ---- channels hold still while stalled: the stream contract without keep ----
    mr_stream_check #(.Width(IdWidth + AddrWidth + 8)) u_aw (
        .clk_i, .rst_ni, .valid_i(awvalid_i), .ready_i(awready_i), .data_i({awid_i, awaddr_i, awlen_i}),
        .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(DataWidth + Bytes)) u_w (
        .clk_i, .rst_ni, .valid_i(wvalid_i), .ready_i(wready_i), .data_i({wdata_i, wstrb_i}),
        .keep_i(1'b1), .last_i(wlast_i)
    );
    mr_stream_check #(.Width(IdWidth + 2)) u_b (
        .clk_i, .rst_ni, .valid_i(bvalid_i), .ready_i(bready_i), .data_i({bid_i, bresp_i}),
        .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(IdWidth + AddrWidth + 8)) u_ar (
        .clk_i, .rst_ni, .valid_i(arvalid_i), .ready_i(arready_i), .data_i({arid_i, araddr_i, arlen_i}),
        .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(IdWidth + DataWidth + 2)) u_r (
        .clk_i, .rst_ni, .valid_i(rvalid_i), .ready_i(rready_i), .data_i({rid_i, rdata_i, rresp_i}),
        .keep_i(1'b1), .last_i(rlast_i)
    );

    // ---- 4 KiB pages: word index within the page plus beats ----
    localparam int unsigned OffWidth = $clog2(Bytes);
    localparam logic [12:0] PageWords = 13'(4096 / Bytes);
    logic [12:0] aw_end, ar_end;
    assign aw_end = 13'({1'b0, awaddr_i[11:0]} >> OffWidth) + {5'b0, awlen_i} + 13'd1;
    assign ar_end = 13'({1'b0, araddr_i[11:0]} >> OffWidth) + {5'b0, arlen_i} + 13'd1;

    // ---- writes: lengths and ids as announced and as sent, compared when both are there ----
    logic [7:0]          aw_len [0:D-1];
    logic [IdWidth-1:0]  aw_id [0:D-1];
    logic [7:0]          w_len [0:D-1];
    logic [LogDepth:0]   aw_n_q, w_n_q, done_n_q; // bursts announced, sent, compared
    logic [7:0]          w_beat_q;
    logic [LogDepth:0]   open_q [0:Ids-1];        // complete bursts of an id without response
    logic                aw_fire, w_fire, w_end, b_fire, compare;
    assign aw_fire = awvalid_i && awready_i;
    assign w_fire  = wvalid_i && wready_i;
    assign w_end   = w_fire && wlast_i;
    assign b_fire  = bvalid_i && bready_i;
    assign compare = done_n_q != aw_n_q && done_n_q != w_n_q;

    // ---- reads: lengths of the outstanding bursts of each id, oldest first ----
    logic [7:0]          ar_len [0:Ids*D-1];
    logic [LogDepth:0]   ar_n_q [0:Ids-1];
    logic [LogDepth:0]   r_n_q [0:Ids-1];
    logic [7:0]          r_beat_q [0:Ids-1];
    logic                ar_fire, r_fire;
    logic [7:0]          r_want;
    assign ar_fire = arvalid_i && arready_i;
    assign r_fire  = rvalid_i && rready_i;
    assign r_want  = ar_len[{rid_i, r_n_q[rid_i][LogDepth-1:0]}];

    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            aw_n_q   <= '0;
            w_n_q    <= '0;
            done_n_q <= '0;
            w_beat_q <= '0;
            for (int unsigned k = 0; k < Ids; k++) begin
                open_q[k]   <= '0;
                ar_n_q[k]   <= '0;
                r_n_q[k]    <= '0;
                r_beat_q[k] <= '0;
            end
        end else begin
            if (awvalid_i) aw_in_page: assert (aw_end <= PageWords);
            if (arvalid_i) ar_in_page: assert (ar_end <= PageWords);

            if (aw_fire) begin
                aw_len[aw_n_q[LogDepth-1:0]] <= awlen_i;
                aw_id[aw_n_q[LogDepth-1:0]]  <= awid_i;
                aw_n_q                       <= aw_n_q + 1'b1;
            end
            if (w_fire) w_beat_q <= wlast_i ? '0 : w_beat_q + 1'b1;
            if (w_fire) w_not_too_long: assert (wlast_i || w_beat_q != 8'hFF);
            if (w_end) begin
                w_len[w_n_q[LogDepth-1:0]] <= w_beat_q;
                w_n_q                      <= w_n_q + 1'b1;
            end
            if (compare) begin
                w_beats_match: assert (w_len[done_n_q[LogDepth-1:0]] == aw_len[done_n_q[LogDepth-1:0]]);
                done_n_q <= done_n_q + 1'b1;
            end
            // a response in the cycle after a burst's last handshake meets its comparison
            if (bvalid_i)
                b_for_complete_burst:
                assert (open_q[bid_i] != '0 || (compare && aw_id[done_n_q[LogDepth-1:0]] == bid_i));
            if (compare) open_q[aw_id[done_n_q[LogDepth-1:0]]] <= open_q[aw_id[done_n_q[LogDepth-1:0]]] + 1'b1;
            if (b_fire) open_q[bid_i] <= open_q[bid_i] - 1'b1;
            if (b_fire && compare && aw_id[done_n_q[LogDepth-1:0]] == bid_i) open_q[bid_i] <= open_q[bid_i];

            if (ar_fire) begin
                ar_len[{arid_i, ar_n_q[arid_i][LogDepth-1:0]}] <= arlen_i;
                ar_n_q[arid_i]                                 <= ar_n_q[arid_i] + 1'b1;
            end
            if (rvalid_i) begin
                r_for_open_burst: assert (ar_n_q[rid_i] != r_n_q[rid_i]);
                r_last_matches:   assert (rlast_i == (r_beat_q[rid_i] == r_want));
            end
            if (r_fire) begin
                r_beat_q[rid_i] <= rlast_i ? '0 : r_beat_q[rid_i] + 1'b1;
                if (rlast_i) r_n_q[rid_i] <= r_n_q[rid_i] + 1'b1;
            end
        end
    end
`else
    logic unused_ports;
    assign unused_ports = &{clk_i, rst_ni, awid_i, awaddr_i, awlen_i, awvalid_i, awready_i, wdata_i, wstrb_i,
                            wlast_i, wvalid_i, wready_i, bid_i, bresp_i, bvalid_i, bready_i, arid_i, araddr_i,
                            arlen_i, arvalid_i, arready_i, rid_i, rdata_i, rresp_i, rlast_i, rvalid_i, rready_i};
`endif
endmodule
