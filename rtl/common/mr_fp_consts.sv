// What an output format is, as the numbers mr_fp_round works from; one instance serves many lanes.
//
// Format codes: 0 bf16, 1 fp16, 2 fp8 e4m3 (fn: no infinity, NaN 0x7F), 3 fp8 e5m2, 4 int8, 5 fp32;
// 6 and 7 behave as 0. Saturate names the overflow policy: 0 gives infinity (e4m3: NaN), 1 the
// largest finite value; int8 always saturates. Combinational.
module mr_fp_consts (
    input  logic        [2:0]  format_i,
    input  logic               saturate_i,
    output logic        [4:0]  man_o,       // fraction bits
    output logic signed [7:0]  emin_o,      // exponent of the smallest normal number
    output logic        [30:0] max_o,       // code of the largest finite value, without sign
    output logic        [30:0] over_o,      // code given on overflow
    output logic        [30:0] nan_o,       // the one NaN code: quiet bit set, rest of the payload 0
    output logic        [31:0] sign_mask_o, // the sign bit
    output logic               int_o        // two's complement instead of sign and magnitude
);
    always_comb begin
        int_o = 1'b0;
        case (format_i)
            3'd1: begin
                man_o = 5'd10; emin_o = -8'sd14; max_o = 31'h7BFF; nan_o = 31'h7E00;
                sign_mask_o = 32'h8000;
            end
            3'd2: begin
                man_o = 5'd3; emin_o = -8'sd6; max_o = 31'h7E; nan_o = 31'h7F; sign_mask_o = 32'h80;
            end
            3'd3: begin
                man_o = 5'd2; emin_o = -8'sd14; max_o = 31'h7B; nan_o = 31'h7E; sign_mask_o = 32'h80;
            end
            3'd4: begin
                // all of int8 lies in the "subnormal" range of this format, whose unit is 1
                man_o = 5'd8; emin_o = 8'sd8; max_o = 31'd127; nan_o = 31'd0; sign_mask_o = 32'h0;
                int_o = 1'b1;
            end
            3'd5: begin
                man_o = 5'd23; emin_o = -8'sd126; max_o = 31'h7F7F_FFFF; nan_o = 31'h7FC0_0000;
                sign_mask_o = 32'h8000_0000;
            end
            default: begin
                man_o = 5'd7; emin_o = -8'sd126; max_o = 31'h7F7F; nan_o = 31'h7FC0;
                sign_mask_o = 32'h8000;
            end
        endcase
        over_o = max_o + ((saturate_i || int_o) ? 31'd0 : 31'd1);
    end
endmodule
