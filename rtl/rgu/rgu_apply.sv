// Apply mode of the rotor generation unit: y = W x for a batch of vectors, W never formed.
//
// Spinor form (docs/rgu-apply.md): for every chunk and term Y += (R X) S with D x D matrices,
// D = 2^(n/2), on 32 multipliers: 2 D^3 / 32 cycles a vector, term and chunk. Order: chunk rows,
// groups of 4096 / 2^n vectors, chunk columns, terms, vectors; the walk of rgu_seed has the same
// order without the vectors. The two products alternate cycle by cycle, the second one row (two at
// n = 8) behind the first; R and S of the next term, X of the next vector and the results of
// finished vectors are worked out meanwhile.
//
//   rgu_seed -> rgu_apply_tab -> R, S --.
//   vectors  -> rgu_apply_x   -> X -----+-> rgu_apply_mac -> rgu_apply_acc -> rgu_apply_y -> memory
//
// Latency of a job: tables of the first chunk, 2^n + 2^(n/2) + 10 cycles for its matrices, the
// products, and about 2^n + 100 cycles for the last vector.
module rgu_apply (
    input  logic         clk_i,
    input  logic         rst_ni,
    // job; fields stable from start_i to done_o
    input  logic         start_i,
    input  logic         n10_i,           // 1: n = 10, 0: n = 8
    input  logic [  5:0] terms_i,         // 1..32
    input  logic         row_scale_i,     // scale each row by its row scale, else by scale_i
    input  logic         saturate_i,      // overflow: 1 largest finite value, 0 infinity
    input  logic [ 31:0] scale_i,         // float32
    input  logic [ 31:0] batch_i,         // vectors, 0: done at once
    input  logic [ 31:0] d_in_i,          // floats of an input vector
    input  logic [ 31:0] d_out_i,         // floats of an output vector
    input  logic [ 15:0] chunks_in_i,     // ceil(d_in / 2^n)
    input  logic [ 15:0] chunks_out_i,
    input  logic [ 63:0] src_i,           // byte addresses and strides
    input  logic [ 31:0] src_stride_i,
    input  logic [ 63:0] dst_i,
    input  logic [ 31:0] dst_stride_i,
    output logic         done_o,          // pulse: every write has been handed over
    // tables and row scales (rgu_seed)
    input  logic         tab_valid_i,
    input  logic [  9:0] tab_e_i,
    input  logic [ 31:0] tab_odd_i,
    input  logic         tab_rs_half_i,   // alternates from visit to visit of a chunk row, 0 first
    output logic         tab_pop_o,
    output logic         tab_rd_en_o,
    output logic [  8:0] tab_addr_o,      // both sides
    input  logic [703:0] tab_r_i,
    input  logic [639:0] tab_s_i,
    output logic         rs_en_o,
    output logic [ 10:0] rs_addr_o,
    input  logic [ 31:0] rs_data_i,
    output logic         rs_pop_o,
    // input vectors: commands and dense data, as rgu_seed's
    output logic         rd_cmd_valid_o,
    input  logic         rd_cmd_ready_i,
    output logic [ 63:0] rd_cmd_addr_o,   // any alignment
    output logic [ 12:0] rd_cmd_len_o,    // bytes, <= 4096
    input  logic         rd_valid_i,
    output logic         rd_ready_o,
    input  logic [511:0] rd_data_i,
    // output vectors: a command, then ceil(len / 64) dense beats
    output logic         wr_cmd_valid_o,
    input  logic         wr_cmd_ready_i,
    output logic [ 63:0] wr_cmd_addr_o,   // any alignment
    output logic [ 12:0] wr_cmd_len_o,    // bytes, <= 4096
    output logic         wr_valid_o,
    input  logic         wr_ready_i,
    output logic [511:0] wr_data_o,
    // counters
    output logic         mults_o,         // the multipliers work this cycle (all 32)
    output logic         busy_o,
    output logic         stall_in_o,
    output logic         stall_out_o,
    output logic [ 10:0] items_in_o,      // vector elements asked for / written, this cycle
    output logic [ 10:0] items_out_o
);
  // ---- passes: one vector, chunk and term each
  // -------------------------------------------------------
  logic job_q, begin_job, phase_q;
  logic [1:0] tab_full, tab_any, tab_free, x_full, x_zero, x_bad, x_free;
  logic [19:0] tab_e, x_exp;
  logic more, first, last, v_last;
  logic [3:0] slot;
  logic [15:0] unused_o, unused_i;
  logic [4:0] unused_t;
  logic [2:0] unused_flags;
  logic pass_q;              // first product under way
  logic tab_q, x_q;          // places in use
  logic [4:0] row1_q, c1_q;  // row of R (n = 8: pair of rows), column of X
  logic [4:0] col_last, row_last;
  logic issue1, row_end, pass_end, go, settled;
  logic [1:0] since_q;       // cycles since the last pass ended, up to 3
  logic [3:0] last_slot_q;
  logic [15:0] held_q;       // slots whose results have not been read
  logic taken;
  logic [3:0] taken_slot;

  assign begin_job = start_i && batch_i != 32'd0;
  assign col_last = n10_i ? 5'd31 : 5'd15;
  assign row_last = n10_i ? 5'd31 : 5'd7;

  rgu_apply_walk u_walk (
      .clk_i, .rst_ni, .start_i(begin_job), .step_i(pass_end), .n10_i, .chunks_out_i, .batch_i,
      .chunks_in_i,
      .terms_i, .more_o(more), .o_o(unused_o), .i_o(unused_i), .t_o(unused_t), .slot_o(slot),
      .first_o(first),
      .last_o(last), .v_first_o(unused_flags[0]), .v_last_o(v_last), .t_last_o(unused_flags[1]),
      .g_last_o(unused_flags[2])
  );

  // the first product has the even cycles; the second, and the reading of results, the odd ones
  assign issue1 = pass_q && !phase_q;
  assign row_end = issue1 && c1_q == col_last;
  assign pass_end = row_end && row1_q == row_last;
  // the exponent of a slot is settled a little after the last pass on it
  assign settled = slot != last_slot_q || since_q[1];
  assign go = phase_q && !pass_q && more && tab_full[tab_q] && x_full[x_q] && settled &&
              !(first && held_q[slot]);
  assign x_free = pass_end ? (x_q ? 2'b10 : 2'b01) : 2'b00;

  always_ff @(posedge clk_i) begin
    phase_q <= rst_ni && !phase_q;
    since_q <= pass_q ? 2'd0 : since_q == 2'd3 ? 2'd3 : since_q + 2'd1;
    if (go || row_end) c1_q <= 5'd0;
    else if (issue1) c1_q <= c1_q + 5'd1;
    if (go) row1_q <= 5'd0;
    else if (row_end) row1_q <= row1_q + 5'd1;
    if (pass_end) last_slot_q <= slot;
    if (!rst_ni || begin_job) begin
      pass_q <= 1'b0;
      tab_q <= 1'b0;
      x_q <= 1'b0;
      held_q <= 16'd0;
    end else begin
      if (go) pass_q <= 1'b1;
      else if (pass_end) pass_q <= 1'b0;
      if (pass_end) x_q <= !x_q;
      if (pass_end && v_last) tab_q <= !tab_q;
      if (taken) held_q[taken_slot] <= 1'b0;
      if (pass_end && last) held_q[slot] <= 1'b1;
    end
  end

  // ---- second product: seven cycles behind the end of each row of the first
  // -----------------------------
  logic [6:0] behind_q;
  logic start2, run2_q, issue2, first_row, row2_end, pass2_end;
  logic [4:0] row2_q, c2_q, c2;
  logic tab2_q, tab2, last2_q, v_last2_q, first2_q, use2_q, bad2_q;
  logic [3:0] slot2_q;
  logic signed [10:0] e2_q;
  logic [24:0] cols_q;       // columns of the last five issues
  logic [24:0] rows_q;
  logic [7:0] whole_q;       // a vector is complete: eight cycles from the last issue to the memory
  logic [4:0] avail_q;

  assign start2 = behind_q[6];
  assign first_row = start2 && row2_q == 5'd0;
  assign issue2 = phase_q && (start2 || run2_q);
  assign c2 = start2 ? 5'd0 : c2_q;
  assign tab2 = first_row ? tab_q : tab2_q;
  assign row2_end = issue2 && c2 == col_last;
  assign pass2_end = row2_end && row2_q == row_last;
  assign tab_free = pass2_end && v_last2_q ? (tab2_q ? 2'b10 : 2'b01) : 2'b00;

  always_ff @(posedge clk_i) begin
    if (issue2) c2_q <= c2 + 5'd1;
    cols_q <= {cols_q[19:0], c2};
    rows_q <= {rows_q[19:0], n10_i ? row2_q : {row2_q[3:0], 1'b0}};
    if (first_row) begin  // the first product is still in this pass
      tab2_q <= tab_q;
      slot2_q <= slot;
      first2_q <= first;
      last2_q <= last;
      v_last2_q <= v_last;
      use2_q <= tab_any[tab_q] && !x_zero[x_q] && !x_bad[x_q];
      bad2_q <= x_bad[x_q];
      e2_q <= 11'($signed(tab_e[tab_q*10+:10])) + 11'($signed(x_exp[x_q*10+:10]));
    end
    if (!rst_ni || begin_job) begin
      behind_q <= 7'd0;
      run2_q <= 1'b0;
      row2_q <= 5'd0;
      whole_q <= 8'd0;
      avail_q <= 5'd0;
    end else begin
      behind_q <= {behind_q[5:0], row_end};
      if (issue2) run2_q <= !row2_end;
      if (row2_end) row2_q <= pass2_end ? 5'd0 : row2_q + 5'd1;
      whole_q <= {whole_q[6:0], pass2_end && last2_q};
      avail_q <= avail_q + {4'd0, whole_q[7]} - {4'd0, taken};
    end
  end

  // ---- operands
  // ---------------------------------------------------------------------------------------
  logic [703:0] r_word;
  logic [639:0] s_word;
  logic [767:0] x_word;

  rgu_apply_tab u_tab (
      .clk_i, .rst_ni, .start_i(begin_job), .n10_i, .terms_i, .chunks_in_i, .chunks_out_i, .batch_i,
      .tab_valid_i, .tab_e_i, .tab_odd_i, .tab_rs_half_i, .tab_pop_o, .tab_rd_en_o, .tab_addr_o,
      .tab_r_i, .tab_s_i,
      .full_o(tab_full),
      .e_o(tab_e),
      .any_o(tab_any),
      .free_i(tab_free),
      .r_en_i(issue1 && c1_q == 5'd0),
      .r_addr_i({tab_q, row1_q}),
      .r_o(r_word),
      .s_en_i(issue2),
      .s_addr_i({tab2, c2}),
      .s_o(s_word)
  );

  rgu_apply_x u_x (
      .clk_i, .rst_ni, .start_i(begin_job), .n10_i, .terms_i, .chunks_in_i, .chunks_out_i,
      .batch_i, .d_in_i,
      .src_i, .src_stride_i,
      .cmd_valid_o(rd_cmd_valid_o),
      .cmd_ready_i(rd_cmd_ready_i),
      .cmd_addr_o(rd_cmd_addr_o),
      .cmd_len_o(rd_cmd_len_o),
      .rd_valid_i, .rd_ready_o, .rd_data_i,
      .items_o(items_in_o),
      .full_o(x_full),
      .exp_o(x_exp),
      .zero_o(x_zero),
      .bad_o(x_bad),
      .free_i(x_free),
      .en_i(issue1),
      .addr_i({x_q, c1_q}),
      .x_o(x_word)
  );

  // ---- products, sums, results
  // ----------------------------------------------------------------------
  logic u_valid, y_en, y_idle, y_full, y_bad;
  logic signed [53:0] u0, u1;
  logic [3:0] y_pair;
  logic [4:0] y_col0, y_col1;
  logic signed [55:0] y_even, y_odd;
  logic signed [10:0] y_exp;

  rgu_apply_mac u_mac (
      .clk_i, .rst_ni, .n10_i,
      .issue1_i(issue1),
      .c1_i(c1_q),
      .issue2_i(issue2),
      .take_i(start2),
      .r_i(r_word),
      .x_i(x_word),
      .s_i(s_word),
      .u_valid_o(u_valid),
      .u0_o(u0),
      .u1_o(u1)
  );

  rgu_apply_acc u_acc (
      .clk_i, .rst_ni, .n10_i,
      .start_i(first_row),
      .slot_i(slot2_q),
      .first_i(first2_q),
      .use_i(use2_q),
      .bad_i(bad2_q),
      .e_i(e2_q),
      .u_valid_i(u_valid),
      .row_i(rows_q[24:20]),
      .col_i(cols_q[24:20]),
      .u0_i(u0),
      .u1_i(u1),
      .rd_slot_i(taken_slot),
      .rd_en_i(y_en),
      .rd_pair_i(y_pair),
      .rd_col0_i(y_col0),
      .rd_col1_i(y_col1),
      .rd0_o(y_even),
      .rd1_o(y_odd),
      .rd_exp_o(y_exp),
      .rd_bad_o(y_bad)
  );

  rgu_apply_y u_y (
      .clk_i, .rst_ni, .start_i(begin_job), .n10_i, .row_scale_i, .saturate_i, .scale_i,
      .chunks_out_i, .batch_i,
      .d_out_i, .dst_i, .dst_stride_i,
      .idle_o(y_idle),
      .full_o(y_full),
      .phase_i(phase_q),
      .avail_i(avail_q != 5'd0),
      .taken_o(taken),
      .slot_o(taken_slot),
      .en_o(y_en),
      .pair_o(y_pair),
      .col0_o(y_col0),
      .col1_o(y_col1),
      .even_i(y_even),
      .odd_i(y_odd),
      .exp_i(y_exp),
      .bad_i(y_bad),
      .rs_en_o, .rs_addr_o, .rs_data_i, .rs_pop_o,
      .cmd_valid_o(wr_cmd_valid_o),
      .cmd_ready_i(wr_cmd_ready_i),
      .cmd_addr_o(wr_cmd_addr_o),
      .cmd_len_o(wr_cmd_len_o),
      .wr_valid_o, .wr_ready_i, .wr_data_o,
      .items_o(items_out_o)
  );

  // ---- job and counters
  // ------------------------------------------------------------------------------
  logic none_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) job_q <= 1'b0;
    else if (begin_job) job_q <= 1'b1;
    else if (done_o) job_q <= 1'b0;
    none_q <= rst_ni && start_i && batch_i == 32'd0;
  end
  assign done_o = (job_q && y_idle) || none_q;
  assign mults_o = issue1 || issue2;
  assign busy_o = mults_o;
  assign stall_in_o = job_q && !mults_o && more && !(tab_full[tab_q] && x_full[x_q]);
  assign stall_out_o = job_q && !mults_o && (y_full || (more && first && held_q[slot]));

  // ---- handshakes
  // --------------------------------------------------------------------------------------
  mr_stream_check #(.Width(77)) u_check_rd_cmd (
      .clk_i, .rst_ni, .valid_i(rd_cmd_valid_o), .ready_i(rd_cmd_ready_i),
      .data_i({rd_cmd_addr_o, rd_cmd_len_o}), .keep_i(1'b1), .last_i(1'b0)
  );
  mr_stream_check #(.Width(77)) u_check_wr_cmd (
      .clk_i, .rst_ni, .valid_i(wr_cmd_valid_o), .ready_i(wr_cmd_ready_i),
      .data_i({wr_cmd_addr_o, wr_cmd_len_o}), .keep_i(1'b1), .last_i(1'b0)
  );
  mr_stream_check #(.Width(512)) u_check_wr (
      .clk_i, .rst_ni, .valid_i(wr_valid_o), .ready_i(wr_ready_i), .data_i(wr_data_o),
      .keep_i(1'b1),
      .last_i(1'b0)
  );
endmodule
