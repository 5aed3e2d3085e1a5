// The rival of the hybrid multiplier: bf16 x bf16 in binary, one lane with the ports and the meaning of
// pnm_mult_lane (the stream's ports excepted), so that both can be measured, and built into an element, alike.
//
// act_i is taken with load_i and meets the weights from the next cycle on; en_i[0] takes weight_i, the result is
// there after en_i[Stages-1]: latency Stages cycles, a product every cycle. Stages 3 keeps the hybrid lane's time;
// 1 and 2 are what the product itself needs, without and with a register before its last addition.
// Keep 7: the exact product, P = (128 + fa)(128 + fb), the kind `exact` of models/golden/pnm_mult.c. Keep 1..6: only
// so many upper bits of each fraction are multiplied, from the middle of what they leave open: with A, B those bits
// P = 2^14 + 128 (fa + fb) + {A,1} {B,1} 4^(6-Keep) - C, at least 2^14; C takes the mean relative error away.
// Result as pnm_mult_lane: (-1)^sign_o * p_o * 2^-14 * 2^(exp_o - 254), nan_o over inf_o over zero_o.
module pnm_mult_bin #(
    parameter int unsigned Stages = 3,
    parameter int unsigned Keep   = 7
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
    localparam bit EXACT = Keep == 7;
    localparam int unsigned WIDE = Keep + 1; // bits of a factor
    localparam logic [16:0] C = Keep == 1 ? 17'd276 : Keep == 2 ? 17'd111 : Keep == 3 ? 17'd70 : Keep == 4 ? 17'd60 : 17'd57;

    logic [15:0] act_q;
    always_ff @(posedge clk_i) if (load_i) act_q <= act_i;

    // ---- factors and what stands beside them
    logic [WIDE-1:0] x, y;
    logic [7:0]      sum; // fa + fb
    logic [12:0]     meta; // sign, exponent, zero, inf, nan
    always_comb begin : p_factors
        logic zero, inf;
        x = EXACT ? WIDE'({1'b1, weight_i[6:0]}) : WIDE'({weight_i[6:0], 1'b1} >> (7 - Keep)) | WIDE'(1);
        y = EXACT ? WIDE'({1'b1, act_q[6:0]}) : WIDE'({act_q[6:0], 1'b1} >> (7 - Keep)) | WIDE'(1);
        sum = {1'b0, weight_i[6:0]} + {1'b0, act_q[6:0]};
        zero = weight_i[14:7] == 8'd0 || act_q[14:7] == 8'd0;
        inf = weight_i[14:7] == 8'hFF || act_q[14:7] == 8'hFF;
        meta = {weight_i[15] ^ act_q[15], {1'b0, weight_i[14:7]} + {1'b0, act_q[14:7]}, zero, inf,
            (weight_i[14:7] == 8'hFF && weight_i[6:0] != 7'd0) || (act_q[14:7] == 8'hFF && act_q[6:0] != 7'd0)
            || (zero && inf)};
    end

    // P from the product of the factors
    function automatic logic [15:0] significand(input logic [15:0] product, input logic [7:0] s);
        logic [16:0] p;
        p = 17'h4000 - C + {2'b0, s, 7'b0} + ({1'b0, product} << (EXACT ? 0 : 2 * (6 - Keep)));
        if (EXACT) significand = product;
        else significand = p < 17'h4000 ? 16'h4000 : p[15:0];
    endfunction

    // ---- the product: a rank, or two with the last addition behind the first
    logic [15:0] p_q;
    logic [12:0] meta_q;
    if (Stages == 1) begin : g_one
        always_ff @(posedge clk_i) begin
            if (en_i[0]) begin
                p_q <= significand(16'(x) * 16'(y), sum);
                meta_q <= meta;
            end
        end
    end else begin : g_two
        localparam int unsigned LOW = WIDE / 2;
        logic [WIDE+LOW-1:0]      low_q;
        logic [2*WIDE-LOW-1:0]    high_q;
        logic [7:0]               sum_q;
        logic [12:0]              meta1_q;
        always_ff @(posedge clk_i) begin
            if (en_i[0]) begin
                low_q <= (WIDE+LOW)'(x) * (WIDE+LOW)'(y[LOW-1:0]);
                high_q <= (2*WIDE-LOW)'(x) * (2*WIDE-LOW)'(y[WIDE-1:LOW]);
                if (!EXACT) sum_q <= sum;
                meta1_q <= meta;
            end
            if (en_i[1]) begin
                p_q <= significand(16'(low_q) + (16'(high_q) << LOW), sum_q);
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
