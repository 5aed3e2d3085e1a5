// The hybrid multiplier at its leanest: one lane whose stream length is fixed when it is built and whose whole
// stream is one cycle's work. What pnm_mult_lane gives in split mode at that length, without its settings; here to
// measure what the scheme itself costs. Ports and meaning as pnm_mult_bin: latency Stages cycles, a product a cycle.
//
// Gen: GEN_UNARY or GEN_CENTRED. Log: log2 L, 2..5. Cut: upper fraction bits multiplied in binary, so many that the
// weight of a stream bit stays whole: Log + 2 Cut <= 12 (centred), 14 (unary). The significand is one sum of a few
// terms, the count turned over where it is taken off.
module pnm_mult_short #(
    parameter int unsigned Gen    = pnm_stream_pkg::GEN_CENTRED,
    parameter int unsigned Log    = 4,
    parameter int unsigned Cut    = 0,
    parameter int unsigned Stages = 1
) (
    input  logic        clk_i,
    input  logic        load_i,
    input  logic [15:0] act_i,
    /* verilator lint_off UNUSEDSIGNAL */ // a stage that is not there needs no enable
    input  logic [2:0]  en_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [15:0] weight_i,
    output logic        sign_o,
    output logic [8:0]  exp_o,
    output logic [15:0] p_o,
    output logic        zero_o,
    output logic        inf_o,
    output logic        nan_o
);
    localparam bit CENTRED = Gen == pnm_stream_pkg::GEN_CENTRED;
    localparam int unsigned L = 1 << Log;
    localparam int unsigned LOW = 7 - Cut; // fraction bits that stream
    localparam int unsigned DOWN = (CENTRED ? 4 : 2) + 2 * Cut;
    localparam logic [6:0] LOW_MASK = 7'h7F >> Cut;
    localparam logic [6:0] HALF = 7'h40 >> Cut;
    localparam int unsigned AT = 7 * Cut + Log - 2;
    localparam logic [3:0] OFFSET =
        CENTRED ? pnm_stream_pkg::CENTRED_OFFSET[4*AT +: 4] : pnm_stream_pkg::UNARY_OFFSET[4*AT +: 4];
    localparam logic signed [9:0] BIAS =
        CENTRED ? pnm_stream_pkg::CENTRED_BIAS[10*AT +: 10] : pnm_stream_pkg::UNARY_BIAS[10*AT +: 10];
    localparam logic [8:0] ROUND = 9'd255 - {OFFSET, 5'd0};
    localparam int unsigned UP = 16 - Log - DOWN; // weight of a stream bit, 2^UP
    localparam logic signed [17:0] LESS = 18'((-(19'(BIAS) <<< 6)) >>> DOWN); // what a used stream adds besides
    // the only builds whose sum can fall below 1; none exceeds FFFF
    localparam bit CLAMP = CENTRED && Cut == 0 && Log < 4;

    // how many of L comparators are below what streams of fraction f
    function automatic logic [Log:0] count(input logic [6:0] f);
        logic [6:0] low, size;
        logic [7:0] code;
        low = f & LOW_MASK;
        size = low >= HALF ? low - HALF : HALF - low;
        code = CENTRED ? {size, 1'b0} << (Cut + 1) : {low, 1'b0} << Cut;
        count = (Log+1)'(((17'(code) << Log) + {{8{ROUND[8]}}, ROUND}) >> 8);
    endfunction

    // the significand: 1 + fa + fb, the binary part of fa fb, the count
    function automatic logic [15:0] value(
        input logic [6:0] fa, input logic [6:0] fb, input logic middle, input logic used, input logic minus,
        input logic [Log:0] na, input logic [Log:0] nb
    );
        logic [Log-1:0] reversed;
        logic [6:0]     la, lb;
        logic [7:0]     sum, low;
        logic [Log:0]   ones;
        logic [17:0]    p, fixed;
        la = fa & LOW_MASK;
        lb = fb & LOW_MASK;
        sum = {1'b0, fa} + {1'b0, fb};
        low = {1'b0, la} + {1'b0, lb};
        ones = '0;
        for (int unsigned k = 0; k < L; k++) begin
            for (int unsigned j = 0; j < Log; j++) reversed[j] = k[Log-1-j];
            ones = ones + (Log+1)'(na > (Log+1)'(k) && nb > {1'b0, reversed});
        end
        ones = (ones & {(Log+1){used}}) ^ {(Log+1){minus}};
        fixed = 18'h4000;
        if (CENTRED && middle) fixed = fixed - 18'(1 << (2 * LOW - 2));
        if (minus) fixed = fixed - 18'(((2 << Log) - 1) << UP) - LESS;
        else if (used) fixed = fixed + LESS;
        p = ({10'd0, sum} << 7) + fixed + ({{(17-Log){1'b0}}, ones} << UP);
        for (int unsigned i = LOW; i < 7; i++)
            p = p + ({11'd0, fb & {7{fa[i]}}} << i) + ({11'd0, la & {7{fb[i]}}} << i);
        if (CENTRED) p = p + ({10'd0, low & {8{middle}}} << (LOW - 1)); // (la + lb) / 2 of the part that streams
        value = CLAMP && p[15:14] == 2'b00 ? 16'h4000 : p[15:0];
    endfunction

    logic [15:0] act_q;
    always_ff @(posedge clk_i) if (load_i) act_q <= act_i;

    // ---- everything that is not the significand, and what its streams are
    logic        middle, used, minus;
    logic [12:0] meta; // sign, exponent, zero, inf, nan
    always_comb begin : p_binary
        logic [6:0] la, lb;
        logic       zero, inf;
        la = weight_i[6:0] & LOW_MASK;
        lb = act_q[6:0] & LOW_MASK;
        middle = la != 7'd0 && lb != 7'd0; // else the product is the other operand
        used = middle && !(CENTRED && (la == HALF || lb == HALF));
        minus = CENTRED && used && ((la < HALF) ^ (lb < HALF));
        zero = weight_i[14:7] == 8'd0 || act_q[14:7] == 8'd0;
        inf = weight_i[14:7] == 8'hFF || act_q[14:7] == 8'hFF;
        meta = {weight_i[15] ^ act_q[15], {1'b0, weight_i[14:7]} + {1'b0, act_q[14:7]}, zero, inf,
            (weight_i[14:7] == 8'hFF && weight_i[6:0] != 7'd0) || (act_q[14:7] == 8'hFF && act_q[6:0] != 7'd0)
            || (zero && inf)};
    end

    // ---- the sum: in the same cycle, or the next
    logic [15:0] p_q;
    logic [12:0] meta_q;
    if (Stages == 1) begin : g_one
        always_ff @(posedge clk_i) begin
            if (en_i[0]) begin
                p_q <= value(weight_i[6:0], act_q[6:0], middle, used, minus, count(weight_i[6:0]), count(act_q[6:0]));
                meta_q <= meta;
            end
        end
    end else begin : g_two
        logic [6:0]   fa_q, fb_q;
        logic         middle_q, used_q, minus_q;
        logic [Log:0] na_q, nb_q;
        logic [12:0]  meta1_q;
        always_ff @(posedge clk_i) begin
            if (en_i[0]) begin
                {fa_q, fb_q} <= {weight_i[6:0], act_q[6:0]};
                {middle_q, used_q, minus_q} <= {middle, used, minus};
                na_q <= count(weight_i[6:0]);
                nb_q <= count(act_q[6:0]);
                meta1_q <= meta;
            end
            if (en_i[1]) begin
                p_q <= value(fa_q, fb_q, middle_q, used_q, minus_q, na_q, nb_q);
                meta_q <= meta1_q;
            end
        end
    end

    if (Stages == 3) begin : g_wait
        logic [28:0] out_q;
        always_ff @(posedge clk_i) if (en_i[2]) out_q <= {p_q, meta_q};
        assign {p_o, sign_o, exp_o, zero_o, inf_o, nan_o} = out_q;
    end else begin : g_out
        assign {p_o, sign_o, exp_o, zero_o, inf_o, nan_o} = {p_q, meta_q};
    end
endmodule
