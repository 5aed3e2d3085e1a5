// Float conversion cells side by side, and the bare shift operators they are built from.
module float_tb (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               en_i,
    input  logic        [2:0]  format_i,
    input  logic               saturate_i,
    input  logic        [31:0] value_i,
    input  logic        [31:0] scale_i,
    input  logic signed [30:0] w_i,
    input  logic signed [9:0]  frac_i,
    output logic        [31:0] f_code_o,
    output logic        [3:0]  f_flags_o,
    output logic        [31:0] x_code_o,
    output logic               x_bad_o,
    // shifters
    input  logic        [99:0] a_i,
    input  logic        [39:0] by_i,
    output logic        [99:0] r100_o,
    output logic        [99:0] s100_o,
    output logic        [99:0] l100_o,
    output logic        [54:0] r55_o,
    output logic        [54:0] s55_o,
    output logic        [23:0] s24_o,
    output logic        [63:0] l64_o
);
    logic        [23:0] sig;
    logic               sign, is_int;
    logic signed [11:0] exp;
    logic        [4:0]  man;
    logic        [30:0] max, over;
    logic        [31:0] sign_mask;
    logic               unused_rst;
    assign unused_rst = rst_ni;

    mr_fp32_to u_fp32_to (
        .clk_i, .en_i, .value_i, .scale_i, .format_i, .saturate_i, .code_o(f_code_o), .flags_o(f_flags_o)
    );
    mr_fx_scale u_fx_scale (
        .format_i, .saturate_i, .scale_i, .frac_i, .sig_o(sig), .sign_o(sign), .exp_o(exp), .man_o(man),
        .max_o(max), .over_o(over), .sign_mask_o(sign_mask), .int_o(is_int), .bad_o(x_bad_o)
    );
    mr_fx_to_fp u_fx_to_fp (
        .clk_i, .en_i, .w_i, .sig_i(sig), .sign_i(sign), .exp_i(exp), .man_i(man), .max_i(max),
        .over_i(over), .sign_mask_i(sign_mask), .int_i(is_int), .code_o(x_code_o)
    );

    assign r100_o = a_i >> by_i;
    assign s100_o = $unsigned($signed(a_i) >>> by_i);
    assign l100_o = a_i << by_i;
    assign r55_o  = a_i[54:0] >> by_i;
    assign s55_o  = $unsigned($signed(a_i[54:0]) >>> by_i);
    assign s24_o  = $unsigned($signed(a_i[23:0]) >>> by_i);
    assign l64_o  = a_i[63:0] << by_i;
endmodule
