// Rounds an exact magnitude to a format given by mr_fp_consts: to nearest, ties to even, once,
// subnormals kept. Combinational; exact for every input.
//
// p_i is the magnitude with its highest set bit at Width-1 or Width-2 (or zero, which gives +0);
// exp_i is the exponent of bit Width-1 minus the format's emin. A value that underflows to zero keeps
// its sign. Flags: over, the rounded value is beyond the largest finite one; under, it is inexact and
// tiny after rounding (rounded with an unbounded exponent it is below the smallest normal number);
// inexact, the code differs from the value.
module mr_fp_round #(
    parameter int unsigned Width = 55
) (
    input  logic        [Width-1:0] p_i,
    input  logic signed [11:0]      exp_i,
    input  logic                    sign_i,
    input  logic        [4:0]       man_i,
    input  logic        [30:0]      max_i,
    input  logic        [30:0]      over_i,
    input  logic        [31:0]      sign_mask_i,
    input  logic                    int_i,
    output logic        [31:0]      code_o,
    output logic                    over_o,
    output logic                    under_o,
    output logic                    inexact_o
);
    localparam int unsigned ShMax = 63;
    localparam logic [12:0] Base  = 13'(Width - 2);

    logic               top, below, zero, sticky, up, sign, over, carry;
    logic signed [12:0] ee, sh_full;
    logic        [5:0]  sh;
    logic [Width-1:0]   half, back;
    logic [24:0]        mant;
    logic [31:0]        mag, limit, done;

    assign top   = p_i[Width-1];
    assign zero  = p_i == '0;
    assign ee    = 13'(exp_i) - (top ? 13'sd0 : 13'sd1);
    assign below = ee < 13'sd0;
    // one bit less than the shift that leaves the kept bits, so that half[0] is the rounding bit
    assign sh_full = $signed(Base) - $signed({8'b0, man_i}) - (top ? 13'sd0 : 13'sd1) - (below ? ee : 13'sd0);
    assign sh      = sh_full > $signed(13'(ShMax)) ? 6'(ShMax) : sh_full[5:0];
    assign half    = p_i >> sh;
    assign back    = half << sh;
    assign sticky  = back != p_i;
    assign up      = half[0] && (sticky || half[1]);
    assign mant    = half[25:1] + {24'b0, up};
    // the hidden bit of mant adds the one by which a normal number's exponent field differs from ee
    assign mag     = {7'b0, mant} + (below ? 32'd0 : {24'b0, ee[7:0]} << man_i);
    assign limit   = {1'b0, max_i} + {31'b0, int_i && sign};
    assign over    = !zero && ((!below && ee[12:8] != '0) || mag > limit);
    assign sign    = sign_i && !zero;
    assign done    = zero ? 32'd0 : over ? {1'b0, over_i} + {31'b0, int_i && sign} : mag;
    assign code_o  = !sign ? done : int_i ? {24'b0, 8'(32'd0 - done)} : done | sign_mask_i;

    // Tiny: below the smallest normal, unless rounding to full precision (one bit more than a subnormal
    // at ee = -1 has) would reach it, which takes its man+2 leading bits all set.
    logic [24:0] quarter;
    assign quarter   = 25'(p_i >> (sh - 6'd1));
    assign carry     = ee == -13'sd1 && quarter == (25'd4 << man_i) - 25'd1;
    assign over_o    = over;
    assign inexact_o = !zero && (over || sticky || half[0]);
    assign under_o   = inexact_o && below && !carry && !int_i;
endmodule
