// float32 times a float32 scale, rounded once to bf16, fp16, e4m3, e5m2, int8 or fp32 (format codes and
// the overflow policy Saturate as in mr_fp_consts). For a plain conversion tie scale_i to 1.0 (3F800000).
//
// Latency 2 enabled cycles (exact product, then rounding), one value a cycle; code_o is right aligned;
// format_i and saturate_i must not change while values are under way.
//   NaN      any NaN operand gives the format's one NaN code (quiet, payload 0: 7FC0, 7E00, 7F, 7E,
//            7FC00000; int8 has none and gives 0) with the sign of value_i if that is the NaN, else of
//            scale_i. Infinity times zero is invalid and gives the positive NaN.
//   infinity stays one where the format has it; with Saturate, in e4m3 and in int8 it overflows.
//   zero     is +0 whatever the signs; a value that underflows to zero keeps its sign.
// flags_o {NV, OF, UF, NX}: NV signalling NaN, infinity times zero, or NaN to int8; OF finite value or
// infinity beyond the largest finite code (with NX); UF inexact and tiny after rounding; NX inexact.
module mr_fp32_to (
    input  logic        clk_i,
    input  logic        en_i,
    input  logic [31:0] value_i,
    input  logic [31:0] scale_i,
    input  logic [2:0]  format_i,
    input  logic        saturate_i,
    output logic [31:0] code_o,
    output logic [3:0]  flags_o
);
    logic               v_sign, v_inf, v_nan, s_sign, s_inf, s_nan;
    logic signed [9:0]  v_exp, s_exp;
    logic        [23:0] v_sig, s_sig;
    logic        [47:0] prod_q;
    logic signed [11:0] exp_q;
    logic               sign_q, nan_q, inf_q, invalid_q;

    logic        [4:0]  man;
    logic signed [7:0]  emin;
    logic        [30:0] max, over, nan_code;
    logic        [31:0] sign_mask, rounded, inf_code;
    logic               int_fmt, r_over, r_under, r_inexact, inf_over, invalid_d;

    mr_fp32_unpack u_value (
        .value_i, .sign_o(v_sign), .exp_o(v_exp), .sig_o(v_sig), .inf_o(v_inf), .nan_o(v_nan)
    );
    mr_fp32_unpack u_scale (
        .value_i(scale_i), .sign_o(s_sign), .exp_o(s_exp), .sig_o(s_sig), .inf_o(s_inf), .nan_o(s_nan)
    );
    mr_fp_consts u_consts (
        .format_i, .saturate_i, .man_o(man), .emin_o(emin), .max_o(max), .over_o(over),
        .nan_o(nan_code), .sign_mask_o(sign_mask), .int_o(int_fmt)
    );

    assign invalid_d = (v_inf && s_sig == '0) || (s_inf && v_sig == '0);

    always_ff @(posedge clk_i) begin
        if (en_i) begin
            prod_q    <= {24'b0, v_sig} * {24'b0, s_sig};
            exp_q     <= 12'(v_exp) + 12'(s_exp) + 12'sd47 - 12'(emin);
            nan_q     <= v_nan || s_nan || invalid_d;
            inf_q     <= v_inf || s_inf;
            sign_q    <= v_nan ? v_sign : s_nan ? s_sign : !invalid_d && (v_sign ^ s_sign);
            invalid_q <= (v_nan && !value_i[22]) || (s_nan && !scale_i[22]) || (invalid_d && !v_nan && !s_nan);
        end
    end

    mr_fp_round #(.Width(48)) u_round (
        .p_i(prod_q), .exp_i(exp_q), .sign_i(sign_q), .man_i(man), .max_i(max), .over_i(over),
        .sign_mask_i(sign_mask), .int_i(int_fmt), .code_o(rounded), .over_o(r_over),
        .under_o(r_under), .inexact_o(r_inexact)
    );

    // e4m3 has no infinity: its over code is the NaN one
    assign inf_over = saturate_i || int_fmt || over == nan_code;
    assign inf_code = !int_fmt ? {1'b0, over} | (sign_q ? sign_mask : '0) : sign_q ? 32'h80 : {1'b0, over};

    always_ff @(posedge clk_i) begin
        if (en_i) begin
            if (nan_q) begin
                code_o  <= {1'b0, nan_code} | (sign_q ? sign_mask : '0);
                flags_o <= {invalid_q || int_fmt, 3'b000};
            end else if (inf_q) begin
                code_o  <= inf_code;
                flags_o <= {1'b0, inf_over, 1'b0, inf_over};
            end else begin
                code_o  <= rounded;
                flags_o <= {1'b0, r_over, r_under, r_inexact};
            end
        end
    end
endmodule
