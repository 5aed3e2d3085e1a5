// The vectors of the merge engine: 32 values of 16 bits or 16 of 32 bits a beat, and what every slot has
// gathered of them as float32 (or int32).
//
// en_i[k], fin_i[k]: a vector beat is in stage k, and it is one of its slot's last contribution; beatK_i is
// the beat of stage K. data15_i has its bytes in stage 15. weight15_i and factor20_i: the banks of
// nic_merge_weights, in stages 15 and 20. code24_o: the rounded values in stage 24, right aligned in 32 bits
// each. One beat a cycle.
module nic_merge_vec (
    input  logic                 clk_i,      // need not run when no vector beat is in stages 13..23
    input  logic [21:13]         en_i,
    input  logic [23:18]         fin_i,
    /* verilator lint_off UNUSEDSIGNAL */ // a stage needs only some fields
    input  nic_merge_pkg::beat_t beat13_i,
    input  nic_merge_pkg::beat_t beat14_i,
    input  nic_merge_pkg::beat_t beat15_i,
    input  nic_merge_pkg::beat_t beat18_i,
    input  nic_merge_pkg::beat_t beat19_i,
    input  nic_merge_pkg::beat_t beat20_i,
    input  nic_merge_pkg::beat_t beat21_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [2:0]           dtype23_i,
    input  logic [511:0]         data15_i,
    input  logic [1215:0]        weight15_i,
    input  logic [1215:0]        factor20_i,
    output logic [1023:0]        code24_o
);
  localparam int unsigned Words = nic_pkg::SLOTS * nic_pkg::BUF_BEATS;

  /* verilator lint_off UNUSEDSIGNAL */ // the address needs two of the beat's fields
  function automatic logic [13:0] address(input logic [5:0] slot, input logic [7:0] index);
    address = {1'b0, slot, 7'b0} + {4'b0, slot, 4'b0} + {6'b0, index}; // 144 beats a slot
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  function automatic logic wide(input logic [2:0] dtype);
    wide = dtype == nic_merge_pkg::DT_FP32 || dtype == nic_merge_pkg::DT_INT32;
  endfunction

  function automatic logic [31:0] from_fp16(input logic [15:0] h);
    logic [9:0] f;
    logic [7:0] e;
    f = h[9:0];
    e = {3'b0, h[14:10]} + 8'd112;
    if (h[14:10] == 5'd31) e = 8'd255;
    else if (h[14:10] == 5'd0 && f == '0) e = 8'd0;
    else if (h[14:10] == 5'd0) begin // normal as float32: highest set bit out at the top
      e = 8'd113;
      if (f[9:2] == '0) begin f = f << 8; e = e - 8'd8; end
      if (f[9:6] == '0) begin f = f << 4; e = e - 8'd4; end
      if (f[9:8] == '0) begin f = f << 2; e = e - 8'd2; end
      if (!f[9]) begin f = f << 1; e = e - 8'd1; end
      f = f << 1;
      e = e - 8'd1;
    end
    from_fp16 = {h[15], e, f, 13'b0};
  endfunction

  // ---- weights and factors of each value ----
  logic [159:0]  bank15, bank20;
  logic [1215:0] weight16_q, factor21_q;
  nic_merge_select u_select_weight (
      .clk_i, .en_i(en_i[14:13]), .begins0_i(beat13_i.begins), .begins1_i(beat14_i.begins),
      .pos1_i(beat14_i.pos[4:0]), .bank_o(bank15)
  );
  nic_merge_select u_select_factor (
      .clk_i, .en_i(fin_i[19:18]), .begins0_i(beat18_i.begins), .begins1_i(beat19_i.begins),
      .pos1_i(beat19_i.pos[4:0]), .bank_o(bank20)
  );
  always_ff @(posedge clk_i) begin
    if (en_i[15] && !beat15_i.reduce) begin
      for (int unsigned i = 0; i < 32; i++)
        weight16_q[38*i+:38] <= weight15_i[38*32'(bank15[5*i+:5])+:38];
    end
    if (fin_i[20]) begin
      for (int unsigned i = 0; i < 32; i++)
        factor21_q[38*i+:38] <= factor20_i[38*32'(bank20[5*i+:5])+:38];
    end
  end

  // ---- the values, and what was gathered ----
  logic [1023:0] acc_mem[0:Words-1];
  logic [1023:0] old16_q, new16_q, acc21;
  always_ff @(posedge clk_i) begin : p_values
    logic [15:0] h;
    logic [13:0] at;
    if (en_i[15]) begin
      old16_q <= acc_mem[address(beat15_i.slot, beat15_i.index)];
      if (wide(beat15_i.dtype)) begin
        for (int unsigned i = 0; i < 16; i++)
          new16_q[32*i+:32] <= {data15_i[32*i+:8], data15_i[32*i+8+:8], data15_i[32*i+16+:8],
                                data15_i[32*i+24+:8]};
      end else begin
        for (int unsigned i = 0; i < 32; i++) begin
          h = {data15_i[16*i+:8], data15_i[16*i+8+:8]};
          new16_q[32*i+:32] <= beat15_i.dtype == nic_merge_pkg::DT_FP16 ? from_fp16(h) : {h, 16'b0};
        end
      end
    end
    if (en_i[21]) begin // no call on the left of <=, where Debian 13's Verilator gives up
      at = address(beat21_i.slot, beat21_i.index);
      acc_mem[at] <= acc21;
    end
  end

  // ---- the lanes; the upper half rests for values of 32 bits ----
  logic [23:16] narrow_q;
  logic [20:16] upper;
  logic [23:21] upper_fin;
  // control of stages 16 and 21 in registers of this clock, so that what hangs on it rests with it
  logic         first16_q, reduce16_q, integer16_q, reduce21_q, integer21_q;
  logic [1:0]   rop16_q;
  always_ff @(posedge clk_i) begin
    narrow_q <= {narrow_q[22:16], !wide(beat15_i.dtype)};
    {first16_q, reduce16_q, rop16_q} <= {beat15_i.first, beat15_i.reduce, beat15_i.rop};
    integer16_q <= beat15_i.dtype == nic_merge_pkg::DT_INT32;
    reduce21_q  <= beat20_i.reduce;
    integer21_q <= beat20_i.dtype == nic_merge_pkg::DT_INT32;
  end
  assign upper = en_i[20:16] & narrow_q[20:16];
  assign upper_fin = fin_i[23:21] & narrow_q[23:21];

  for (genvar i = 0; i < 32; i++) begin : g_lane
    nic_merge_lane u_lane (
        .clk_i, .en_i(i < 16 ? en_i[20:16] : upper), .fin_i(i < 16 ? fin_i[23:21] : upper_fin),
        .old_i(old16_q[32*i+:32]), .new_i(new16_q[32*i+:32]), .first_i(first16_q),
        .reduce_i(reduce16_q), .integer_i(integer16_q), .rop_i(rop16_q),
        .weight_i(weight16_q[38*i+:38]), .value_o(acc21[32*i+:32]), .reduce21_i(reduce21_q),
        .integer21_i(integer21_q), .factor_i(factor21_q[38*i+:38]), .dtype23_i, .code_o(code24_o[32*i+:32])
    );
  end
endmodule
