// Hybrid binary-stochastic multiplier, one lane: a weight streams past a stationary activation, both bf16.
//
// Sign and exponent are binary. Of the significands' product (1+fa)(1+fb) only fa*fb goes through streams of
// L bits: A has a 1 at place k where fa > (k+o)/L, B where fb > (bitreverse(k)+o)/L, and the ones of A & B are
// counted, StreamBits places a cycle. A comparator needs no counter of its own: A's ones are the first n(fa)
// places and B's those whose reversed place is below n(fb). models/golden/pnm_mult.c is the meaning of every bit.
//
// Gen: GEN_UNARY, or GEN_CENTRED, which streams the distances from the middle, |f - 1/2|, and adds or subtracts.
//   Any other generator stands outside, takes code_a_o and code_b_o and gives the A & B of a slice as ones_i.
// Cut: upper fraction bits multiplied in binary. Exact, Full: whether the lane can do these modes; a lane with
//   Exact = 1 holds an 8 x 8 multiplier.
//
// act_i is taken with load_i and meets the weights from the next cycle on. A product has three stages:
//   en_i[0]  weight_i in
//   en_i[1]  one slice of StreamBits places, L/StreamBits times (once where L <= StreamBits), first_i with the
//            first; slice_i counts them. The next product's en_i[0] may come with the last slice.
//   en_i[2]  the cycle after the last slice: results in the cycle that follows
// so the latency is 3 cycles + slices - 1, one product every max(1, L/StreamBits) cycles. All lanes that share
// cfg_i (pnm_mult_set) and the enables run in lock step; cfg_i has to be still from load_i to the last result.
// Result: (-1)^sign_o * p_o * 2^-14 * 2^(exp_o - 254), exp_o the sum of both biased exponents; p_o is
// 0x4000..0xFFFF. zero_o (a zero or subnormal operand), inf_o and nan_o come before the value: nan over inf over
// zero. No reset: the enables say what counts. All logic stands inside enabled registers.
module pnm_mult_lane #(
    parameter int unsigned Gen        = pnm_stream_pkg::GEN_UNARY,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16,
    parameter bit          Exact      = 1'b1,
    parameter bit          Full       = 1'b1
) (
    input  logic                  clk_i,
    input  logic [24:0]           cfg_i,
    input  logic                  load_i,
    input  logic [15:0]           act_i,
    input  logic [2:0]            en_i,
    input  logic                  first_i,
    input  logic [5:0]            slice_i,
    input  logic [15:0]           weight_i,
    input  logic [StreamBits-1:0] ones_i,
    output logic [7:0]            code_a_o,
    output logic [7:0]            code_b_o,
    output logic                  sign_o,
    output logic [8:0]            exp_o,
    output logic [15:0]           p_o,
    output logic                  zero_o,
    output logic                  inf_o,
    output logic                  nan_o
);
    localparam int unsigned LOG = $clog2(StreamBits);
    localparam int unsigned LOW = 7 - Cut; // fraction bits that stream
    localparam bit CENTRED = Gen == pnm_stream_pkg::GEN_CENTRED;
    localparam bit UNARY = CENTRED || Gen == pnm_stream_pkg::GEN_UNARY;
    localparam int unsigned DOWN = (CENTRED ? 4 : 2) + 2 * Cut;
    localparam logic [6:0] LOW_MASK = 7'h7F >> Cut;
    localparam logic [6:0] HALF = 7'h40 >> Cut;

    // what a stream is made of, as a fraction of 256
    function automatic logic [7:0] code(input logic [6:0] f, input logic full);
        logic [6:0] low, size;
        low = f & LOW_MASK;
        size = low >= HALF ? low - HALF : HALF - low;
        if (full) code = {1'b1, f};
        else if (CENTRED) code = {size, 1'b0} << (Cut + 1);
        else code = {low, 1'b0} << Cut;
    endfunction

    // how many of L comparators are below it
    function automatic logic [8:0] count(input logic [7:0] c, input logic [3:0] log, input logic [8:0] round);
        count = 9'((({9'd0, c} << log) + {{8{round[8]}}, round}) >> 8);
    endfunction

    // the lowest n places; all of them from StreamBits on
    function automatic logic [StreamBits-1:0] lowest(input logic [8:0] n);
        lowest = n >= 9'(StreamBits) ? '1 : ~({StreamBits{1'b1}} << n[LOG-1:0]);
    endfunction

    function automatic logic [StreamBits-1:0] reversed(input logic [StreamBits-1:0] v);
        for (int unsigned i = 0; i < StreamBits; i++) begin
            logic [LOG-1:0] r;
            for (int unsigned j = 0; j < LOG; j++) r[j] = i[LOG-1-j];
            reversed[i] = v[r];
        end
    endfunction

    // places of B with a one in slice `slice` of 2^(log-LOG), or in all L <= StreamBits of them
    function automatic logic [StreamBits-1:0] places(
        input logic [8:0] n, input logic [3:0] log, input logic [5:0] slice
    );
        logic [8:0] m, skew;
        logic [3:0] by;
        if (log <= 4'(LOG)) begin
            by = 4'(LOG) - log;
            m = n << by;
        end else begin
            by = log - 4'(LOG);
            // the slice's own residue is its number reversed; what rounds up is the rest to 2^by - 1
            for (int unsigned i = 0; i < 9; i++) skew[i] = i < 6 ? !slice[i < 6 ? 5 - i : 0] : 1'b0;
            m = (n + (skew >> (4'd6 - by))) >> by;
        end
        places = reversed(lowest(m));
    endfunction

    // ---- the activation, made ready once
    logic [15:0]           act_q;
    logic [8:0]            nb_q;
    logic [StreamBits-1:0] bits_q;
    always_ff @(posedge clk_i) begin : p_load
        logic [8:0] n;
        if (load_i) begin
            act_q <= act_i;
            if (UNARY) begin
                n = count(code(act_i[6:0], Full && cfg_i[0]), cfg_i[5:2], cfg_i[14:6]);
                nb_q <= n;
                bits_q <= places(n, cfg_i[5:2], 6'd0);
            end
        end
    end

    // ---- stage 1: everything binary, and A's ones
    logic [16:0]           base_q;
    logic                  use_q, minus_q;
    logic [12:0]           meta_q; // sign, exponent, zero, inf, nan
    logic [8:0]            na1_q, nb1_q;
    logic [StreamBits-1:0] bits1_q;
    logic [7:0]            code_a_q, code_b_q;
    assign code_a_o = code_a_q;
    assign code_b_o = code_b_q;

    always_ff @(posedge clk_i) begin : p_binary
        logic [6:0]  fa, fb, la, lb;
        logic [7:0]  ea, eb;
        logic [16:0] base;
        logic        zero, inf, nan;
        if (en_i[0]) begin
            fa = weight_i[6:0];
            fb = act_q[6:0];
            la = fa & LOW_MASK;
            lb = fb & LOW_MASK;
            ea = weight_i[14:7];
            eb = act_q[14:7];
            base = 17'h4000 + {2'b0, {1'b0, fa} + {1'b0, fb}, 7'b0};
            for (int unsigned i = LOW; i < 7; i++) begin
                if (fa[i]) base = base + ({10'd0, fb} << i);
                if (fb[i]) base = base + ({10'd0, la} << i);
            end
            use_q <= la != 7'd0 && lb != 7'd0;
            if (CENTRED && la != 7'd0 && lb != 7'd0) begin
                base = base + ((({10'd0, la} + {10'd0, lb}) << (LOW - 1)) - (17'd1 << (2 * LOW - 2)));
                use_q <= la != HALF && lb != HALF;
            end
            minus_q <= CENTRED && ((la < HALF) ^ (lb < HALF));
            if (Full && cfg_i[0]) begin
                base = 17'd0;
                use_q <= 1'b1;
                minus_q <= 1'b0;
            end
            if (Exact && cfg_i[1]) begin
                base = {9'd0, 1'b1, fa} * {9'd0, 1'b1, fb};
                use_q <= 1'b0;
            end
            base_q <= base;
            zero = ea == 8'd0 || eb == 8'd0;
            inf = ea == 8'hFF || eb == 8'hFF;
            nan = (ea == 8'hFF && fa != 7'd0) || (eb == 8'hFF && fb != 7'd0) || (zero && inf);
            meta_q <= {weight_i[15] ^ act_q[15], {1'b0, ea} + {1'b0, eb}, zero, inf, nan};
            if (UNARY) begin
                na1_q <= count(code(fa, Full && cfg_i[0]), cfg_i[5:2], cfg_i[14:6]);
                nb1_q <= nb_q;
                bits1_q <= bits_q;
            end else begin
                code_a_q <= code(fa, Full && cfg_i[0]);
                code_b_q <= code(fb, Full && cfg_i[0]);
            end
        end
    end

    // ---- stage 2: the streams meet
    logic [8:0]  ones_q;
    logic [16:0] base2_q;
    logic        minus2_q, use2_q;
    logic [12:0] meta2_q;
    always_ff @(posedge clk_i) begin : p_streams
        logic [StreamBits-1:0] a, b;
        logic [8:0] from;
        if (en_i[1]) begin
            if (!UNARY) begin
                a = ones_i;
                b = '1;
            end else if (cfg_i[5:2] > 4'(LOG)) begin
                from = 9'(slice_i) << LOG;
                a = na1_q > from ? lowest(na1_q - from) : '0;
                b = places(nb1_q, cfg_i[5:2], slice_i);
            end else begin
                a = lowest(na1_q);
                b = bits1_q;
            end
            ones_q <= 9'($countones(a & b)) + (first_i ? 9'd0 : ones_q);
            if (first_i) begin
                base2_q <= base_q;
                minus2_q <= minus_q;
                use2_q <= use_q;
                meta2_q <= meta_q;
            end
        end
    end

    // ---- stage 3: count to value, constant off, clamp
    logic [15:0] p_q;
    logic [12:0] meta3_q;
    assign p_o = p_q;
    assign {sign_o, exp_o, zero_o, inf_o, nan_o} = meta3_q;
    always_ff @(posedge clk_i) begin : p_value
        logic signed [18:0] size, p;
        logic [8:0] share; // of 256
        if (en_i[2]) begin
            share = ones_q << (4'd8 - cfg_i[5:2]);
            size = $signed({2'b0, share, 8'd0})
                 - $signed({{3{cfg_i[24]}}, cfg_i[24:15], 6'd0});
            if (!(Full && cfg_i[0])) size = size >>> DOWN;
            p = $signed({2'b0, base2_q});
            if (use2_q) p = minus2_q ? p - size : p + size;
            p_q <= p < 19'sh4000 ? 16'h4000 : p > 19'shFFFF ? 16'hFFFF : p[15:0];
            meta3_q <= meta2_q;
        end
    end
endmodule
