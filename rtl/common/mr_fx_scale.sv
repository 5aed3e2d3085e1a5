// What all lanes of mr_fx_to_fp share: format constants, row scale and exponent of one row.
//
// The value to convert is w * 2^frac * scale with scale a float32; frac_i is the (signed) exponent of
// w's lowest bit, e - 24 in the rotor generator. bad_o: the scale is infinite or NaN, for which the
// lanes' result means nothing and the caller reports an error. Combinational; register it where a row
// changes, not per word.
module mr_fx_scale (
    input  logic        [2:0]  format_i,
    input  logic               saturate_i,
    input  logic        [31:0] scale_i,
    input  logic signed [9:0]  frac_i,
    output logic        [23:0] sig_o,
    output logic               sign_o,
    output logic signed [11:0] exp_o,
    output logic        [4:0]  man_o,
    output logic        [30:0] max_o,
    output logic        [30:0] over_o,
    output logic        [31:0] sign_mask_o,
    output logic               int_o,
    output logic               bad_o
);
    logic signed [9:0] scale_exp;
    logic signed [7:0] emin;
    logic              inf, nan;
    logic [30:0]       unused_nan;

    mr_fp_consts u_consts (
        .format_i, .saturate_i, .man_o, .emin_o(emin), .max_o, .over_o, .nan_o(unused_nan),
        .sign_mask_o, .int_o
    );
    mr_fp32_unpack u_unpack (
        .value_i(scale_i), .sign_o, .exp_o(scale_exp), .sig_o, .inf_o(inf), .nan_o(nan)
    );

    assign bad_o = inf || nan;
    // exponent of bit 54 of the 55-bit product of w (highest bit moved to bit 30) and sig, less emin
    assign exp_o = 12'(scale_exp) + 12'(frac_i) + 12'sd54 - 12'(emin);
endmodule
