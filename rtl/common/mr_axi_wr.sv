// AXI4 write master: a command {addr, len, src_off} and a data stream become writes of the len bytes from
// byte src_off of the stream's next beat on, to addr.
//
// Any byte address, length and source offset; every command of length > 0 takes ceil((src_off + len) /
// Bytes) beats of the stream, beginning with a beat of its own, length 0 takes none. INCR bursts of at
// most MaxBurst words that never cross a 4 KiB page, WSTRB at the ends, at most MaxOutstanding bursts
// without their response. With Buffer > 0 (words, at least MaxBurst) a burst is announced only when all
// its words are stored here, so that a slow source can never hold a shared port (twice MaxBurst keeps the
// full rate); with Buffer 0 words follow as they come (less latency, no memory).
// AW and W are independent: neither waits for the other's ready, a slave may take W first.
// Throughput: one word a cycle, also over back-to-back commands; one cycle more for a command of more
// than one source beat whose offset within a word is below src_off.
// err_o is set by any response other than OKAY, clear_i clears it. idle_o: every accepted command has all
// its responses. One id, no id ports (mr_axi_wr_arb adds ids); AWSIZE is the full bus width, AWBURST INCR.
module mr_axi_wr #(
    parameter int unsigned AddrWidth      = 64,
    parameter int unsigned DataWidth      = 512,
    parameter int unsigned LenWidth       = 32,
    parameter int unsigned MaxBurst       = 16,
    parameter int unsigned MaxOutstanding = 32, // bursts
    parameter int unsigned Buffer         = 0,
    localparam int unsigned Bytes         = DataWidth / 8,
    localparam int unsigned OffWidth      = $clog2(Bytes)
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 clear_i,
    output logic                 idle_o,
    output logic                 err_o,
    input  logic                 cmd_valid_i,
    output logic                 cmd_ready_o,
    input  logic [AddrWidth-1:0] cmd_addr_i,
    input  logic [LenWidth-1:0]  cmd_len_i,
    input  logic [OffWidth-1:0]  cmd_src_off_i,
    input  logic                 valid_i,
    output logic                 ready_o,
    input  logic [DataWidth-1:0] data_i,
    output logic [AddrWidth-1:0] awaddr_o,
    output logic [7:0]           awlen_o,
    output logic                 awvalid_o,
    input  logic                 awready_i,
    output logic [DataWidth-1:0] wdata_o,
    output logic [Bytes-1:0]     wstrb_o,
    output logic                 wlast_o,
    output logic                 wvalid_o,
    input  logic                 wready_i,
    input  logic [1:0]           bresp_i,
    input  logic                 bvalid_i,
    output logic                 bready_o
);
    localparam int unsigned CountWidth = $clog2(MaxOutstanding + 1);

    if (Buffer != 0 && Buffer < MaxBurst) begin : gen_bad_buffer
        mr_axi_wr_buffer_is_smaller_than_a_burst u_error ();
    end

    logic                  queue_ready, queue_valid, split_ready, split_busy, meta_ready, meta_valid, meta_pop;
    logic                  burst_valid, burst_go, burst_take, aw_ready, len_ready, len_valid, len_pop;
    logic                  stored, a_valid, a_ready, a_last, w_valid, err_q, unused_busy;
    logic [OffWidth-1:0]   meta_src, meta_dst;
    logic [LenWidth-1:0]   meta_len;
    logic [AddrWidth-1:0]  burst_addr, queue_addr;
    logic [LenWidth-1:0]   queue_len;
    logic [7:0]            burst_len, len_head, beat_q;
    logic [CountWidth-1:0] bursts_q;
    logic [DataWidth-1:0]  a_data;
    logic [Bytes-1:0]      a_strb;
    logic [$clog2(MaxOutstanding + 3)-1:0] unused_meta_count, unused_queue_count;
    logic [$clog2(MaxOutstanding + 1)-1:0] unused_len_count;

    assign cmd_ready_o = queue_ready && meta_ready;

    if (Buffer != 0) begin : gen_queue
        // the aligner works ahead of the splitter, which waits for the words of its burst
        mr_fifo #(.Width(AddrWidth + LenWidth), .Depth(MaxOutstanding + 2)) u_queue (
            .clk_i, .rst_ni, .valid_i(cmd_valid_i && meta_ready), .ready_o(queue_ready),
            .data_i({cmd_addr_i, cmd_len_i}), .valid_o(queue_valid), .ready_i(split_ready),
            .data_o({queue_addr, queue_len}), .count_o(unused_queue_count)
        );
    end else begin : gen_no_queue
        assign queue_valid = cmd_valid_i && meta_ready;
        assign queue_ready = split_ready;
        assign queue_addr  = cmd_addr_i;
        assign queue_len   = cmd_len_i;
        assign unused_queue_count = '0;
    end
    mr_axi_split #(
        .AddrWidth(AddrWidth), .DataWidth(DataWidth), .LenWidth(LenWidth), .MaxBurst(MaxBurst)
    ) u_split (
        .clk_i, .rst_ni, .cmd_valid_i(queue_valid), .cmd_ready_o(split_ready), .cmd_addr_i(queue_addr),
        .cmd_len_i(queue_len), .burst_valid_o(burst_valid), .burst_ready_i(burst_take), .burst_addr_o(burst_addr),
        .burst_len_o(burst_len), .busy_o(split_busy)
    );
    mr_fifo #(.Width(2 * OffWidth + LenWidth), .Depth(MaxOutstanding + 2)) u_meta (
        .clk_i, .rst_ni, .valid_i(cmd_valid_i && queue_ready && cmd_len_i != '0), .ready_o(meta_ready),
        .data_i({cmd_src_off_i, cmd_addr_i[OffWidth-1:0], cmd_len_i}), .valid_o(meta_valid),
        .ready_i(meta_pop), .data_o({meta_src, meta_dst, meta_len}), .count_o(unused_meta_count)
    );
    mr_align #(.DataWidth(DataWidth), .LenWidth(LenWidth)) u_align (
        .clk_i, .rst_ni, .cmd_valid_i(meta_valid), .cmd_ready_o(meta_pop), .cmd_src_off_i(meta_src),
        .cmd_dst_off_i(meta_dst), .cmd_len_i(meta_len), .valid_i, .ready_o, .data_i, .valid_o(a_valid),
        .ready_i(a_ready), .data_o(a_data), .strb_o(a_strb), .last_o(a_last), .busy_o(unused_busy)
    );

    // a burst leaves the splitter for the address register and the queue of burst lengths at once
    assign burst_go   = burst_valid && stored && bursts_q != CountWidth'(MaxOutstanding);
    assign burst_take = burst_go && aw_ready && len_ready;

    mr_stream_reg #(.Width(AddrWidth + 8)) u_aw (
        .clk_i, .rst_ni, .valid_i(burst_go && len_ready), .ready_o(aw_ready), .data_i({burst_addr, burst_len}),
        .valid_o(awvalid_o), .ready_i(awready_i), .data_o({awaddr_o, awlen_o})
    );
    mr_fifo #(.Width(8), .Depth(MaxOutstanding)) u_len (
        .clk_i, .rst_ni, .valid_i(burst_go && aw_ready), .ready_o(len_ready), .data_i(burst_len),
        .valid_o(len_valid), .ready_i(len_pop), .data_o(len_head), .count_o(unused_len_count)
    );

    if (Buffer != 0) begin : gen_store
        // words stored and not yet promised to a burst
        localparam int unsigned FillWidth = $clog2(Buffer + 1);
        logic [FillWidth-1:0] fill_q, words, unused_count;
        assign words  = FillWidth'({1'b0, burst_len} + 9'd1);
        assign stored = fill_q >= words;
        always_ff @(posedge clk_i) begin
            if (!rst_ni) fill_q <= '0;
            else
                fill_q <= fill_q + {{(FillWidth - 1) {1'b0}}, a_valid && a_ready} - (burst_take ? words : '0);
        end
        mr_fifo #(.Width(DataWidth + Bytes), .Depth(Buffer)) u_buffer (
            .clk_i, .rst_ni, .valid_i(a_valid), .ready_o(a_ready), .data_i({a_strb, a_data}),
            .valid_o(w_valid), .ready_i(len_valid && wready_i), .data_o({wstrb_o, wdata_o}),
            .count_o(unused_count)
        );
    end else begin : gen_cut_through
        assign stored  = 1'b1;
        assign w_valid = a_valid;
        assign a_ready = len_valid && wready_i;
        assign {wstrb_o, wdata_o} = {a_strb, a_data};
    end

    assign wvalid_o = w_valid && len_valid;
    assign wlast_o  = beat_q == len_head;
    assign len_pop  = w_valid && wready_i && wlast_o;
    assign bready_o = 1'b1;
    assign err_o    = err_q;
    assign idle_o   = !split_busy && bursts_q == '0 && (Buffer == 0 || !queue_valid);

    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            bursts_q <= '0;
            beat_q   <= '0;
            err_q    <= 1'b0;
        end else begin
            bursts_q <= bursts_q + {{(CountWidth - 1) {1'b0}}, burst_take} - {{(CountWidth - 1) {1'b0}}, bvalid_i};
            if (wvalid_o && wready_i) beat_q <= wlast_o ? '0 : beat_q + 1'b1;
            err_q <= (err_q && !clear_i) || (bvalid_i && bresp_i != 2'b00);
        end
    end

    logic unused_last;
    assign unused_last = a_last;

    mr_stream_check #(.Width(AddrWidth + LenWidth + OffWidth)) u_check_cmd (
        .clk_i, .rst_ni, .valid_i(cmd_valid_i), .ready_i(cmd_ready_o),
        .data_i({cmd_addr_i, cmd_len_i, cmd_src_off_i}), .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(DataWidth)) u_check_in (
        .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i, .keep_i(1'b1), .last_i(1'b0)
    );
    mr_axi_check #(.AddrWidth(AddrWidth), .DataWidth(DataWidth), .IdWidth(1)) u_check_axi (
        .clk_i, .rst_ni, .awid_i('0), .awaddr_i(awaddr_o), .awlen_i(awlen_o), .awvalid_i(awvalid_o),
        .awready_i, .wdata_i(wdata_o), .wstrb_i(wstrb_o), .wlast_i(wlast_o), .wvalid_i(wvalid_o), .wready_i,
        .bid_i('0), .bresp_i, .bvalid_i, .bready_i(bready_o),
        .arid_i('0), .araddr_i('0), .arlen_i('0), .arvalid_i(1'b0), .arready_i(1'b0),
        .rid_i('0), .rdata_i('0), .rresp_i('0), .rlast_i(1'b0), .rvalid_i(1'b0), .rready_i(1'b0)
    );
endmodule
