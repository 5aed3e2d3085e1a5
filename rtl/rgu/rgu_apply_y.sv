// Accumulators to output vectors: inverse transform, row scale, float32, and out in rows.
//
// Takes one finished vector after the other, in the order of the walk. Reads its matrix in the
// cycles that the accumulation leaves (phase_i high), transforms each group of equal p over a, two
// values every other cycle, scales and rounds one value a cycle, and gathers a chunk's rows in one
// of two buffers, which a second process writes out. 2^n + 2^(n/2) + 20 cycles a vector and chunk
// row.
//   avail_i: a vector waits; taken_o: pulse, its slot has been read to the end. The magnitude keeps
//   29 bits, rounded half up, before the product with the scale and the one rounding.
module rgu_apply_y (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               start_i,
    input  logic               n10_i,
    input  logic               row_scale_i,
    input  logic               saturate_i,
    input  logic [       31:0] scale_i,
    input  logic [       15:0] chunks_out_i,
    input  logic [       31:0] batch_i,
    input  logic [       31:0] d_out_i,
    input  logic [       63:0] dst_i,
    input  logic [       31:0] dst_stride_i,
    output logic               idle_o,     // nothing left to do
    output logic               full_o,     // held up by the writer
    // accumulators
    input  logic               phase_i,
    input  logic               avail_i,
    output logic               taken_o,
    output logic [        3:0] slot_o,
    output logic               en_o,
    output logic [        3:0] pair_o,     // rows 2 pair and 2 pair + 1
    output logic [        4:0] col0_o,
    output logic [        4:0] col1_o,
    input  logic signed [55:0] even_i,     // the cycle after en_o
    input  logic signed [55:0] odd_i,
    input  logic signed [10:0] exp_i,      // of slot_o
    input  logic               bad_i,
    // row scales
    output logic               rs_en_o,
    output logic [       10:0] rs_addr_o,
    input  logic [       31:0] rs_data_i,
    output logic               rs_pop_o,
    // writes
    output logic               cmd_valid_o,
    input  logic               cmd_ready_i,
    output logic [       63:0] cmd_addr_o,
    output logic [       12:0] cmd_len_o,
    output logic               wr_valid_o,
    input  logic               wr_ready_i,
    output logic [      511:0] wr_data_o,
    output logic [       10:0] items_o     // floats handed over, in the cycle of the command
);
  // ---- one run a vector: pairs of rows 2j, 2j + 1 of group p
  // ---------------------------------------
  logic more, v_last, run_q, go, reading, finished;
  logic [11:0] cnt_q, cnt1_q, total, stop;
  logic v1_q, fill_q, bad_q;
  logic signed [10:0] exp_q;
  logic [1:0] full_q;        // result buffers waiting for the writer
  logic half_q, visit_end_q; // row scale buffer, last vector of the visit
  logic [4:0] p, j2;
  logic [15:0] unused_o, unused_i;
  logic [4:0] unused_t;
  logic [4:0] unused_flags;

  rgu_apply_walk u_walk (
      .clk_i, .rst_ni, .start_i, .step_i(go), .n10_i, .chunks_out_i, .batch_i, .chunks_in_i(16'd1),
      .terms_i(6'd1), .more_o(more), .o_o(unused_o), .i_o(unused_i), .t_o(unused_t), .slot_o,
      .first_o(unused_flags[0]), .last_o(unused_flags[1]), .v_first_o(unused_flags[2]),
      .v_last_o(v_last),
      .t_last_o(unused_flags[3]), .g_last_o(unused_flags[4])
  );

  assign total = n10_i ? 12'd512 : 12'd128;
  assign stop = n10_i ? 12'd512 + 12'd15 : 12'd128 + 12'd7;
  // the walk stands on the vector in work until its reads are done
  assign go = run_q && phase_i && cnt_q == total;
  assign reading = run_q && phase_i && cnt_q < total;
  assign taken_o = go;
  assign en_o = reading;
  assign p = n10_i ? cnt_q[8:4] : {1'b0, cnt_q[6:3]};
  assign j2 = n10_i ? {cnt_q[3:0], 1'b0} : {1'b0, cnt_q[2:0], 1'b0};
  assign pair_o = j2[4:1];
  assign col0_o = j2 ^ p;
  assign col1_o = (j2 | 5'd1) ^ p;
  assign full_o = avail_i && !run_q && full_q[fill_q];

  logic begin_run;
  assign begin_run = !run_q && more && avail_i && !full_q[fill_q] && phase_i;

  always_ff @(posedge clk_i) begin
    if (begin_run) cnt_q <= 12'd0;
    else if (phase_i) cnt_q <= cnt_q + 12'd1;
    if (begin_run) begin
      exp_q <= exp_i - 11'sd31 - (n10_i ? 11'sd5 : 11'sd4);
      bad_q <= bad_i;
      visit_end_q <= v_last;
    end
    cnt1_q <= cnt_q;
    v1_q <= rst_ni && !start_i && run_q && phase_i && cnt_q < stop;
    if (!rst_ni || start_i) run_q <= 1'b0;
    else if (begin_run) run_q <= 1'b1;
    else if (finished) run_q <= 1'b0;
  end

  // ---- transform
  // -----------------------------------------------------------------------------------
  logic t_v, unused_v;
  logic [11:0] t_cnt, unused_cnt;
  logic signed [60:0] t0, t1;

  rgu_apply_wht #(.Width(61), .LogMax(4)) u_t0 (
      .clk_i, .rst_ni, .big_i(n10_i), .valid_i(v1_q), .cnt_i(cnt1_q),
      .data_i(61'(even_i) + 61'(odd_i)),
      .valid_o(t_v), .cnt_o(t_cnt), .data_o(t0)
  );
  rgu_apply_wht #(.Width(61), .LogMax(4)) u_t1 (
      .clk_i, .rst_ni, .big_i(n10_i), .valid_i(v1_q), .cnt_i(cnt1_q),
      .data_i(61'(even_i) - 61'(odd_i)),
      .valid_o(unused_v), .cnt_o(unused_cnt), .data_o(t1)
  );

  // ---- one value a cycle: the pair's first, then its second
  // ------------------------------------------
  logic second_q, a_v, a_last, hold;
  logic [9:0] k;
  logic signed [60:0] value;

  assign hold = t_v && t_cnt < total;  // the first of a pair; the transform rests in the next cycle
  assign k = rgu_spin_pkg::blade(n10_i ? {t_cnt[8:0], second_q}
                                       : {1'b0, t_cnt[6:3], 1'b0, t_cnt[2:0], second_q});
  assign a_v = hold || second_q;
  assign a_last = second_q && t_cnt == total - 12'd1;
  assign value = second_q ? t1 : t0;
  assign rs_en_o = a_v && row_scale_i;
  assign rs_addr_o = {half_q, k};
  always_ff @(posedge clk_i) second_q <= rst_ni && !start_i && hold;

  // stage 1: sign and magnitude, highest bit brought to the top
  logic v_q1, v_q2, v_q3, v_q4, v_q5, last_q1, last_q2, last_q3, last_q4, last_q5;
  logic [9:0] k_q1, k_q2, k_q3, k_q4, k_q5;
  logic neg_d, neg_q;
  logic [60:0] mag, n32, n16, n8, n4, n2;
  logic [29:0] n1;
  logic [29:0] norm_q;  // 29 bits and the one below
  logic z32, z16, z8, z4, z2, z1;
  logic [5:0] lz_q;
  assign neg_d = value[60];
  assign mag = neg_d ? 61'd0 - $unsigned(value) : $unsigned(value);
  assign z32 = mag[60:29] == '0;
  assign n32 = z32 ? {mag[28:0], 32'd0} : mag;
  assign z16 = n32[60:45] == '0;
  assign n16 = z16 ? {n32[44:0], 16'd0} : n32;
  assign z8 = n16[60:53] == '0;
  assign n8 = z8 ? {n16[52:0], 8'd0} : n16;
  assign z4 = n8[60:57] == '0;
  assign n4 = z4 ? {n8[56:0], 4'd0} : n8;
  assign z2 = n4[60:59] == '0;
  assign n2 = z2 ? {n4[58:0], 2'd0} : n4;
  assign z1 = !n2[60];
  assign n1 = z1 ? n2[59:30] : n2[60:31];
  logic unused_low;
  assign unused_low = ^n2[29:0];

  // stage 2: 29 bits of it, scale and exponent
  logic [29:0] kept;
  logic signed [30:0] w_q;
  logic signed [9:0] frac;
  logic [31:0] scale;
  logic [23:0] sig, sig_q;
  logic sign, sign_q, unused_bad, is_int;
  logic signed [11:0] fexp, fexp_q;
  logic [4:0] man;
  logic [30:0] max, over;
  logic [31:0] sign_mask, code;
  assign kept = {1'b0, norm_q[29:1]} + {29'd0, norm_q[0]};
  assign frac = 10'(exp_q + 11'sd32 - 11'($signed({1'b0, lz_q})));
  assign scale = row_scale_i ? rs_data_i : scale_i;

  mr_fx_scale u_scale (
      .format_i(3'd5), .saturate_i, .scale_i(scale), .frac_i(frac), .sig_o(sig), .sign_o(sign),
      .exp_o(fexp),
      .man_o(man), .max_o(max), .over_o(over), .sign_mask_o(sign_mask), .int_o(is_int),
      .bad_o(unused_bad)
  );
  // stages 3 to 5
  mr_fx_to_fp u_float (
      .clk_i, .en_i(1'b1), .w_i(w_q), .sig_i(sig_q), .sign_i(sign_q), .exp_i(fexp_q), .man_i(man),
      .max_i(max),
      .over_i(over), .sign_mask_i(sign_mask), .int_i(is_int), .code_o(code)
  );

  always_ff @(posedge clk_i) begin
    neg_q <= neg_d ^ rgu_spin_pkg::eps(k);
    norm_q <= n1;
    lz_q <= {z32, z16, z8, z4, z2, z1};
    w_q <= neg_q ? 31'd0 - {1'b0, kept} : {1'b0, kept};
    sig_q <= sig;
    sign_q <= sign;
    fexp_q <= fexp;
    {k_q1, k_q2, k_q3, k_q4, k_q5} <= {k, k_q1, k_q2, k_q3, k_q4};
    {last_q1, last_q2, last_q3, last_q4, last_q5} <= {a_last, last_q1, last_q2, last_q3, last_q4};
    {v_q1, v_q2, v_q3, v_q4, v_q5} <= {a_v, v_q1, v_q2, v_q3, v_q4} & {5{rst_ni && !start_i}};
  end
  assign finished = v_q5 && last_q5;
  assign rs_pop_o = finished && visit_end_q;

  // ---- result buffers, rows in place
  // -----------------------------------------------------------------
  logic rd_en, read_q;
  logic [5:0] line;
  logic [31:0] word;
  assign word = bad_q ? 32'h7FC0_0000 : code;
  for (genvar w = 0; w < 16; w++) begin : g_word
    rgu_apply_ram #(.Width(32), .Depth(128)) u_word (
        .clk_i, .we_i(v_q5 && k_q5[3:0] == 4'(w)), .waddr_i({fill_q, k_q5[9:4]}), .wdata_i(word),
        .en_i(rd_en), .raddr_i({read_q, line}), .rdata_o(wr_data_o[w*32+:32])
    );
  end

  // ---- writer
  // ------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {REST, COMMAND, FETCH, GIVE} state_e;
  state_e state_q;
  logic w_more, w_o_last, w_v_last, w_step;
  logic [15:0] w_o, unused_wi;
  logic [4:0] unused_wt;
  logic [3:0] unused_ws;
  logic [3:0] unused_wf;
  logic [63:0] row_q, addr_q;
  logic [5:0] line_q;
  logic [31:0] left;
  logic [10:0] count;
  logic [6:0] lines;
  logic w_last;

  rgu_apply_walk u_writes (
      .clk_i, .rst_ni, .start_i, .step_i(w_step), .n10_i, .chunks_out_i, .batch_i,
      .chunks_in_i(16'd1),
      .terms_i(6'd1), .more_o(w_more), .o_o(w_o), .i_o(unused_wi), .t_o(unused_wt),
      .slot_o(unused_ws),
      .first_o(unused_wf[0]), .last_o(unused_wf[1]), .v_first_o(unused_wf[2]), .v_last_o(w_v_last),
      .t_last_o(unused_wf[3]), .g_last_o(w_o_last)
  );

  assign left = d_out_i - (n10_i ? {6'd0, w_o, 10'd0} : {8'd0, w_o, 8'd0});
  assign count = n10_i ? (left >= 32'd1024 ? 11'd1024 : left[10:0])
                       : (left >= 32'd256 ? 11'd256 : left[10:0]);
  assign lines = 7'((count + 11'd15) >> 4);
  assign w_last = {1'b0, line_q} + 7'd1 == lines;
  assign cmd_valid_o = state_q == COMMAND;
  assign cmd_addr_o = addr_q;
  assign cmd_len_o = {count, 2'b00};
  assign items_o = cmd_valid_o && cmd_ready_i ? count : 11'd0;
  assign wr_valid_o = state_q == GIVE;
  assign rd_en = state_q == FETCH;
  assign line = line_q;
  assign w_step = state_q == GIVE && wr_ready_i && w_last;
  assign idle_o = !w_more;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      addr_q <= dst_i;
      row_q <= dst_i;
    end else if (w_step) begin
      if (w_v_last && w_o_last) begin
        addr_q <= row_q + (n10_i ? 64'd4096 : 64'd1024);
        row_q <= row_q + (n10_i ? 64'd4096 : 64'd1024);
      end else begin
        addr_q <= addr_q + {32'd0, dst_stride_i};
      end
    end
    if (!rst_ni || start_i) begin
      state_q <= REST;
      read_q <= 1'b0;
      fill_q <= 1'b0;
      full_q <= 2'b00;
      half_q <= 1'b0;
    end else begin
      case (state_q)
        REST: if (full_q[read_q]) state_q <= COMMAND;
        COMMAND: if (cmd_ready_i) state_q <= FETCH;
        FETCH: state_q <= GIVE;
        default: if (wr_ready_i) state_q <= w_last ? REST : FETCH;
      endcase
      if (w_step) read_q <= !read_q;
      if (finished) fill_q <= !fill_q;
      if (rs_pop_o) half_q <= !half_q;
      full_q <= (full_q & ~(w_step ? (read_q ? 2'b10 : 2'b01) : 2'b00)) |
                (finished ? (fill_q ? 2'b10 : 2'b01) : 2'b00);
    end
    line_q <= state_q == REST ? 6'd0 : state_q == GIVE && wr_ready_i ? line_q + 6'd1 : line_q;
  end
endmodule
