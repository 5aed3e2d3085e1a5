// Hybrid multiplier with a handshake: bf16 x bf16 to the unrounded product in float32, one lane with its mode,
// its generator and its control. models/golden/pnm_mult.c gives the same bits.
//
// Latency from the operands' transfer to valid_o: 4 cycles + slices - 1, slices = max(1, L/StreamBits); one product
// every `slices` cycles. kind_i (0 split, 1 full, 2 exact), log_i (log2 L, 2..8) and the seeds are taken with set_i,
// which needs busy_o low and holds ready_o low for the cycle. Parameters: see pnm_mult_lane; Lane moves the seeds
// of GEN_LFSR. NaN is 7FC00000; products above the largest float32 are infinite, below 2^-126 zeros of their sign.
// flags_o, with the product: invalid, underflow (a subnormal operand among them), overflow, seed.
module pnm_mult #(
    parameter int unsigned Gen        = pnm_stream_pkg::GEN_UNARY,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16,
    parameter int unsigned Lane       = 0,
    parameter bit          Exact      = 1'b1,
    parameter bit          Full       = 1'b1
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        set_i,
    input  logic [1:0]  kind_i,
    input  logic [3:0]  log_i,
    input  logic        seed_we_i,
    /* verilator lint_off UNUSEDSIGNAL */ // GEN_LFSR alone has seeds
    input  logic [23:0] seed_a_i,
    input  logic [22:0] seed_b_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic        busy_o,

    input  logic        valid_i,
    output logic        ready_o,
    input  logic [15:0] a_i,
    input  logic [15:0] b_i,

    output logic        valid_o,
    input  logic        ready_i,
    output logic [31:0] product_o,
    output logic [3:0]  flags_o
);
    localparam int unsigned LOG = $clog2(StreamBits);

    logic        valid0_q, valid1_q, valid2_q, valid3_q; // operands, stage 1, 2, 3 done
    logic [15:0] weight_q;
    logic [5:0]  slice_q, last_slice;
    logic [24:0] cfg;
    logic        move, last, accept;
    logic [2:0]  en;

    pnm_mult_set #(.Gen(Gen), .Cut(Cut)) i_set (
        .clk_i, .rst_ni, .en_i(set_i), .kind_i, .log_i, .cfg_o(cfg)
    );

    always_comb begin
        last_slice = 6'd0;
        if (!cfg[1] && cfg[5:2] > 4'(LOG)) last_slice = 6'((7'd1 << (cfg[5:2] - 4'(LOG))) - 7'd1);
        last = slice_q == last_slice;
        move = !valid3_q || ready_i;
        en[0] = move && valid0_q && (!valid1_q || last);
        en[1] = move && valid1_q;
        en[2] = move && valid2_q;
        accept = valid_i && ready_o;
    end
    assign ready_o = !set_i && !seed_we_i && (!valid0_q || en[0]);
    assign valid_o = valid3_q;
    assign busy_o = valid0_q || valid1_q || valid2_q || valid3_q;

    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            {valid0_q, valid1_q, valid2_q, valid3_q} <= 4'd0;
            slice_q <= 6'd0;
        end else begin
            valid0_q <= accept || (valid0_q && !en[0]);
            if (move) begin
                valid1_q <= en[0] || (valid1_q && !last);
                valid2_q <= valid1_q && last;
                valid3_q <= valid2_q;
                if (valid1_q) slice_q <= last ? 6'd0 : slice_q + 6'd1;
            end
        end
        if (accept) weight_q <= a_i;
    end

    mr_stream_check #(.Width(32)) i_check_in (
        .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i({a_i, b_i}), .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(36)) i_check_out (
        .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i({product_o, flags_o}), .keep_i(1'b1), .last_i(1'b0)
    );

    // ---- the lane, and the generators that stand outside of it
    logic [StreamBits-1:0] ones;
    /* verilator lint_off UNUSEDSIGNAL */ // generators outside of the lane alone look at its codes
    logic [7:0]  code_a, code_b;
    /* verilator lint_on UNUSEDSIGNAL */
    logic        sign, zero, inf, nan, fault;
    logic [8:0]  exp;
    logic [15:0] p;
    pnm_mult_lane #(.Gen(Gen), .Cut(Cut), .StreamBits(StreamBits), .Exact(Exact), .Full(Full)) i_lane (
        .clk_i, .cfg_i(cfg), .load_i(accept), .act_i(b_i), .en_i(en), .first_i(slice_q == 6'd0), .slice_i(slice_q),
        .weight_i(weight_q), .ones_i(ones), .code_a_o(code_a), .code_b_o(code_b), .sign_o(sign), .exp_o(exp),
        .p_o(p), .zero_o(zero), .inf_o(inf), .nan_o(nan)
    );

    if (Gen == pnm_stream_pkg::GEN_LFSR) begin : gen_lfsr
        pnm_stream_lfsr #(.Lane(Lane), .Cut(Cut), .StreamBits(StreamBits)) i_streams (
            .clk_i, .rst_ni, .seed_we_i, .seed_a_i, .seed_b_i, .en_i(en[1]), .first_i(slice_q == 6'd0),
            .full_i(cfg[0]), .log_i(cfg[5:2]), .code_a_i(code_a), .code_b_i(code_b), .ones_o(ones), .fault_o(fault)
        );
    end else if (Gen == pnm_stream_pkg::GEN_SOBOL) begin : gen_sobol
        pnm_stream_sobol #(.StreamBits(StreamBits)) i_streams (
            .clk_i, .en_i(en[1]), .first_i(slice_q == 6'd0), .slice_i(slice_q), .log_i(cfg[5:2]),
            .code_a_i(code_a), .code_b_i(code_b), .ones_o(ones)
        );
        assign fault = 1'b0;
    end else begin : gen_inside
        assign ones = '0;
        assign fault = 1'b0;
    end

    // what a subnormal operand leaves no other trace of
    logic tiny0_q, tiny1_q, tiny2_q, tiny3_q;
    always_ff @(posedge clk_i) begin
        if (accept) tiny0_q <= (a_i[14:7] == 8'd0 && a_i[6:0] != 7'd0) || (b_i[14:7] == 8'd0 && b_i[6:0] != 7'd0);
        if (en[0]) tiny1_q <= tiny0_q;
        if (en[1] && slice_q == 6'd0) tiny2_q <= tiny1_q;
        if (en[2]) tiny3_q <= tiny2_q;
    end

    // ---- the float32 value
    logic [9:0]  biased; // of the product, 127 too high
    logic [22:0] fraction;
    logic        over, under, finite;
    always_comb begin
        biased = {1'b0, exp} + {9'd0, p[15]};
        fraction = p[15] ? {p[14:0], 8'd0} : {p[13:0], 9'd0};
        finite = !nan && !inf && !zero;
        over = finite && biased >= 10'd382;
        under = finite && biased <= 10'd127;
        if (nan) product_o = 32'h7FC0_0000;
        else if (inf || over) product_o = {sign, 31'h7F80_0000};
        else if (zero || under) product_o = {sign, 31'd0};
        else product_o = {sign, 8'(biased - 10'd127), fraction};
        flags_o = {nan, under || tiny3_q, over, fault && !cfg[1]};
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
        if (rst_ni) begin
            assert (!set_i || !busy_o) else $error("pnm_mult: the mode changes while products are under way");
            assert (!seed_we_i || !busy_o) else $error("pnm_mult: a seed is written while products are under way");
            if (set_i) begin
                assert (kind_i < 2'd3) else $error("pnm_mult: kind 3 is none");
                assert (kind_i == 2'd2 || (log_i >= 4'd2 && log_i <= 4'd8)) else $error("pnm_mult: no such L");
                assert (Full || kind_i != 2'd1) else $error("pnm_mult: built without full");
                assert (Exact || kind_i != 2'd2) else $error("pnm_mult: built without exact");
            end
        end
    end
`endif
endmodule
