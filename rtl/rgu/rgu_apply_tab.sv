// Tables to matrices: R = spin(r) and S = spin(rev s) of one term after the other, two of each
// held.
//
// Takes the terms of the walk in order, as fast as the two places allow: 2^n + 2^(n/2) + 10 cycles
// a term, in the background of the products. Undoes the signs of the r table, puts the blades into
// groups of equal p, transforms each group over z, and writes R by rows and S by columns, 32 values
// wide: at n = 8 a word of R is two rows, a word of S one column.
//   full_o[b]: place b holds a term; free_i[b] releases it. e_o, any_o: exponent of its chunk, and
//   whether R is nonzero; valid while full.
module rgu_apply_tab (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic         n10_i,
    input  logic [  5:0] terms_i,
    input  logic [ 15:0] chunks_in_i,
    input  logic [ 15:0] chunks_out_i,
    input  logic [ 31:0] batch_i,
    // rgu_seed
    input  logic         tab_valid_i,
    input  logic [  9:0] tab_e_i,
    input  logic [ 31:0] tab_odd_i,
    input  logic         tab_rs_half_i,
    output logic         tab_pop_o,
    output logic         tab_rd_en_o,
    output logic [  8:0] tab_addr_o,
    input  logic [703:0] tab_r_i,
    input  logic [639:0] tab_s_i,
    // places
    output logic [  1:0] full_o,
    output logic [ 19:0] e_o,      // two exponents
    output logic [  1:0] any_o,
    input  logic [  1:0] free_i,
    // reads, data the cycle after and held
    input  logic         r_en_i,
    input  logic [  5:0] r_addr_i,  // {place, row (pair)}
    output logic [703:0] r_o,
    input  logic         s_en_i,
    input  logic [  5:0] s_addr_i,  // {place, column}
    output logic [639:0] s_o
);
  // ---- one run a term
  // ----------------------------------------------------------------------------
  logic more, t_last;
  logic [4:0] term;
  logic run_q, fill_q, end_run;
  logic [11:0] cnt_q, total, stop;
  logic go, finished, nonzero_q;
  logic [1:0] full_q, any_q;
  logic [19:0] e_q;
  // what this user of the walk does not look at
  logic [15:0] unused_o, unused_i;
  logic [3:0] unused_slot;
  logic [3:0] unused_flags;
  logic visit_end, half_q;

  rgu_apply_walk #(.Vectors(1'b0)) u_walk (
      .clk_i, .rst_ni, .start_i, .step_i(end_run), .n10_i, .chunks_out_i, .batch_i, .chunks_in_i,
      .terms_i,
      .more_o(more), .o_o(unused_o), .i_o(unused_i), .t_o(term), .slot_o(unused_slot),
      .first_o(unused_flags[0]), .last_o(visit_end), .v_first_o(unused_flags[1]),
      .v_last_o(unused_flags[2]), .t_last_o(t_last), .g_last_o(unused_flags[3])
  );

  assign total = n10_i ? 12'd1024 : 12'd256;
  assign stop = n10_i ? 12'd1024 + 12'd31 : 12'd256 + 12'd15;  // flushes the transform
  assign go = !run_q && more && tab_valid_i && !full_q[fill_q] && !end_run;
  assign full_o = full_q;
  assign any_o = any_q;
  assign e_o = e_q;
  assign tab_pop_o = end_run && t_last;

  always_ff @(posedge clk_i) begin
    cnt_q <= go ? 12'd0 : cnt_q + 12'd1;
    if (go) e_q[fill_q*10+:10] <= tab_e_i;
    if (finished) any_q[fill_q] <= nonzero_q;
    if (!rst_ni || start_i) begin
      run_q <= 1'b0;
      fill_q <= 1'b0;
      full_q <= 2'b00;
    end else begin
      if (go) run_q <= 1'b1;
      else if (finished) run_q <= 1'b0;
      if (finished) fill_q <= !fill_q;
      full_q <= (full_q & ~free_i) | (finished ? (fill_q ? 2'b10 : 2'b01) : 2'b00);
    end
  end
  // the last read comes back the cycle after; then the chunk may go
  assign end_run = run_q && cnt_q == total;

  // ---- fetch: the table entry of blade (p, z)
  // ----------------------------------------------------
  logic [9:0] blade, blade1_q;
  logic [11:0] cnt1_q, cnt2_q;
  logic [3:0] word;
  logic v1_q, v2_q, odd1_q;
  logic signed [21:0] r_pick;
  logic signed [19:0] s_pick;
  logic signed [22:0] r2_q;
  logic signed [20:0] s2_q;
  logic ones2;
  logic r_neg, s_neg, r_use;

  assign blade = rgu_spin_pkg::blade(n10_i ? cnt_q[9:0] : {1'b0, cnt_q[7:4], 1'b0, cnt_q[3:0]});
  assign word = n10_i ? blade[8:5] : {2'b00, blade[6:5]};
  assign tab_rd_en_o = run_q && cnt_q < total;
  assign tab_addr_o = {term, word};
  assign r_pick = tab_r_i[{5'd0, blade1_q[4:0]}*22+:22];
  assign s_pick = tab_s_i[{5'd0, blade1_q[4:0]}*20+:20];
  assign r_use = (^blade1_q) == odd1_q;
  // the sign (-1)^(|K|(|K|-1)/2) that the r table carries
  // = bit 1 of popcount(K) = the parity of the pairs of ones
  always_comb begin
    ones2 = 1'b0;
    for (int b = 1; b < 10; b++) begin
      ones2 = ones2 ^ (blade1_q[b] & (^(blade1_q & ((10'd1 << b) - 10'd1))));
    end
  end
  assign s_neg = rgu_spin_pkg::eps(blade1_q);
  assign r_neg = s_neg ^ ones2;

  always_ff @(posedge clk_i) begin
    v1_q <= rst_ni && !start_i && run_q && cnt_q < stop;
    v2_q <= rst_ni && !start_i && v1_q;
    blade1_q <= blade;
    odd1_q <= tab_odd_i[term];
    cnt1_q <= cnt_q;
    cnt2_q <= cnt1_q;
    if (v1_q) begin
      r2_q <= !r_use ? 23'd0 : r_neg ? 23'd0 - 23'(r_pick) : 23'(r_pick);
      s2_q <= (^blade1_q) ? 21'd0 : s_neg ? 21'd0 - 21'(s_pick) : 21'(s_pick);
      nonzero_q <= (nonzero_q && cnt1_q != 12'd0) || (r_use && r_pick != '0 && cnt1_q < total);
    end
  end

  // ---- transform and place
  // -----------------------------------------------------------------------
  logic r_v, s_v;
  logic [11:0] r_cnt, unused_cnt;
  logic signed [27:0] r_w;
  logic signed [25:0] s_w;
  logic [4:0] p, a, b, r_lane, r_row, s_lane, s_col;
  logic we, unused;

  rgu_apply_wht #(.Width(28), .LogMax(5)) u_r (
      .clk_i, .rst_ni, .big_i(n10_i), .valid_i(v2_q), .cnt_i(cnt2_q), .data_i(28'(r2_q)),
      .valid_o(r_v),
      .cnt_o(r_cnt), .data_o(r_w)
  );
  rgu_apply_wht #(.Width(26), .LogMax(5)) u_s (
      .clk_i, .rst_ni, .big_i(n10_i), .valid_i(v2_q), .cnt_i(cnt2_q), .data_i(26'(s2_q)),
      .valid_o(s_v),
      .cnt_o(unused_cnt), .data_o(s_w)
  );
  assign unused = ^{r_w[27:22], s_w[25:20], s_v};

  // entry (a, b), b = a ^ p
  assign we = r_v && r_cnt < total;
  assign p = n10_i ? r_cnt[9:5] : {1'b0, r_cnt[7:4]};
  assign a = n10_i ? r_cnt[4:0] : {1'b0, r_cnt[3:0]};
  assign b = a ^ p;
  assign r_lane = n10_i ? b : {a[0], b[3:0]};
  assign r_row = n10_i ? a : {2'b00, a[3:1]};
  assign s_lane = a;
  assign s_col = b;
  assign finished = r_v && r_cnt == total - 12'd1;

  for (genvar l = 0; l < 32; l++) begin : g_lane
    rgu_apply_ram #(.Width(22), .Depth(64)) u_r (
        .clk_i, .we_i(we && r_lane == 5'(l)), .waddr_i({fill_q, r_row}), .wdata_i(r_w[21:0]),
        .en_i(r_en_i),
        .raddr_i(r_addr_i), .rdata_o(r_o[l*22+:22])
    );
    rgu_apply_ram #(.Width(20), .Depth(64)) u_s (
        .clk_i, .we_i(we && s_lane == 5'(l)), .waddr_i({fill_q, s_col}), .wdata_i(s_w[19:0]),
        .en_i(s_en_i),
        .raddr_i(s_addr_i), .rdata_o(s_o[l*20+:20])
    );
  end

  // rgu_apply_y counts the halves of the row scale memory on its own
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) half_q <= 1'b0;
    else begin
      if (tab_pop_o && visit_end) half_q <= !half_q;
      assert (!tab_pop_o || tab_rs_half_i == half_q);
    end
    if (rst_ni && we) begin
      assert (r_w[27:21] == '0 || (&r_w[27:21]));
      assert (s_w[25:19] == '0 || (&s_w[25:19]));
    end
  end
endmodule
