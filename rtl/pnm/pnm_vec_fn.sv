// 2^x and log2 of a float32, as models/golden/pnm_vec.c: a table of the function's fraction part, exact
// outside of it, rounded once.
//
// Six stages, each under its own enable: y_o six enabled cycles after x_i, one value a cycle. log2_i is
// constant while values are under way. All logic stands inside the enabled registers.
module pnm_vec_fn (
    input  logic        clk_i,
    input  logic [5:0]  en_i,
    input  logic        log2_i,
    input  logic [31:0] x_i,
    output logic [31:0] y_o
);
  localparam logic [1:0] Normal = 2'd0, Zero = 2'd1, Inf = 2'd2, Nan = 2'd3;

  logic        [1:0]  class_q [5];
  logic signed [9:0]  exp_q [5];   // 2^x: minus the result's exponent; log2: the argument's exponent
  logic               minus_q [5]; // log2 of zero
  logic        [23:0] frac_q;

  always_ff @(posedge clk_i) begin : p_prepare
    logic        [7:0]  e;
    logic        [23:0] sig;
    logic        [39:0] fixed;    // |x| * 2^24, one bit of fraction below
    logic signed [33:0] minus;    // -x, rounded so that x is rounded half up
    logic signed [9:0]  k;
    logic               lost;
    if (en_i[0]) begin
      e = x_i[30:23];
      sig = {e != 8'd0, x_i[22:0]};
      minus_q[0] <= log2_i && x_i[30:0] == '0;
      if (log2_i) begin
        k = e == 8'd0 ? -10'sd126 : $signed({2'b0, e}) - 10'sd127;
        if (sig[23:8] == '0) begin sig = sig << 16; k = k - 10'sd16; end
        if (sig[23:16] == '0) begin sig = sig << 8; k = k - 10'sd8; end
        if (sig[23:20] == '0) begin sig = sig << 4; k = k - 10'sd4; end
        if (sig[23:22] == '0) begin sig = sig << 2; k = k - 10'sd2; end
        if (!sig[23]) begin sig = sig << 1; k = k - 10'sd1; end
        exp_q[0] <= k;
        frac_q   <= {sig[22:0], 1'b0};
        if (x_i[30:0] > 31'h7F80_0000 || (x_i[31] && x_i[30:0] != '0)) class_q[0] <= Nan;
        else if (x_i[30:0] == '0 || e == 8'hFF) class_q[0] <= Inf;
        else class_q[0] <= Normal;
      end else begin
        // sig * 2^(e - 150 + 24) with a fraction bit below: e = 126 is no shift but that bit
        lost = 1'b0;
        if (e >= 8'd126) fixed = {15'b0, sig, 1'b0} << (e[3:0] - 4'd14);
        else if (e >= 8'd101) begin
          fixed = {15'b0, sig, 1'b0} >> (8'd126 - e);
          lost = fixed << (8'd126 - e) != {15'b0, sig, 1'b0};
        end else fixed = '0;
        if (x_i[31]) minus = $signed(fixed[34:1]) + $signed({33'b0, fixed[0] && lost});
        else minus = -($signed(fixed[34:1]) + $signed({33'b0, fixed[0]}));
        exp_q[0] <= minus[33:24];
        frac_q   <= minus[23:0];
        if (x_i[30:0] > 31'h7F80_0000) class_q[0] <= Nan;
        else if (!x_i[31] && e >= 8'd134) class_q[0] <= Inf;
        else if (x_i[31] && x_i[30:0] > 31'h4316_0000) class_q[0] <= Zero;
        else class_q[0] <= Normal;
      end
    end
  end

  // what travels beside the table
  always_ff @(posedge clk_i) begin
    for (int unsigned s = 1; s < 5; s++)
      if (en_i[s]) begin
        class_q[s] <= class_q[s-1];
        exp_q[s]   <= exp_q[s-1];
        minus_q[s] <= minus_q[s-1];
      end
  end

  logic        [32:0] e_c0, l_c0;
  logic signed [26:0] e_c1, l_c1;
  logic signed [19:0] e_c2, l_c2;
  logic        [16:0] u_q;
  logic        [26:0] table_value;
  mr_fn_rom_exp2 u_exp2 (
      .clk_i, .en_i(en_i[1] && !log2_i), .segment_i(frac_q[23:17]), .c0_o(e_c0), .c1_o(e_c1), .c2_o(e_c2));
  mr_fn_rom_log2 u_log2 (
      .clk_i, .en_i(en_i[1] && log2_i), .segment_i(frac_q[23:17]), .c0_o(l_c0), .c1_o(l_c1), .c2_o(l_c2));
  always_ff @(posedge clk_i) if (en_i[1]) u_q <= frac_q[16:0];
  mr_fn_poly u_poly (
      .clk_i,
      .en_i(en_i[4:2]),
      .c0_i(log2_i ? l_c0 : e_c0),
      .c1_i(log2_i ? l_c1 : e_c1),
      .c2_i(log2_i ? l_c2 : e_c2),
      .u_i(u_q),
      .y_o(table_value)
  );

  logic [31:0] y_q;
  assign y_o = y_q;
  always_ff @(posedge clk_i) begin : p_round
    logic        [26:0] n, kept;
    logic signed [10:0] e;
    logic        [4:0]  by;
    logic               sticky, sign;
    logic signed [36:0] value;
    logic        [35:0] mag;
    logic        [31:0] y;
    if (en_i[5]) begin
      sign = 1'b0;
      sticky = 1'b0;
      if (log2_i) begin
        value = (37'(exp_q[4]) <<< 26) + $signed({10'b0, table_value});
        sign = value < 37'sd0;
        mag = sign ? 36'(-value) : 36'(value);
        e = 11'sd136; // of bit 35
        if (mag[35:4] == '0) begin mag = mag << 32; e = e - 11'sd32; end
        if (mag[35:20] == '0) begin mag = mag << 16; e = e - 11'sd16; end
        if (mag[35:28] == '0) begin mag = mag << 8; e = e - 11'sd8; end
        if (mag[35:32] == '0) begin mag = mag << 4; e = e - 11'sd4; end
        if (mag[35:34] == '0) begin mag = mag << 2; e = e - 11'sd2; end
        if (!mag[35]) begin mag = mag << 1; e = e - 11'sd1; end
        n = {mag[35:10], mag[9] | (mag[8:0] != '0)};
        if (value == 37'sd0) e = 11'sd0;
      end else begin
        n = table_value[26] ? table_value : table_value << 1;
        e = (table_value[26] ? 11'sd127 : 11'sd126) - 11'(exp_q[4]);
        if (e < 11'sd1) begin // below 2^-126
          by = 5'(11'sd1 - e);
          kept = n >> by;
          sticky = kept << by != n;
          n = kept;
        end
      end
      y = {8'd0, n[26:3]} + {31'd0, n[2] && (n[1:0] != 2'd0 || sticky || n[3])};
      if (e > 11'sd1) y = y + {e[8:0] - 9'd1, 23'd0};
      if (log2_i && e == 11'sd0) y = '0;
      unique case (class_q[4])
        Normal: y_q <= {sign, y[30:0]};
        Zero: y_q <= '0;
        Inf: y_q <= {minus_q[4], 31'h7F80_0000};
        default: y_q <= 32'h7FC0_0000;
      endcase
    end
  end
endmodule
