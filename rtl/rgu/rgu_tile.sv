// Tile mode: tables of chunk after chunk in, row segments of weights out.
//
//   tables -> rgu_gen -> rgu_block -> rgu_reader + rgu_format -> rgu_store -> write master or stream
//
// Generation of a block overlaps the output of the one before, in the same memory. job_* fields are
// stable from start_i to done_o. start_i also clears what an abandoned job has left. A job ends (done_o,
// one cycle) when its last line has been handed to the write master or the stream.
module rgu_tile (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             start_i,
    output logic             done_o,
    input  logic             n10_i,
    input  logic [5:0]       terms_i,
    input  logic             has_odd_i,
    input  logic             has_even_i,
    input  logic [3:0]       format_i,
    input  logic             saturate_i,
    input  logic             row_scale_i,
    input  logic [31:0]      scale_i,
    input  logic             stream_i,
    input  logic [31:0]      row0_i,
    input  logic [31:0]      row1_i,
    input  logic [31:0]      col0_i,
    input  logic [31:0]      col1_i,
    input  logic [63:0]      dst_i,
    input  logic [31:0]      stride_i,
    // tables and row scales (rgu_seed)
    input  logic             tab_valid_i,
    input  logic [9:0]       tab_e_i,
    input  logic [31:0]      tab_odd_i,
    input  logic [15:0]      tab_row_i,
    input  logic [15:0]      tab_col_i,
    input  logic             tab_rs_half_i,
    input  logic             tab_row_last_i,
    input  logic             tab_last_i,
    output logic             tab_pop_o,
    output logic             rd_en_o,
    output logic [8:0]       r_addr_o,
    output logic [8:0]       s_addr_o,
    output logic [4:0]       s_xor_o,
    input  logic [32*22-1:0] r_data_i,
    input  logic [32*20-1:0] s_data_i,
    output logic             rs_en_o,
    output logic [10:0]      rs_addr_o,
    input  logic [31:0]      rs_data_i,
    output logic             rs_pop_o,
    // write master
    output logic             wr_cmd_valid_o,
    input  logic             wr_cmd_ready_i,
    output logic [63:0]      wr_cmd_addr_o,
    output logic [8:0]       wr_cmd_len_o,
    output logic [5:0]       wr_cmd_off_o,
    output logic             wr_valid_o,
    input  logic             wr_ready_i,
    output logic [511:0]     wr_data_o,
    // stream
    output logic             st_valid_o,
    input  logic             st_ready_i,
    output logic [511:0]     st_data_o,
    output logic [63:0]      st_keep_o,
    output logic             st_last_o,
    output logic             bad_scale_o,  // pulse: a scale is infinite or NaN
    // counters
    output logic             mults_o,      // 32 products this cycle
    output logic             busy_o,       // a product or a row step this cycle
    output logic             stall_in_o,   // nothing to do but wait for tables
    output logic             stall_out_o,  // an output line waits
    output logic [7:0]       items_o       // weights that got their place this cycle
);
  logic rst_n;
  assign rst_n = rst_ni && !start_i;

  // ---- geometry, held for the job ----------------------------------------------------------------
  logic both, wide, byte_wide;
  assign both = has_odd_i && has_even_i;
  assign byte_wide = format_i != rgu_pkg::FMT_FP32 && format_i[3:1] != 3'd0;
  assign wide = byte_wide && !both;

  // ---- generator, block buffer -------------------------------------------------------------------
  logic ctx_take, ctx_ready, room, word_en, gen_busy, adv;
  logic [32*32-1:0] word;
  logic full, blk_done, blk_rd_en, x_even, x_odd;
  logic [4:0] rep_lo, blk_lo;
  logic [3:0] rep_hi, blk_hi;
  logic [32*31-1:0] blk_data;

  rgu_gen u_gen (
      .clk_i,
      .rst_ni(rst_n),
      .n10_i, .terms_i,
      .both_i(both),
      .odd_i(has_odd_i),
      .wide_i(wide),
      .tab_valid_i, .tab_odd_i, .tab_pop_o,
      .ctx_take_o(ctx_take),
      .ctx_ready_i(ctx_ready),
      .rd_en_o, .r_addr_o, .s_addr_o, .s_xor_o, .r_data_i, .s_data_i,
      .room_i(room),
      .wr_en_o(word_en),
      .wr_data_o(word),
      .busy_o(gen_busy),
      .mults_busy_o(mults_o)
  );
  rgu_block u_block (
      .clk_i,
      .rst_ni(rst_n),
      .n10_i,
      .both_i(both),
      .odd_i(has_odd_i),
      .wide_i(wide),
      .room_o(room),
      .wr_en_i(word_en),
      .wr_data_i(word),
      .full_o(full),
      .done_i(blk_done),
      .rep_lo_i(rep_lo),
      .rep_hi_i(rep_hi),
      .rd_en_i(blk_rd_en),
      .rd_lo_i(blk_lo),
      .rd_hi_i(blk_hi),
      .rd_x_even_i(x_even),
      .rd_x_odd_i(x_odd),
      .rd_data_o(blk_data)
  );

  // ---- which chunk the blocks belong to: the generator may be one chunk ahead of the reader ------
  logic ctx_valid, ctx_pop;
  logic [44:0] ctx;
  logic [2:0] unused_count;
  mr_fifo #(.Width(45), .Depth(4)) u_ctx (
      .clk_i,
      .rst_ni(rst_n),
      .valid_i(ctx_take),
      .ready_o(ctx_ready),
      .data_i({tab_last_i, tab_row_last_i, tab_rs_half_i, tab_e_i, tab_row_i, tab_col_i}),
      .valid_o(ctx_valid),
      .ready_i(ctx_pop),
      .data_o(ctx),
      .count_o(unused_count)
  );

  // ---- rows --------------------------------------------------------------------------------------
  logic        tok_valid, tok_mirror, tok_phase, tok_part, tok_sign, is_int, job_last, fmt_ready;
  logic [31:0] tok_neg, sign_mask, cmd_row, cmd_col;
  logic [1:0]  tok_first, tok_last;
  logic [23:0] tok_sig;
  logic [11:0] tok_exp;
  logic [4:0]  man;
  logic [30:0] max_code, over_code;
  logic        cmd_valid, cmd_ready, line_valid, line_ready, fmt_busy, store_busy;
  logic [63:0] cmd_addr;
  logic [8:0]  cmd_len;
  logic [5:0]  cmd_off;
  logic [7:0]  cmd_items;
  logic [511:0] line;

  rgu_reader u_reader (
      .clk_i,
      .rst_ni(rst_n),
      .start_i, .n10_i,
      .both_i(both),
      .odd_i(has_odd_i),
      .wide_i(wide),
      .format_i, .saturate_i, .row_scale_i, .scale_i, .row0_i, .row1_i, .col0_i, .col1_i, .dst_i,
      .stride_i,
      .ctx_valid_i(ctx_valid),
      .ctx_pop_o(ctx_pop),
      .ctx_i(ctx),
      .rs_en_o, .rs_addr_o, .rs_data_i, .rs_pop_o,
      .bad_scale_o,
      .job_last_o(job_last),
      .full_i(full),
      .done_o(blk_done),
      .rep_lo_o(rep_lo),
      .rep_hi_o(rep_hi),
      .rd_en_o(blk_rd_en),
      .rd_lo_o(blk_lo),
      .rd_hi_o(blk_hi),
      .rd_x_even_o(x_even),
      .rd_x_odd_o(x_odd),
      .ready_i(fmt_ready),
      .adv_o(adv),
      .tok_valid_o(tok_valid),
      .tok_neg_o(tok_neg),
      .tok_mirror_o(tok_mirror),
      .tok_phase_o(tok_phase),
      .tok_part_o(tok_part),
      .tok_first_o(tok_first),
      .tok_last_o(tok_last),
      .tok_sig_o(tok_sig),
      .tok_sign_o(tok_sign),
      .tok_exp_o(tok_exp),
      .man_o(man),
      .max_o(max_code),
      .over_o(over_code),
      .sign_mask_o(sign_mask),
      .int_o(is_int),
      .cmd_valid_o(cmd_valid),
      .cmd_ready_i(cmd_ready),
      .cmd_addr_o(cmd_addr),
      .cmd_row_o(cmd_row),
      .cmd_col_o(cmd_col),
      .cmd_len_o(cmd_len),
      .cmd_off_o(cmd_off),
      .cmd_items_o(cmd_items)
  );
  rgu_format u_format (
      .clk_i,
      .rst_ni(rst_n),
      .both_i(both),
      .format_i,
      .en_i(adv),
      .ready_o(fmt_ready),
      .tok_valid_i(tok_valid),
      .tok_neg_i(tok_neg),
      .tok_mirror_i(tok_mirror),
      .tok_phase_i(tok_phase),
      .tok_part_i(tok_part),
      .tok_first_i(tok_first),
      .tok_last_i(tok_last),
      .tok_sig_i(tok_sig),
      .tok_sign_i(tok_sign),
      .tok_exp_i(tok_exp),
      .man_i(man),
      .max_i(max_code),
      .over_i(over_code),
      .sign_mask_i(sign_mask),
      .int_i(is_int),
      .data_i(blk_data),
      .valid_o(line_valid),
      .ready_i(line_ready),
      .data_o(line),
      .busy_o(fmt_busy)
  );
  rgu_store u_store (
      .clk_i,
      .rst_ni(rst_n),
      .stream_i,
      .cmd_valid_i(cmd_valid),
      .cmd_ready_o(cmd_ready),
      .cmd_addr_i(cmd_addr),
      .cmd_row_i(cmd_row),
      .cmd_col_i(cmd_col),
      .cmd_len_i(cmd_len),
      .cmd_off_i(cmd_off),
      .valid_i(line_valid),
      .ready_o(line_ready),
      .data_i(line),
      .wr_cmd_valid_o, .wr_cmd_ready_i, .wr_cmd_addr_o, .wr_cmd_len_o, .wr_cmd_off_o, .wr_valid_o,
      .wr_ready_i, .wr_data_o, .st_valid_o, .st_ready_i, .st_data_o, .st_keep_o, .st_last_o,
      .busy_o(store_busy)
  );

  // ---- end of job, counters ------------------------------------------------------------------------
  logic drain_q, done;
  assign done = drain_q && !cmd_valid && !fmt_busy && !store_busy;
  assign done_o = done;
  always_ff @(posedge clk_i) begin
    if (!rst_n) drain_q <= 1'b0;
    else drain_q <= (drain_q || job_last) && !done;
  end

  assign items_o = cmd_valid && cmd_ready ? cmd_items : 8'd0;
  assign busy_o = mults_o || (adv && (tok_valid || blk_rd_en));
  assign stall_out_o = (wr_valid_o && !wr_ready_i) || (st_valid_o && !st_ready_i);
  assign stall_in_o = !tab_valid_i && !gen_busy && !full && !fmt_busy && !store_busy;
endmodule
