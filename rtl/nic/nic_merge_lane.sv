// One value of a beat of vectors: o' = o * weight + o, or the operation of a REDUCE, and at the last
// contribution o' / d' rounded to the payload's format.
//
// Stages as in nic_merge_pkg: operands and weight in stage 16, the new value in stage 21 together with the
// factor, the result (right aligned) in stage 24. en_i[k]: a beat of vectors is in stage k; fin_i[k]: and
// it is one of its slot's last contribution. One value a cycle. Rounding is to nearest, ties to even, once
// to float32 and once to the format; zeros keep their sign, NaN becomes the one positive code.
module nic_merge_lane (
    input  logic         clk_i,
    input  logic [20:16] en_i,
    input  logic [23:21] fin_i,
    input  logic [31:0]  old_i,
    input  logic [31:0]  new_i,
    input  logic         first_i,    // of its slot: the new value is taken as it is
    input  logic         reduce_i,
    input  logic         integer_i,
    input  logic [1:0]   rop_i,      // 0 sum, 1 max, 2 min
    input  logic [37:0]  weight_i,   // {newer, pass, shift[8:0], w[26:0]}, of a merge
    output logic [31:0]  value_o,
    input  logic         reduce21_i,
    input  logic         integer21_i,
    input  logic [37:0]  factor_i,   // {class[1:0], shift[8:0], r[26:0]}, of a merge
    input  logic [2:0]   dtype23_i,
    output logic [31:0]  code_o
);
  localparam logic [26:0] One = 27'd1 << 26;

  // ---- 16: what to do; the larger of float32 as integers of the same order ----
  logic               newer, pass, less, greatest;
  logic        [31:0] pick, order_old, order_new;
  logic        [26:0] w;
  logic signed [9:0]  shift;
  always_comb begin
    newer = weight_i[37];
    pass = weight_i[36];
    w = weight_i[26:0];
    shift = $signed({1'b0, weight_i[35:27]});
    order_old = 32'd0;
    order_new = 32'd0;
    less = 1'b0;
    greatest = rop_i == 2'd1;
    pick = newer ? new_i : old_i;
    if (reduce_i) begin
      newer = 1'b0;
      pass = first_i || integer_i || rop_i != 2'd0;
      w = One;
      shift = 10'sd0;
      pick = old_i;
      if (first_i) pick = new_i;
      else if (rop_i == 2'd0) begin
        if (integer_i) pick = old_i + new_i;
      end else begin
        order_old = old_i ^ {1'b0, {31{old_i[31] && !integer_i}}};
        order_new = new_i ^ {1'b0, {31{new_i[31] && !integer_i}}};
        less = $signed(order_old) < $signed(order_new);
        if (less == greatest) pick = new_i;
        if (!integer_i) begin
          if (new_i[30:0] > 31'h7F80_0000) pick = new_i;
          if (old_i[30:0] > 31'h7F80_0000) pick = old_i;
        end
      end
    end
  end

  // ---- 16..20 ----
  logic [31:0] same_q[17:21];
  logic        pass_q[17:21];
  logic [31:0] scaled, added;
  mr_fp32_scale u_scale (
      .clk_i, .en_i(en_i[17:16]), .x_i(newer ? old_i : new_i), .w_i(w), .shift_i(shift), .y_o(scaled)
  );
  mr_fp32_add u_add (.clk_i, .en_i(en_i[20:18]), .a_i(scaled), .b_i(same_q[18]), .sum_o(added));
  assign value_o = pass_q[21] ? same_q[21] : added;

  // ---- 21..23 ----
  logic [31:0] quotient, raw_q[22:23], code_q;
  logic [1:0]  class_q[22:23];
  logic        integer_q[22:23];
  mr_fp32_scale u_divide (
      .clk_i, .en_i(fin_i[22:21]), .x_i(value_o), .w_i(reduce21_i ? One : factor_i[26:0]),
      .shift_i(reduce21_i ? 10'sd0 : 10'($signed(factor_i[35:27]))), .y_o(quotient)
  );
  assign code_o = code_q;

  always_ff @(posedge clk_i) begin : p_lane
    logic [31:0] v;
    logic [4:0]  field;
    logic [4:0]  sh;
    logic [23:0] sig, half;
    logic [15:0] code;
    if (en_i != '0) begin
      if (en_i[16]) {pass_q[17], same_q[17]} <= {pass, pick};
      if (en_i[17]) {pass_q[18], same_q[18]} <= {pass_q[17], same_q[17]};
      if (en_i[18]) {pass_q[19], same_q[19]} <= {pass_q[18], same_q[18]};
      if (en_i[19]) {pass_q[20], same_q[20]} <= {pass_q[19], same_q[19]};
      if (en_i[20]) {pass_q[21], same_q[21]} <= {pass_q[20], same_q[20]};
    end
    if (fin_i != '0) begin
      if (fin_i[21]) begin
        class_q[22]   <= reduce21_i ? nic_merge_pkg::CLASS_NORMAL : factor_i[37:36];
        integer_q[22] <= integer21_i;
        raw_q[22]     <= value_o;
      end
      if (fin_i[22]) {class_q[23], integer_q[23], raw_q[23]} <= {class_q[22], integer_q[22], raw_q[22]};
      if (fin_i[23]) begin
        v = quotient;
        case (class_q[23])
          nic_merge_pkg::CLASS_ZERO: v = v[30:23] == 8'hFF ? 32'h7FC0_0000 : {v[31], 31'b0};
          nic_merge_pkg::CLASS_NAN: v = 32'h7FC0_0000;
          nic_merge_pkg::CLASS_EMPTY: v = 32'd0;
          default: ;
        endcase
        if (integer_q[23]) v = raw_q[23];
        code_q <= v;
        if (dtype23_i != nic_merge_pkg::DT_FP32 && !integer_q[23]) begin
          if (v[30:0] > 31'h7F80_0000) begin
            code_q <= dtype23_i == nic_merge_pkg::DT_FP16 ? 32'h7E00 : 32'h7FC0;
          end else if (dtype23_i == nic_merge_pkg::DT_FP16) begin
            // field - 112 is the exponent field of a normal fp16
            sig = {v[30:23] != 8'd0, v[22:0]};
            field = v[27:23] - 5'd16; // 112 modulo 32
            sh = 5'd12; // one less than the shift, so that half[0] is the rounding bit
            if (v[30:23] <= 8'd112) sh = v[30:23] < 8'd96 ? 5'd31 : 5'(8'd125 - v[30:23]);
            half = sig >> sh;
            code = {4'b0, half[12:1]} + {15'b0, half[0] && (half[1] || half << sh != sig)};
            // the hidden bit adds the one by which the exponent field differs
            if (v[30:23] > 8'd113) code = code + {1'b0, field - 5'd1, 10'b0};
            if (v[30:23] > 8'd142 || code > 16'h7C00) code = 16'h7C00;
            code_q <= {16'd0, v[31], code[14:0]};
          end else begin
            code_q <= {16'd0, v[31:16] + {15'b0, v[15] && (v[14:0] != '0 || v[16])}};
          end
        end
      end
    end
  end
endmodule
