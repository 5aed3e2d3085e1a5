// Input vectors to matrices: a chunk of float32 becomes X, two of each on the way.
//
// Asks for one chunk of one vector after the other in the order of the walk (again for every term
// and chunk row: nothing is kept), stores its lines, finds the exponent of its largest magnitude on
// the fly, and turns the floats into integers with 17 fraction bits below that exponent, rounded
// half away from zero. Groups of equal p are transformed over z, two values a cycle: 2^(n-1) +
// 2^(n/2-1) + 10 cycles a chunk.
//   full_o[b]: place b holds a matrix; free_i[b] releases it. exp_o: largest |x| < 2^exp. zero_o:
//   all
//   zero (exp means nothing). bad_o: a NaN or an infinity is among them; valid while full.
module rgu_apply_x (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic         n10_i,
    input  logic [  5:0] terms_i,
    input  logic [ 15:0] chunks_in_i,
    input  logic [ 15:0] chunks_out_i,
    input  logic [ 31:0] batch_i,
    input  logic [ 31:0] d_in_i,
    input  logic [ 63:0] src_i,
    input  logic [ 31:0] src_stride_i,
    // read commands and data
    output logic         cmd_valid_o,
    input  logic         cmd_ready_i,
    output logic [ 63:0] cmd_addr_o,
    output logic [ 12:0] cmd_len_o,
    input  logic         rd_valid_i,
    output logic         rd_ready_o,
    input  logic [511:0] rd_data_i,
    output logic [ 10:0] items_o,   // floats asked for, in the cycle of the command
    // places
    output logic [  1:0] full_o,
    output logic [ 19:0] exp_o,     // two exponents
    output logic [  1:0] zero_o,
    output logic [  1:0] bad_o,
    input  logic [  1:0] free_i,
    // reads of a column, data the cycle after and held
    input  logic         en_i,
    input  logic [  5:0] addr_i,    // {place, column}
    output logic [767:0] x_o        // 32 x 24 bits
);
  // ---- commands
  // ----------------------------------------------------------------------------------
  logic more, first, v_last, last, g_last, v_first, t_last, give;
  logic [15:0] i, unused_o;
  logic [4:0] unused_t;
  logic [3:0] unused_slot;
  logic [63:0] group_q, next_q, addr_q, off, addr, step;
  logic [31:0] left;
  logic [10:0] count;      // floats of the chunk
  logic in_full0_q, in_full1_q, ask_q;
  logic [21:0] count_q;    // of the two line buffers

  rgu_apply_walk u_walk (
      .clk_i, .rst_ni, .start_i, .step_i(give), .n10_i, .chunks_out_i, .batch_i, .chunks_in_i,
      .terms_i,
      .more_o(more), .o_o(unused_o), .i_o(i), .t_o(unused_t), .slot_o(unused_slot), .first_o(first),
      .last_o(last), .v_first_o(v_first), .v_last_o(v_last), .t_last_o(t_last), .g_last_o(g_last)
  );

  assign off = n10_i ? {36'd0, i, 12'd0} : {38'd0, i, 10'd0};
  assign left = d_in_i - off[33:2];
  assign count = n10_i ? (left >= 32'd1024 ? 11'd1024 : left[10:0])
                       : (left >= 32'd256 ? 11'd256 : left[10:0]);
  assign addr = v_first ? group_q + off : addr_q;
  assign step = addr + {32'd0, src_stride_i};
  assign cmd_addr_o = addr;
  assign cmd_len_o = {count, 2'b00};
  assign cmd_valid_o = more && !(ask_q ? in_full1_q : in_full0_q);
  assign give = cmd_valid_o && cmd_ready_i;
  assign items_o = give ? count : 11'd0;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      group_q <= src_i;
    end else if (give) begin
      addr_q <= step;
      count_q[ask_q*11+:11] <= count;
      if (first && v_last) next_q <= step;  // first vector of the next group
      if (v_last && last) group_q <= g_last ? src_i : first ? step : next_q;
    end
  end

  // ---- lines in, largest exponent
  // ----------------------------------------------------------------
  logic load_q;            // line buffer being filled
  logic [5:0] line_q;
  logic [10:0] load_count;
  logic [6:0] words_left;  // of the chunk, in lines
  logic load_last;
  logic [7:0] top, top_q;  // largest exponent field of the chunk so far
  logic [22:0] sub, sub_q; // OR of the subnormal fractions
  logic unused;

  assign rd_ready_o = 1'b1;
  assign load_count = count_q[load_q*11+:11];
  assign words_left = 7'((load_count + 11'd15) >> 4);
  assign load_last = {1'b0, line_q} + 7'd1 == words_left;

  always_comb begin
    top = line_q == 6'd0 ? 8'd0 : top_q;
    sub = line_q == 6'd0 ? 23'd0 : sub_q;
    for (int w = 0; w < 16; w++) begin
      if ({1'b0, line_q, 4'(w)} < load_count) begin
        if (rd_data_i[w*32+23+:8] > top) top = rd_data_i[w*32+23+:8];
        if (rd_data_i[w*32+23+:8] == 8'd0) sub = sub | rd_data_i[w*32+:23];
      end
    end
  end

  // exponent of the largest magnitude: field - 126, or by the leading one of the subnormals
  logic [4:0] sub_top;
  logic [9:0] exp_d;
  always_comb begin
    sub_top = 5'd0;
    for (int b = 0; b < 23; b++) if (sub[b]) sub_top = 5'(b);
    exp_d = top != 8'd0 ? {2'b00, top} - 10'd126 : {5'd0, sub_top} - 10'd148;
  end

  logic [19:0] in_exp_q;
  logic [1:0] in_zero_q, in_bad_q, in_ready_q;
  logic take, done_lines;  // the transform has read a line buffer to its end
  logic from_q;            // line buffer being transformed

  always_ff @(posedge clk_i) begin
    if (rd_valid_i) begin
      top_q <= top;
      sub_q <= sub;
      line_q <= load_last ? 6'd0 : line_q + 6'd1;
      if (load_last) begin
        in_exp_q[load_q*10+:10] <= exp_d;
        in_zero_q[load_q] <= top == 8'd0 && sub == 23'd0;
        in_bad_q[load_q] <= top == 8'd255;
        load_q <= !load_q;
      end
    end
    if (give) ask_q <= !ask_q;
    if (!rst_ni || start_i) begin
      line_q <= 6'd0;
      load_q <= 1'b0;
      ask_q <= 1'b0;
      in_full0_q <= 1'b0;
      in_full1_q <= 1'b0;
      in_ready_q <= 2'b00;
    end else begin
      in_full0_q <= (in_full0_q && !(done_lines && !from_q)) || (give && !ask_q);
      in_full1_q <= (in_full1_q && !(done_lines && from_q)) || (give && ask_q);
      in_ready_q <= (in_ready_q & ~(done_lines ? (from_q ? 2'b10 : 2'b01) : 2'b00)) |
                    (rd_valid_i && load_last ? (load_q ? 2'b10 : 2'b01) : 2'b00);
    end
  end
  assign unused = t_last;

  // ---- one run a chunk: two floats a cycle
  // -------------------------------------------------------
  logic run_q, fill_q, finished;
  logic [11:0] cnt_q, cnt1_q, cnt2_q, cnt3_q, total, stop;
  logic v1_q, v2_q, v3_q;
  logic [9:0] k, k1_q, exp_now_q;
  logic [10:0] count_now_q;
  logic [511:0] line;
  logic [1:0] full_q, zero_q, bad_q;
  logic [19:0] exp_q;

  assign total = n10_i ? 12'd512 : 12'd128;
  assign stop = n10_i ? 12'd512 + 12'd15 : 12'd128 + 12'd7;
  assign take = !run_q && in_ready_q[from_q] && !full_q[fill_q];
  assign done_lines = run_q && cnt_q == total;
  assign k = rgu_spin_pkg::blade(n10_i ? {cnt_q[8:0], 1'b0}
                                       : {1'b0, cnt_q[6:3], 1'b0, cnt_q[2:0], 1'b0});
  assign full_o = full_q;
  assign zero_o = zero_q;
  assign bad_o = bad_q;
  assign exp_o = exp_q;

  rgu_apply_ram #(.Width(512), .Depth(128)) u_lines (
      .clk_i, .we_i(rd_valid_i), .waddr_i({load_q, line_q}), .wdata_i(rd_data_i),
      .en_i(run_q && cnt_q < total), .raddr_i({from_q, k[9:4]}), .rdata_o(line)
  );

  always_ff @(posedge clk_i) begin
    cnt_q <= take ? 12'd0 : cnt_q + 12'd1;
    k1_q <= k;
    cnt1_q <= cnt_q;
    cnt2_q <= cnt1_q;
    cnt3_q <= cnt2_q;
    if (take) begin
      exp_now_q <= in_exp_q[from_q*10+:10];
      count_now_q <= count_q[from_q*11+:11];
      exp_q[fill_q*10+:10] <= in_exp_q[from_q*10+:10];
      zero_q[fill_q] <= in_zero_q[from_q];
      bad_q[fill_q] <= in_bad_q[from_q];
    end
    v1_q <= rst_ni && !start_i && run_q && cnt_q < stop;
    v2_q <= rst_ni && !start_i && v1_q;
    v3_q <= rst_ni && !start_i && v2_q;
    if (!rst_ni || start_i) begin
      run_q <= 1'b0;
      from_q <= 1'b0;
      fill_q <= 1'b0;
      full_q <= 2'b00;
    end else begin
      if (take) run_q <= 1'b1;
      else if (finished) run_q <= 1'b0;
      if (done_lines) from_q <= !from_q;
      if (finished) fill_q <= !fill_q;
      full_q <= (full_q & ~free_i) | (finished ? (fill_q ? 2'b10 : 2'b01) : 2'b00);
    end
  end

  // ---- floats to integers
  // ------------------------------------------------------------------------ Magnitude m *
  // 2^(field-150) over 2^(exp-17): m << 17 shifted right by 150 + exp - field, rounded half up.
  function automatic logic [17:0] fixed(input logic [30:0] x, input logic [9:0] exp);
    logic [7:0] field;
    logic [9:0] right;
    logic [5:0] by;
    logic [41:0] m;
    field = x[30:23] == 8'd0 ? 8'd1 : x[30:23];
    right = 10'd150 + exp - {2'b00, field};  // at least 1: exp is the chunk's
    by = right > 10'd42 ? 6'd42 : right[5:0];
    m = {1'b0, x[30:23] != 8'd0, x[22:0], 17'd0};
    m = (m + (42'd1 << (by - 6'd1))) >> by;
    fixed = m[17:0];
  endfunction

  logic [31:0] w0, w1, w0_q, w1_q;
  logic signed [18:0] mag0, mag1;
  logic signed [18:0] x0_q, x1_q;
  logic signed [19:0] sum, dif;
  logic [9:0] other;
  assign other = k1_q ^ 10'h002;  // the blade with the lowest bit of z set, in the same line
  assign w0 = {k1_q < count_now_q[9:0] || count_now_q[10], line[{k1_q[3:0], 5'd0}+:31]};
  assign w1 = {other < count_now_q[9:0] || count_now_q[10], line[{other[3:0], 5'd0}+:31]};

  assign mag0 = {1'b0, fixed(w0_q[30:0], exp_now_q)};
  assign mag1 = {1'b0, fixed(w1_q[30:0], exp_now_q)};

  always_ff @(posedge clk_i) begin
    if (v1_q) begin
      w0_q <= {rgu_spin_pkg::eps(k1_q) ^ line[{k1_q[3:0], 5'd31}], w0[31] ? w0[30:0] : 31'd0};
      w1_q <= {rgu_spin_pkg::eps(other) ^ line[{other[3:0], 5'd31}], w1[31] ? w1[30:0] : 31'd0};
    end
    if (v2_q) begin
      x0_q <= w0_q[31] ? 19'd0 - mag0 : mag0;
      x1_q <= w1_q[31] ? 19'd0 - mag1 : mag1;
    end
  end

  // ---- transform and place
  // -----------------------------------------------------------------------
  logic t_v, unused_v, we;
  logic [11:0] t_cnt, unused_cnt;
  logic signed [23:0] t0, t1;
  logic [4:0] p;
  logic [3:0] j;

  assign sum = 20'(x0_q) + 20'(x1_q);
  assign dif = 20'(x0_q) - 20'(x1_q);
  rgu_apply_wht #(.Width(24), .LogMax(4)) u_t0 (
      .clk_i, .rst_ni, .big_i(n10_i), .valid_i(v3_q), .cnt_i(cnt3_q), .data_i(24'(sum)),
      .valid_o(t_v),
      .cnt_o(t_cnt), .data_o(t0)
  );
  rgu_apply_wht #(.Width(24), .LogMax(4)) u_t1 (
      .clk_i, .rst_ni, .big_i(n10_i), .valid_i(v3_q), .cnt_i(cnt3_q), .data_i(24'(dif)),
      .valid_o(unused_v), .cnt_o(unused_cnt), .data_o(t1)
  );

  // entries (a, a^p) for a = 2j and 2j + 1
  assign we = t_v && t_cnt < total;
  assign p = n10_i ? t_cnt[8:4] : {1'b0, t_cnt[6:3]};
  assign j = n10_i ? t_cnt[3:0] : {1'b0, t_cnt[2:0]};
  assign finished = t_v && t_cnt == total - 12'd1;

  for (genvar l = 0; l < 32; l++) begin : g_lane
    localparam logic [4:0] A = l;
    rgu_apply_ram #(.Width(24), .Depth(64)) u_x (
        .clk_i, .we_i(we && j == A[4:1]), .waddr_i({fill_q, A ^ p}), .wdata_i(A[0] ? t1 : t0),
        .en_i,
        .raddr_i(addr_i), .rdata_o(x_o[l*24+:24])
    );
  end
endmodule
