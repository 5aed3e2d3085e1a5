// From the seed image to tables: everything before the tile generator and the applier.
//
//   read stream -> rgu_fetch -> rgu_sincos -> rgu_expand -> rgu_tables -> consumer
//
// Walks the chunks o0..o1 x i0..i1 of a projection, o-major, every chunk with all its terms, and offers
// a chunk's r' and s' tables as soon as they are whole. The next chunks are fetched and expanded while
// the consumer reads: 512 table words a side form a ring of term slots (2^(n-6) words each), so a chunk
// of up to 16 terms (n = 10) or any number (n = 8) overlaps fully with the one before.
//
// Job fields and the read-side configuration are stable from start_i until the consumer has popped the
// chunk marked tab_last_o. start_i also clears what an abandoned job may have left;
// the data of its reads must have arrived by then.
// Reads: commands never ask for more than there is room for, so rd_ready_o never depends on the
// consumer and other masters may share the read channel. At most 4 commands are outstanding, and none
// is longer than 4096 bytes.
module rgu_seed (
    input  logic         clk_i,
    input  logic         rst_ni,
    // job
    input  logic         start_i,
    input  logic         n10_i,         // 1: n = 10, 0: n = 8
    input  logic [  5:0] terms_i,       // 1..32
    input  logic [ 63:0] seeds_i,       // seed image, 64-byte aligned
    input  logic         row_scale_i,   // there is a row scale array
    input  logic [ 63:0] rs_base_i,     // row scale array, 64-byte aligned
    input  logic [ 15:0] chunks_in_i,   // chunk columns of the projection
    input  logic [ 15:0] o0_i,          // first and last chunk row
    input  logic [ 15:0] o1_i,
    input  logic [ 15:0] i0_i,          // first and last chunk column
    input  logic [ 15:0] i1_i,
    input  logic [ 31:0] visits_i,      // times each chunk row is walked before the next, 0 is 1
    output logic         busy_o,        // fetching or expanding
    output logic         mults_busy_o,  // the butterfly multipliers work this cycle
    // read commands and their data, dense, in order (the tail of a command never shares a beat)
    output logic         cmd_valid_o,
    input  logic         cmd_ready_i,
    output logic [ 63:0] cmd_addr_o,    // 64-byte aligned
    output logic [ 12:0] cmd_len_o,     // bytes, a multiple of 64, <= 4096
    input  logic         rd_valid_i,
    output logic         rd_ready_o,
    input  logic [511:0] rd_data_i,
    // row scales of the chunk rows in work, two halves; valid whenever tab_valid_o is for that row
    input  logic         rs_en_i,
    input  logic [ 10:0] rs_addr_i,     // {half as given by tab_rs_half_o, row in the chunk}
    output logic [ 31:0] rs_data_o,     // float32, the cycle after rs_en_i
    input  logic         rs_pop_i,      // pulse: the oldest chunk row's scales are no longer needed
    // oldest chunk whose tables are whole
    output logic         tab_valid_o,
    output logic [  9:0] tab_e_o,       // exponent of the chunk, signed
    output logic [ 31:0] tab_odd_o,     // bit t: term t is odd
    output logic [ 15:0] tab_row_o,     // chunk row and column
    output logic [ 15:0] tab_col_o,
    output logic         tab_rs_half_o,
    output logic         tab_row_last_o,  // last chunk of its chunk row
    output logic         tab_last_o,    // last chunk of the job
    input  logic         tab_pop_i,     // pulse while tab_valid_o: frees the chunk after this cycle's read
    // table reads of the oldest chunk: data the cycle after rd_en_i, lane l = k[4:0], held without rd_en_i
    input  logic         rd_en_i,
    input  logic [  8:0] r_addr_i,      // {term[4:0], word[3:0]}, word = k[n-2:5]
    input  logic [  8:0] s_addr_i,
    input  logic [  4:0] s_xor_i,       // lane l of s_data_o is lane l ^ s_xor_i of the word
    output logic [703:0] r_data_o,      // 32 x 22 bits, 20 fraction bits
    output logic [639:0] s_data_o       // 32 x 20 bits, 18 fraction bits
);
  // record headers and angles, in the order the expansion takes them
  logic hdr_valid, hdr_ready, ang_valid, ang_ready;
  logic [rgu_pkg::HDR_W-1:0] hdr;
  logic [15:0] ang;
  logic fetch_busy;

  rgu_fetch u_fetch (
      .clk_i, .rst_ni, .start_i, .n10_i, .terms_i, .seeds_i, .row_scale_i, .rs_base_i, .chunks_in_i,
      .o0_i, .o1_i, .i0_i, .i1_i, .visits_i, .cmd_valid_o, .cmd_ready_i, .cmd_addr_o, .cmd_len_o, .rd_valid_i,
      .rd_ready_o, .rd_data_i, .rs_en_i, .rs_addr_i, .rs_data_o, .rs_pop_i,
      .busy_o(fetch_busy),
      .hdr_valid_o(hdr_valid),
      .hdr_ready_i(hdr_ready),
      .hdr_o(hdr),
      .ang_valid_o(ang_valid),
      .ang_ready_i(ang_ready),
      .ang_o(ang)
  );

  logic trig_valid, trig_ready;
  logic [21:0] trig_c, trig_s;

  rgu_sincos u_sincos (
      .clk_i, .rst_ni,
      .clear_i(start_i),
      .valid_i(ang_valid),
      .ready_o(ang_ready),
      .angle_i(ang),
      .valid_o(trig_valid),
      .ready_i(trig_ready),
      .cos_o(trig_c),
      .sin_o(trig_s)
  );

  logic slot_ready, wr_valid, wr_side, wr_done, exp_busy;
  logic [4:0] wr_word;
  logic [383:0] wr_data;
  logic [rgu_pkg::CTX_W-1:0] wr_ctx;

  rgu_expand u_expand (
      .clk_i, .rst_ni,
      .clear_i(start_i),
      .n10_i,
      .hdr_valid_i(hdr_valid),
      .hdr_ready_o(hdr_ready),
      .hdr_i(hdr),
      .trig_valid_i(trig_valid),
      .trig_ready_o(trig_ready),
      .cos_i(trig_c),
      .sin_i(trig_s),
      .slot_ready_i(slot_ready),
      .wr_valid_o(wr_valid),
      .wr_side_o(wr_side),
      .wr_word_o(wr_word),
      .wr_data_o(wr_data),
      .wr_done_o(wr_done),
      .wr_ctx_o(wr_ctx),
      .busy_o(exp_busy),
      .mults_busy_o
  );

  rgu_tables u_tables (
      .clk_i, .rst_ni,
      .clear_i(start_i),
      .n10_i, .terms_i,
      .slot_ready_o(slot_ready),
      .wr_valid_i(wr_valid),
      .wr_side_i(wr_side),
      .wr_word_i(wr_word),
      .wr_data_i(wr_data),
      .wr_done_i(wr_done),
      .wr_ctx_i(wr_ctx),
      .tab_valid_o, .tab_e_o, .tab_odd_o, .tab_row_o, .tab_col_o, .tab_rs_half_o, .tab_row_last_o,
      .tab_last_o, .tab_pop_i, .rd_en_i, .r_addr_i, .s_addr_i, .s_xor_i, .r_data_o, .s_data_o
  );

  assign busy_o = fetch_busy | exp_busy;

  logic check;
  assign check = rst_ni && !start_i;
  mr_stream_check #(.Width(77)) u_check_cmd (
      .clk_i, .rst_ni(check), .valid_i(cmd_valid_o), .ready_i(cmd_ready_i),
      .data_i({cmd_addr_o, cmd_len_o}), .keep_i(1'b1), .last_i(1'b0)
  );
  mr_stream_check #(.Width(rgu_pkg::HDR_W)) u_check_hdr (
      .clk_i, .rst_ni(check), .valid_i(hdr_valid), .ready_i(hdr_ready), .data_i(hdr), .keep_i(1'b1),
      .last_i(1'b0)
  );
  mr_stream_check #(.Width(16)) u_check_ang (
      .clk_i, .rst_ni(check), .valid_i(ang_valid), .ready_i(ang_ready), .data_i(ang), .keep_i(1'b1),
      .last_i(1'b0)
  );
  mr_stream_check #(.Width(44)) u_check_trig (
      .clk_i, .rst_ni(check), .valid_i(trig_valid), .ready_i(trig_ready), .data_i({trig_c, trig_s}),
      .keep_i(1'b1), .last_i(1'b0)
  );
endmodule
