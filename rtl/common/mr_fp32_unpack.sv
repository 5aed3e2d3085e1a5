// Takes a float32 apart: value = (-1)^sign * sig * 2^exp with bit 23 of sig set, for subnormals too.
//
// Combinational. sig is 0 for a zero; for an infinity or a NaN sig and exp mean nothing.
module mr_fp32_unpack (
    input  logic        [31:0] value_i,
    output logic               sign_o,
    output logic signed [9:0]  exp_o,   // exponent of the lowest bit of sig, -172..104
    output logic        [23:0] sig_o,
    output logic               inf_o,
    output logic               nan_o
);
    logic [7:0]  field;
    logic [22:0] frac;
    logic [23:0] s16, s8, s4, s2, s1;
    logic        z16, z8, z4, z2, z1;

    assign sign_o = value_i[31];
    assign field = value_i[30:23];
    assign frac = value_i[22:0];
    assign inf_o = field == 8'hFF && frac == '0;
    assign nan_o = field == 8'hFF && frac != '0;

    // left shift that brings the highest set bit to bit 23, in five conditional steps
    assign s16 = {field != 8'h00, frac};
    assign z16 = s16[23:8] == '0;
    assign s8 = z16 ? {s16[7:0], 16'b0} : s16;
    assign z8 = s8[23:16] == '0;
    assign s4 = z8 ? {s8[15:0], 8'b0} : s8;
    assign z4 = s4[23:20] == '0;
    assign s2 = z4 ? {s4[19:0], 4'b0} : s4;
    assign z2 = s2[23:22] == '0;
    assign s1 = z2 ? {s2[21:0], 2'b0} : s2;
    assign z1 = !s1[23];
    assign sig_o = z1 ? {s1[22:0], 1'b0} : s1;
    assign exp_o = $signed({2'b0, field == 8'h00 ? 8'd1 : field}) - 10'sd150 - $signed({5'b0, z16, z8, z4, z2, z1});
endmodule
