// A scratchpad row of 16 float32 to 16 bf16 codes, nearest even, NaN to 7FC0; and the largest biased exponent
// among those that are numbers: zeros and subnormals count as 0, infinities and NaN do not count. Combinational.
module pnm_bf16 (
    input  logic [511:0] row_i,
    output logic [255:0] codes_o,
    output logic [7:0]   top_o
);
  always_comb begin
    codes_o = '0;
    for (int unsigned l = 0; l < 16; l++) begin
      if (row_i[32*l+:31] > 31'h7F80_0000) codes_o[16*l+:16] = 16'h7FC0;
      else
        codes_o[16*l+:16] = row_i[32*l+16+:16] +
            {15'd0, row_i[32*l+15] && (row_i[32*l+16] || row_i[32*l+:15] != '0)};
    end
  end
  always_comb begin
    top_o = '0;
    for (int unsigned l = 0; l < 16; l++)
      if (codes_o[16*l+7+:8] != 8'hFF && codes_o[16*l+7+:8] > top_o) top_o = codes_o[16*l+7+:8];
  end
endmodule
