// Walks a block row by row: which bank entries make the next lines, with what sign and scale, and
// where they go.
//
// One step a cycle while adv_o is high: for every rep {i_hi, i_lo} (i_lo outermost) its row I, then
// its mirror row ~I, one or two steps a row. A step reads 32 entries, one a lane, which are
//   16 and 32 bit formats, one parity: all of a segment of 64 columns, the other 32 are zero;
//   wide blocks (8 bit, one parity): one line, half of a segment of 128 columns;
//   both parities: 32 neighbouring columns, half of a segment of 64.
// The mirror row takes the steps in reverse order, so that its first one finds its entries still at
// the banks' outputs. Rows and segments outside the window take their steps, but read and give nothing.
//
// Stages: 0 counters, window, row scale read; 1 bank read, address sums; 2 a token for rgu_format
// (tok_*, with the bank data) and a command for rgu_store (cmd_*). Everything moves with adv_o.
// start_i presets the row address; it needs 12 cycles before the first block is full.
module rgu_reader (
    input  logic         clk_i,
    input  logic         rst_ni,
    // job, stable from start_i until the last step
    input  logic         start_i,
    input  logic         n10_i,
    input  logic         both_i,
    input  logic         odd_i,
    input  logic         wide_i,
    input  logic [3:0]   format_i,
    input  logic         saturate_i,
    input  logic         row_scale_i,
    input  logic [31:0]  scale_i,
    input  logic [31:0]  row0_i,
    input  logic [31:0]  row1_i,
    input  logic [31:0]  col0_i,
    input  logic [31:0]  col1_i,
    input  logic [63:0]  dst_i,
    input  logic [31:0]  stride_i,
    // chunk being read: {last of job, last of chunk row, scale half, e, chunk row, chunk column}
    input  logic         ctx_valid_i,
    output logic         ctx_pop_o,
    input  logic [44:0]  ctx_i,
    output logic         rs_en_o,
    output logic [10:0]  rs_addr_o,
    input  logic [31:0]  rs_data_i,
    output logic         rs_pop_o,
    output logic         bad_scale_o,    // pulse: a row's scale is infinite or NaN
    output logic         job_last_o,     // pulse: the last step of the job leaves stage 1
    // block buffer
    input  logic         full_i,
    output logic         done_o,
    output logic [4:0]   rep_lo_o,
    output logic [3:0]   rep_hi_o,
    output logic         rd_en_o,
    output logic [4:0]   rd_lo_o,
    output logic [3:0]   rd_hi_o,
    output logic         rd_x_even_o,
    output logic         rd_x_odd_o,
    // to rgu_format, valid in the cycle after the bank read
    input  logic         ready_i,        // it can move
    output logic         adv_o,          // it moves
    output logic         tok_valid_o,
    output logic [31:0]  tok_neg_o,      // negate lane l
    output logic         tok_mirror_o,   // lane l is column 31 - l of its half segment
    output logic         tok_phase_o,    // 16 and 32 bit: column bit 5 of lane 0 before mirroring
    output logic         tok_part_o,     // second half of a segment
    output logic [1:0]   tok_first_o,    // lines wanted
    output logic [1:0]   tok_last_o,
    output logic [23:0]  tok_sig_o,      // row scale, as mr_fx_scale gives it
    output logic         tok_sign_o,
    output logic [11:0]  tok_exp_o,
    output logic [4:0]   man_o,          // format constants
    output logic [30:0]  max_o,
    output logic [30:0]  over_o,
    output logic [31:0]  sign_mask_o,
    output logic         int_o,
    // to rgu_store: one command a row segment
    output logic         cmd_valid_o,
    input  logic         cmd_ready_i,
    output logic [63:0]  cmd_addr_o,
    output logic [31:0]  cmd_row_o,
    output logic [31:0]  cmd_col_o,
    output logic [8:0]   cmd_len_o,      // bytes, 1..256
    output logic [5:0]   cmd_off_o,      // of the first byte in the first line wanted
    output logic [7:0]   cmd_items_o     // columns
);
  logic adv;
  assign adv = ready_i && !(cmd_valid_o && !cmd_ready_i);
  assign adv_o = adv;

  // ---- job constants -----------------------------------------------------------------------------
  logic [1:0] size;        // log2 bytes of an element
  logic two;               // two steps a row
  assign size = format_i == rgu_pkg::FMT_FP32 ? 2'd2 : format_i[3:1] == 3'd0 ? 2'd1 : 2'd0;
  assign two = both_i || wide_i;

  logic [15:0] chunk_row, chunk_col;
  logic [9:0]  e;
  logic        last_chunk, row_last, rs_half;
  assign {last_chunk, row_last, rs_half, e, chunk_row, chunk_col} = ctx_i;

  // ---- row address of the chunk: (chunk_row * d - row0) * stride, by shifts and adds ---------------
  logic [3:0]  mul_q;
  logic        row_set_q;
  logic [15:0] row_q;          // chunk row that base_q belongs to
  logic [63:0] base_q, shift_q;
  logic        base_ok;
  assign base_ok = mul_q == 4'd10 && row_q == chunk_row && row_set_q;
  always_ff @(posedge clk_i) begin
    if (start_i) begin   // before the reset, which the start of a job asserts too
      mul_q     <= 4'd0;
      row_set_q <= 1'b0;
    end else if (!rst_ni) begin
      mul_q     <= 4'd10;
      row_set_q <= 1'b0;
    end else begin
      if (mul_q != 4'd10) mul_q <= mul_q + 4'd1;
      if (mul_q == 4'd10) row_set_q <= 1'b1;
    end
    if (start_i) begin
      base_q  <= dst_i;
      shift_q <= {32'd0, stride_i};
      row_q   <= n10_i ? row0_i[25:10] : row0_i[23:8];
    end else if (mul_q != 4'd10) begin
      if ((n10_i || mul_q < 4'd8) && row0_i[{1'b0, mul_q}]) base_q <= base_q - shift_q;
      if (n10_i || mul_q < 4'd8) shift_q <= shift_q << 1;     // ends as stride * d
    end else if (row_set_q && ctx_valid_i && row_q != chunk_row) begin
      base_q <= base_q + shift_q;
      row_q  <= row_q + 16'd1;
    end
  end

  // ---- stage 0: counters ---------------------------------------------------------------------------
  logic [3:0]  block_q, hi_q;
  logic [4:0]  lo_q;
  logic        mirror_q, y_q;
  logic [43:0] lo_off_q, hi_off_q;   // lo and 32*hi times the stride
  logic        run, y_end, hi_end, lo_end, rep_end, block_last, block_end, d_top;

  // closed: all steps of the full block have left this stage. full_i falls the cycle after done_o and
  // stays low for one cycle at least.
  logic closed_q;
  assign run = full_i && !closed_q && ctx_valid_i && base_ok;
  assign y_end = y_q || !two;
  assign hi_end = n10_i ? hi_q == 4'd15 : hi_q == 4'd3;
  assign lo_end = lo_q == 5'd31;
  assign rep_end = y_end && mirror_q;
  assign block_last = rep_end && hi_end && lo_end;
  assign block_end = block_q == (n10_i ? (wide_i ? 4'd7 : 4'd15) : (wide_i ? 4'd1 : 4'd3));
  assign d_top = n10_i ? (wide_i ? block_q[2] : block_q[3]) : (wide_i ? block_q[0] : block_q[1]);
  assign ctx_pop_o = adv && run && block_last && block_end;
  assign rs_pop_o = ctx_pop_o && row_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      block_q  <= '0;
      hi_q     <= '0;
      lo_q     <= '0;
      mirror_q <= 1'b0;
      y_q      <= 1'b0;
      closed_q <= 1'b0;
    end else begin
      closed_q <= full_i && (closed_q || (adv && run && block_last));
      if (adv && run) begin
        y_q <= !y_end;
        if (y_end) mirror_q <= !mirror_q;
        if (rep_end) hi_q <= hi_end ? 4'd0 : hi_q + 4'd1;
        if (rep_end && hi_end) lo_q <= lo_q + 5'd1;
        if (block_last) block_q <= block_end ? 4'd0 : block_q + 4'd1;
      end
    end
    if (start_i) begin
      lo_off_q <= '0;
      hi_off_q <= '0;
    end else if (adv && run && rep_end) begin
      hi_off_q <= hi_end ? '0 : hi_off_q + {7'd0, stride_i, 5'd0};
      if (hi_end) lo_off_q <= lo_end ? '0 : lo_off_q + {12'd0, stride_i};
    end
  end

  // row and first column of the segment
  logic [9:0]  rep10, row10, col10;
  logic [3:1]  seg_hi;
  logic [31:0] row, col, c_lo, c_hi, seg_end;
  logic [31:0] width;
  logic        row_in, col_in, in_window;
  logic [7:0]  skip, items;
  logic [9:0]  skip_b, end_b;
  logic [7:0]  unused_end;
  logic [1:0]  first, last, mine_lo, mine_hi, want_lo, want_hi;
  logic        wanted;

  assign rep10 = n10_i ? {d_top, hi_q, lo_q} : {2'b00, d_top, hi_q[1:0], lo_q};
  assign row10 = mirror_q ? ~rep10 & {n10_i, n10_i, 8'hFF} : rep10;
  assign seg_hi = hi_q[3:1] ^ (wide_i ? {block_q[1:0], 1'b0} : block_q[2:0]);
  assign col10 = {10{mirror_q}} ^ (n10_i ? {1'b0, seg_hi, 6'd0} : {3'b000, seg_hi[1], 6'd0});
  assign row = n10_i ? {6'd0, chunk_row, row10} : {8'd0, chunk_row, row10[7:0]};
  assign col = (n10_i ? {6'd0, chunk_col, col10} : {8'd0, chunk_col, col10[7:0]}) &
      ~(width - 32'd1);
  assign width = wide_i ? 32'd128 : 32'd64;
  assign seg_end = col + width;
  assign row_in = row >= row0_i && row < row1_i;
  assign col_in = col < col1_i && seg_end > col0_i;
  assign in_window = row_in && col_in;
  assign c_lo = col < col0_i ? col0_i : col;
  assign c_hi = seg_end > col1_i ? col1_i : seg_end;
  assign skip = 8'(c_lo - col);
  assign items = 8'(c_hi - c_lo);
  // in bytes of the segment, then in lines of 64
  assign skip_b = {2'b00, skip} << size;
  assign end_b = skip_b + ({2'b00, items} << size) - 10'd1;
  assign first = skip_b[7:6];
  assign last = end_b[7:6];
  assign unused_end = {end_b[9:8], end_b[5:0]};
  // lines this step can give
  always_comb begin
    case (size)
      2'd0: begin
        mine_lo = wide_i ? {1'b0, y_q} : 2'd0;
        mine_hi = mine_lo;
      end
      2'd1: begin
        mine_lo = both_i ? {1'b0, y_q} : 2'd0;
        mine_hi = both_i ? {1'b0, y_q} : 2'd1;
      end
      default: begin
        mine_lo = both_i ? {y_q, 1'b0} : 2'd0;
        mine_hi = both_i ? {y_q, 1'b1} : 2'd3;
      end
    endcase
  end
  assign want_lo = first > mine_lo ? first : mine_lo;
  assign want_hi = last < mine_hi ? last : mine_hi;
  assign wanted = in_window && want_lo <= want_hi;

  assign rs_en_o = adv && run && row_scale_i;
  assign rs_addr_o = {rs_half, row10};

  // ---- stage 1 -------------------------------------------------------------------------------------
  logic        v1_q, block_last1_q, job_last1_q, wanted1_q, mirror1_q, y1_q, cmd1_q, top1_q;
  logic [3:0]  block1_q, hi1_q;
  logic [4:0]  lo1_q;
  logic [1:0]  first1_q, last1_q;
  logic [9:0]  e1_q;
  logic [43:0] off1_q;
  logic [31:0] row1_q, col1_q;
  logic [33:0] colb1_q;
  logic [7:0]  items1_q;
  logic [5:0]  skipb1_q;
  logic [63:0] base1_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) v1_q <= 1'b0;
    else if (adv) v1_q <= run;
    if (adv && run) begin
      block_last1_q <= block_last;
      job_last1_q   <= block_last && block_end && last_chunk;
      wanted1_q     <= wanted;
      mirror1_q     <= mirror_q;
      y1_q          <= y_q;
      cmd1_q        <= in_window && !y_q;
      top1_q        <= d_top;
      block1_q      <= block_q;
      hi1_q         <= hi_q;
      lo1_q         <= lo_q;
      first1_q      <= want_lo;
      last1_q       <= want_hi;
      e1_q          <= e;
      off1_q        <= hi_off_q + lo_off_q;
      row1_q        <= row;
      col1_q        <= c_lo;
      colb1_q       <= {2'b00, c_lo - col0_i} << size;
      items1_q      <= items;
      skipb1_q      <= skip_b[5:0];
      base1_q       <= base_q;
    end
  end

  // reads: q is the half of the segment in bank terms, the same for y of a row and !y of its mirror
  logic       q, xw, phase, held_q, held_half_q, same, m6, m8, mirror_odd;
  logic [31:0] class_odd;
  localparam logic [31:0] Par = 32'h9669_6996;     // parity of the lane number
  localparam logic [31:0] Par15 = 32'hA5A5_5A5A;   // parity of the lane number & 5'h15

  assign q = y1_q ^ mirror1_q;
  assign xw = hi1_q[1] ^ (wide_i & q);             // M[6] in a wide block
  // column bit 5 of lane 0, less the class: i_hi[0] ^ M[5]
  assign phase = hi1_q[0] ^ (^block1_q) ^ (^lo1_q) ^ (wide_i & xw);
  assign rd_x_even_o = wide_i ? xw : both_i & (phase ^ q);
  assign rd_x_odd_o = wide_i ? xw : both_i & (phase ^ q ^ 1'b1);
  assign same = held_q && held_half_q == (two & q);
  assign rd_en_o = adv && v1_q && wanted1_q && !same;
  assign rd_lo_o = lo1_q;
  assign rd_hi_o = hi1_q;
  assign done_o = adv && v1_q && block_last1_q;
  assign job_last_o = adv && v1_q && job_last1_q;

  logic [4:0] rep_lo_q;
  logic [3:0] rep_hi_q;
  assign rep_lo_o = rep_lo_q;
  assign rep_hi_o = rep_hi_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q   <= 1'b0;
      rep_lo_q <= '0;
      rep_hi_q <= '0;
    end else if (adv && v1_q) begin
      // what the banks hold is good for the rest of this rep only
      held_q   <= (held_q || wanted1_q) && !(mirror1_q && (y1_q || !two));
      rep_lo_q <= block_last1_q ? '0 : lo1_q;
      rep_hi_q <= block_last1_q ? '0 : hi1_q;
    end
    if (rd_en_o) held_half_q <= two & q;
  end

  // sign of the mirror row: parity(g(M)) ^ odd * (n + 1), n even; parity(g(M)) = parity(M & 0x155)
  assign m6 = wide_i ? xw : block1_q[0];
  assign m8 = wide_i ? block1_q[1] : block1_q[2];
  assign mirror_odd = (^(lo1_q & 5'h15)) ^ m6 ^ (n10_i & m8);
  assign class_odd = both_i ? Par ^ {32{phase ^ q}} : {32{odd_i}};

  // ---- stage 2 -------------------------------------------------------------------------------------
  logic        v2_q, cmd2_q;
  logic [31:0] neg2_q, row2_q, col2_q;
  logic        mirror2_q, phase2_q, part2_q, sign2_q, sign1;
  logic [1:0]  first2_q, last2_q;
  logic [23:0] sig1, sig2_q;
  logic [11:0] exp2_q;
  logic signed [11:0] exp1;
  logic [63:0] addr2_q;
  logic [7:0]  items2_q;
  logic [5:0]  off2_q;
  logic        bad;
  logic [43:0] top_off, all_off, off1;

  mr_fx_scale u_scale (
      .format_i(format_i[2:0]),
      .saturate_i,
      .scale_i(row_scale_i ? rs_data_i : scale_i),
      .frac_i($signed(e1_q) - 10'sd24),
      .sig_o(sig1),
      .sign_o(sign1),
      .exp_o(exp1),
      .man_o, .max_o, .over_o, .sign_mask_o, .int_o,
      .bad_o(bad)
  );

  // row I = top * d/2 + i, row ~I = d - 1 - I
  assign top_off = top1_q ? (n10_i ? {3'd0, stride_i, 9'd0} : {5'd0, stride_i, 7'd0}) : '0;
  assign all_off = (n10_i ? {2'd0, stride_i, 10'd0} : {4'd0, stride_i, 8'd0}) - {12'd0, stride_i};
  assign off1 = mirror1_q ? all_off - top_off - off1_q : top_off + off1_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v2_q   <= 1'b0;
      cmd2_q <= 1'b0;
    end else if (adv) begin
      v2_q   <= v1_q && wanted1_q;
      cmd2_q <= v1_q && cmd1_q;
    end else if (cmd_ready_i) cmd2_q <= 1'b0;   // taken while the token still waits
    if (adv && v1_q && wanted1_q) begin
      neg2_q    <= mirror1_q ? Par15 ^ {32{mirror_odd}} ^ class_odd : '0;
      mirror2_q <= mirror1_q;
      phase2_q  <= phase ^ odd_i;
      part2_q   <= y1_q;
      first2_q  <= first1_q;
      last2_q   <= last1_q;
      sig2_q    <= sig1;
      sign2_q   <= sign1;
      exp2_q    <= exp1;
    end
    if (adv && v1_q && cmd1_q) begin
      addr2_q  <= base1_q + {20'd0, off1} + {30'd0, colb1_q};
      row2_q   <= row1_q;
      col2_q   <= col1_q;
      items2_q <= items1_q;
      off2_q   <= skipb1_q;
    end
  end

  assign bad_scale_o = adv && v1_q && wanted1_q && bad;
  assign tok_valid_o = v2_q;
  assign tok_neg_o = neg2_q;
  assign tok_mirror_o = mirror2_q;
  assign tok_phase_o = phase2_q;
  assign tok_part_o = part2_q;
  assign tok_first_o = first2_q;
  assign tok_last_o = last2_q;
  assign tok_sig_o = sig2_q;
  assign tok_sign_o = sign2_q;
  assign tok_exp_o = exp2_q;
  assign cmd_valid_o = cmd2_q;
  assign cmd_addr_o = addr2_q;
  assign cmd_row_o = row2_q;
  assign cmd_col_o = col2_q;
  assign cmd_len_o = {1'b0, items2_q} << size;
  assign cmd_off_o = off2_q;
  assign cmd_items_o = items2_q;
endmodule
