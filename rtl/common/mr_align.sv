// Moves the bytes of a stream from one offset within a beat to another, command by command.
//
// A command {src_off, dst_off, len} takes ceil((src_off + len) / Bytes) input beats, whose first useful
// byte is byte src_off of the first, and gives ceil((dst_off + len) / Bytes) output beats, the first
// useful byte at dst_off; strb_o marks the useful bytes and last_o the command's last beat. len is at
// least 1. Every command begins with an input beat of its own.
// Latency 1 (output register slice), one output beat a cycle, commands back to back without a gap; one
// more cycle a command of more than one input beat when dst_off < src_off (two input beats are needed for
// the first output beat). One byte rotator of the data width.
module mr_align #(
    parameter int unsigned DataWidth = 512,
    parameter int unsigned LenWidth  = 32,
    localparam int unsigned Bytes    = DataWidth / 8,
    localparam int unsigned OffWidth = $clog2(Bytes)
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 cmd_valid_i,
    output logic                 cmd_ready_o,
    input  logic [OffWidth-1:0]  cmd_src_off_i,
    input  logic [OffWidth-1:0]  cmd_dst_off_i,
    input  logic [LenWidth-1:0]  cmd_len_i,
    input  logic                 valid_i,
    output logic                 ready_o,
    input  logic [DataWidth-1:0] data_i,
    output logic                 valid_o,
    input  logic                 ready_i,
    output logic [DataWidth-1:0] data_o,
    output logic [Bytes-1:0]     strb_o,
    output logic                 last_o,
    output logic                 busy_o // a command is taken and its last beat has not left the output
);
    localparam int unsigned BeatWidth = LenWidth - OffWidth + 1;

    logic                 busy_q, first_q, skip_q;
    logic [OffWidth-1:0]  rot_q, dst_off_q, end_q;
    logic [BeatWidth-1:0] src_left_q, dst_left_q;
    logic [DataWidth-1:0] hold_q, mask_q, rotated, merged;
    logic                 need, step, emit, out_ready, take, done, last;
    logic [Bytes-1:0]     strb;

    // ---- the command just offered, in beats ----
    logic [LenWidth:0]    src_sum, dst_sum;
    logic [BeatWidth-1:0] src_beats, dst_beats;
    logic [OffWidth-1:0]  rot, unused_sum;
    assign unused_sum = src_sum[OffWidth-1:0];
    assign src_sum   = {1'b0, cmd_len_i} + {{(LenWidth + 1 - OffWidth) {1'b0}}, cmd_src_off_i} - 1'b1;
    assign dst_sum   = {1'b0, cmd_len_i} + {{(LenWidth + 1 - OffWidth) {1'b0}}, cmd_dst_off_i} - 1'b1;
    assign src_beats = src_sum[LenWidth:OffWidth] + 1'b1;
    assign dst_beats = dst_sum[LenWidth:OffWidth] + 1'b1;
    assign rot       = cmd_dst_off_i - cmd_src_off_i;

    // ---- one step: take an input beat if one is left, give an output beat unless it is the skip ----
    assign need        = src_left_q != '0;
    assign step        = busy_q && (valid_i || !need);
    assign emit        = step && !skip_q;
    assign take        = step && (skip_q || out_ready);
    assign ready_o     = busy_q && need && (skip_q || out_ready);
    assign last        = dst_left_q == {{(BeatWidth - 1) {1'b0}}, 1'b1};
    assign done        = take && !skip_q && last;
    assign cmd_ready_o = !busy_q || done;

    // input rotated left by rot_q bytes; below rot_q the bytes are those of the beat before
    always_comb begin
        rotated = data_i;
        merged  = data_i;
        if (rot_q != '0 && step) begin // idle cycles rotate nothing
            rotated = (data_i << {rot_q, 3'b000}) | (data_i >> {(OffWidth + 1)'(Bytes) - {1'b0, rot_q}, 3'b000});
            // no input beat left: zeroes, so that a waiting output beat holds still
            merged  = (hold_q & mask_q) | (need ? rotated & ~mask_q : '0);
        end
    end
    always_comb begin
        strb = '1;
        if (first_q) strb = strb << dst_off_q;
        if (last) strb = strb & ({Bytes{1'b1}} >> ~end_q);
    end

    always_ff @(posedge clk_i) begin
        if (cmd_valid_i && cmd_ready_o) begin
            rot_q     <= rot;
            dst_off_q <= cmd_dst_off_i;
            end_q     <= dst_sum[OffWidth-1:0];
            // a lone input beat that fills a lone output beat needs nothing from the beat before
            for (int unsigned b = 0; b < Bytes; b++)
                mask_q[b*8+:8] <= {8{OffWidth'(b) < rot && !(src_sum[LenWidth:OffWidth] == '0 && dst_sum[LenWidth:OffWidth] == '0)}};
        end
        if (!rst_ni) begin
            busy_q     <= 1'b0;
            first_q    <= 1'b0;
            skip_q     <= 1'b0;
            src_left_q <= '0;
            dst_left_q <= '0;
            hold_q     <= '0; // reset so that unmarked bytes are the same in every run
        end else begin
            if (take) begin
                if (need) begin
                    hold_q     <= rotated;
                    src_left_q <= src_left_q - 1'b1;
                end
                if (!skip_q) begin
                    first_q    <= 1'b0;
                    dst_left_q <= dst_left_q - 1'b1;
                end
                skip_q <= 1'b0;
            end
            if (cmd_ready_o) begin
                busy_q <= cmd_valid_i;
                if (cmd_valid_i) begin
                    first_q    <= 1'b1;
                    skip_q     <= cmd_dst_off_i < cmd_src_off_i && src_sum[LenWidth:OffWidth] != '0;
                    src_left_q <= src_beats;
                    dst_left_q <= dst_beats;
                end
            end
        end
    end

    assign busy_o = busy_q || valid_o;

    mr_stream_reg #(.Width(DataWidth + Bytes + 1)) u_out (
        .clk_i, .rst_ni, .valid_i(emit), .ready_o(out_ready), .data_i({last, strb, merged}),
        .valid_o, .ready_i, .data_o({last_o, strb_o, data_o})
    );
endmodule
