// AXI4 read master: a command {addr, len} becomes a dense stream of the len bytes from addr on, the first
// in lane 0, with keep and last.
//
// Any byte address and length (length 0 gives nothing). Whole bus words are read, in INCR bursts of at most
// MaxBurst words that never cross a 4 KiB page; up to MaxOutstanding bursts are under way. Buffer words
// of read data are stored, and a burst is asked for only when its words have room there: rready_o is
// always high, so a consumer that stalls can never hold up others on a shared port.
// Throughput: one word a cycle, also over back-to-back commands; one cycle more for a command of more
// than one word whose address is not word aligned. Latency from data in to data out: 2.
// err_o is set by any response other than OKAY, clear_i clears it; the data are delivered nevertheless.
// idle_o: nothing accepted is waiting, outstanding or undelivered up to the output register.
// The master uses one id and has no id ports (responses in order, mr_axi_rd_arb adds ids); ARSIZE is the
// full bus width, ARBURST is INCR.
module mr_axi_rd #(
    parameter int unsigned AddrWidth      = 64,
    parameter int unsigned DataWidth      = 512,
    parameter int unsigned LenWidth       = 32,
    parameter int unsigned MaxBurst       = 16,
    parameter int unsigned MaxOutstanding = 32, // bursts
    parameter int unsigned Buffer         = 64, // words, at least MaxBurst
    localparam int unsigned Bytes         = DataWidth / 8
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
    output logic                 valid_o,
    input  logic                 ready_i,
    output logic [DataWidth-1:0] data_o,
    output logic [Bytes-1:0]     keep_o,
    output logic                 last_o,
    output logic [AddrWidth-1:0] araddr_o,
    output logic [7:0]           arlen_o,
    output logic                 arvalid_o,
    input  logic                 arready_i,
    input  logic [DataWidth-1:0] rdata_i,
    input  logic [1:0]           rresp_i,
    input  logic                 rlast_i,
    input  logic                 rvalid_i,
    output logic                 rready_o
);
    localparam int unsigned OffWidth   = $clog2(Bytes);
    localparam int unsigned CountWidth = $clog2(MaxOutstanding + 1);
    localparam int unsigned RoomWidth  = $clog2(Buffer + 1);

    if (Buffer < MaxBurst) begin : gen_bad_buffer
        mr_axi_rd_buffer_is_smaller_than_a_burst u_error ();
    end

    logic                  split_ready, split_busy, meta_ready, meta_valid, meta_pop, burst_valid, burst_take;
    logic                  err_q, fifo_valid, fifo_ready, fifo_pop, burst_fits, aligner_busy, unused_ready;
    logic [OffWidth-1:0]   meta_off;
    logic [LenWidth-1:0]   meta_len;
    logic [CountWidth-1:0] bursts_q;
    logic [RoomWidth-1:0]  room_q, burst_words;
    logic [DataWidth-1:0]  fifo_data;
    logic [$clog2(MaxOutstanding + 3)-1:0] meta_count;
    logic [RoomWidth-1:0]  unused_count;

    // a command goes to the burst splitter and, as {offset, len}, to the queue in front of the aligner
    assign cmd_ready_o = split_ready && meta_ready;

    mr_axi_split #(
        .AddrWidth(AddrWidth), .DataWidth(DataWidth), .LenWidth(LenWidth), .MaxBurst(MaxBurst)
    ) u_split (
        .clk_i, .rst_ni, .cmd_valid_i(cmd_valid_i && meta_ready), .cmd_ready_o(split_ready), .cmd_addr_i,
        .cmd_len_i, .burst_valid_o(burst_valid), .burst_ready_i(burst_take), .burst_addr_o(araddr_o),
        .burst_len_o(arlen_o), .busy_o(split_busy)
    );
    mr_fifo #(.Width(OffWidth + LenWidth), .Depth(MaxOutstanding + 2)) u_meta (
        .clk_i, .rst_ni, .valid_i(cmd_valid_i && split_ready && cmd_len_i != '0), .ready_o(meta_ready),
        .data_i({cmd_addr_i[OffWidth-1:0], cmd_len_i}), .valid_o(meta_valid), .ready_i(meta_pop),
        .data_o({meta_off, meta_len}), .count_o(meta_count)
    );

    // both limits only grow laxer while a burst waits, so arvalid_o stays once it is high
    assign burst_words = RoomWidth'({1'b0, arlen_o} + 9'd1);
    assign burst_fits  = room_q >= burst_words && bursts_q != CountWidth'(MaxOutstanding);
    assign arvalid_o   = burst_valid && burst_fits;
    assign burst_take  = arready_i && burst_fits;
    assign fifo_pop    = fifo_valid && fifo_ready;
    assign rready_o    = 1'b1;
    assign err_o       = err_q;
    assign idle_o      = !split_busy && bursts_q == '0 && meta_count == '0 && !aligner_busy;

    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            bursts_q <= '0;
            room_q   <= RoomWidth'(Buffer);
            err_q    <= 1'b0;
        end else begin
            bursts_q <= bursts_q + {{(CountWidth - 1) {1'b0}}, arvalid_o && arready_i}
                - {{(CountWidth - 1) {1'b0}}, rvalid_i && rlast_i};
            room_q <= room_q - (arvalid_o && arready_i ? burst_words : '0) + {{(RoomWidth - 1) {1'b0}}, fifo_pop};
            err_q <= (err_q && !clear_i) || (rvalid_i && rresp_i != 2'b00);
        end
    end

    mr_fifo #(.Width(DataWidth), .Depth(Buffer)) u_buffer (
        .clk_i, .rst_ni, .valid_i(rvalid_i), .ready_o(unused_ready), .data_i(rdata_i),
        .valid_o(fifo_valid), .ready_i(fifo_ready), .data_o(fifo_data), .count_o(unused_count)
    );

    mr_align #(.DataWidth(DataWidth), .LenWidth(LenWidth)) u_align (
        .clk_i, .rst_ni, .cmd_valid_i(meta_valid), .cmd_ready_o(meta_pop), .cmd_src_off_i(meta_off),
        .cmd_dst_off_i('0), .cmd_len_i(meta_len), .valid_i(fifo_valid), .ready_o(fifo_ready),
        .data_i(fifo_data), .valid_o, .ready_i, .data_o, .strb_o(keep_o), .last_o, .busy_o(aligner_busy)
    );

    mr_stream_check #(.Width(AddrWidth + LenWidth)) u_check_cmd (
        .clk_i, .rst_ni, .valid_i(cmd_valid_i), .ready_i(cmd_ready_o), .data_i({cmd_addr_i, cmd_len_i}),
        .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(DataWidth), .Keep(Bytes)) u_check_out (
        .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(keep_o), .last_i(last_o)
    );
    mr_axi_check #(.AddrWidth(AddrWidth), .DataWidth(DataWidth), .IdWidth(1)) u_check_axi (
        .clk_i, .rst_ni, .awid_i('0), .awaddr_i('0), .awlen_i('0), .awvalid_i(1'b0), .awready_i(1'b0),
        .wdata_i('0), .wstrb_i('0), .wlast_i(1'b0), .wvalid_i(1'b0), .wready_i(1'b0),
        .bid_i('0), .bresp_i('0), .bvalid_i(1'b0), .bready_i(1'b0),
        .arid_i('0), .araddr_i(araddr_o), .arlen_i(arlen_o), .arvalid_i(arvalid_o), .arready_i,
        .rid_i('0), .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_i(rready_o)
    );
endmodule
