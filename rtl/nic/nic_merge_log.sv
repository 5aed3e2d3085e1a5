// k + log2 with 26 fraction bits to float32, rounded to nearest, ties to even: the log of a d.
//
// Two stages, each under its own enable; y_o two enabled cycles after its operands.
module nic_merge_log (
    input  logic               clk_i,
    input  logic        [1:0]  en_i,
    input  logic signed [8:0]  k_i,
    input  logic        [26:0] log_i,
    output logic        [31:0] y_o
);
  logic        sign_q;
  logic [33:0] mag_q;
  logic [31:0] y_q;
  assign y_o = y_q;

  always_ff @(posedge clk_i) begin : p_log
    logic signed [34:0] sum;
    logic [33:0] mag;
    logic [7:0]  field;
    if (en_i[0]) begin
      sum = $signed({k_i, 26'b0}) + $signed({8'b0, log_i});
      sign_q <= sum[34];
      mag_q  <= sum[34] ? 34'(-sum) : sum[33:0];
    end
    if (en_i[1]) begin
      mag = mag_q;
      field = 8'd134;
      if (mag[33:18] == '0) begin mag = mag << 16; field = field - 8'd16; end
      if (mag[33:26] == '0) begin mag = mag << 8; field = field - 8'd8; end
      if (mag[33:30] == '0) begin mag = mag << 4; field = field - 8'd4; end
      if (mag[33:32] == '0) begin mag = mag << 2; field = field - 8'd2; end
      if (!mag[33]) begin mag = mag << 1; field = field - 8'd1; end
      // the hidden bit adds the one by which the exponent field differs
      if (mag_q == '0) y_q <= 32'd0;
      else
        y_q <= {sign_q, 31'({7'b0, mag[33:10]} + {field - 8'd1, 23'b0}
                            + {30'b0, mag[9] && (mag[8:0] != '0 || mag[10])})};
    end
  end
endmodule
