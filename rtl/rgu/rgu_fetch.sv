// Reads the seed image and the row scales of a job, well ahead of their use.
//
// Commands: for every chunk row o = o0..o1 its row scales (when there are any), then the records of
// chunks i0..i1 with all terms, in groups of up to 4 (n = 8) or 2 (n = 10) records; all of that
// visits_i times before the next row (apply mode: once a group of vectors). A command is given
// only when its data have a place: two groups of records, two chunk rows of scales. So the read stream
// is never held up (rd_ready_o is 1) and neither is anyone who shares it.
// Records leave as one header and then 2P angles in the order of the expansion: planes in reverse
// lexicographic order, r before s. One halfword a cycle, from the second cycle after a record is whole.
// The first command follows start_i by six cycles; one 16x23 multiplier makes the addresses.
module rgu_fetch (
    input  logic                      clk_i,
    input  logic                      rst_ni,
    // job, stable from start_i
    input  logic                      start_i,
    input  logic                      n10_i,
    input  logic [               5:0] terms_i,
    input  logic [              63:0] seeds_i,
    input  logic                      row_scale_i,
    input  logic [              63:0] rs_base_i,
    input  logic [              15:0] chunks_in_i,
    input  logic [              15:0] o0_i,
    input  logic [              15:0] o1_i,
    input  logic [              15:0] i0_i,
    input  logic [              15:0] i1_i,
    input  logic [              31:0] visits_i,  // 0 is 1
    output logic                      busy_o,
    // read commands and data
    output logic                      cmd_valid_o,
    input  logic                      cmd_ready_i,
    output logic [              63:0] cmd_addr_o,
    output logic [              12:0] cmd_len_o,
    input  logic                      rd_valid_i,
    output logic                      rd_ready_o,
    input  logic [             511:0] rd_data_i,
    // row scales
    input  logic                      rs_en_i,
    input  logic [              10:0] rs_addr_i,
    output logic [              31:0] rs_data_o,
    input  logic                      rs_pop_i,
    // records
    output logic                      hdr_valid_o,
    input  logic                      hdr_ready_i,
    output logic [rgu_pkg::HDR_W-1:0] hdr_o,
    output logic                      ang_valid_o,
    input  logic                      ang_ready_i,
    output logic [              15:0] ang_o
);
  logic [1:0] beats;     // of a record
  logic [2:0] group;     // records of a full group
  logic [6:0] rs_beats;  // of a chunk row's scales
  assign beats = n10_i ? 2'd3 : 2'd2;
  assign group = n10_i ? 3'd2 : 3'd4;
  assign rs_beats = n10_i ? 7'd64 : 7'd16;

  // ---- commands ----------------------------------------------------------------------------------
  typedef enum logic [2:0] {IDLE, MUL_ROW, MUL_COL, MUL_OFF, MUL_LEN, FIRST, SCALES, RECORDS} state_e;
  state_e state_q, state_d;

  logic [22:0] row_beats_q;                  // beats of a chunk row of the image
  logic [21:0] row_records_q, left_q;        // records of the window in a chunk row, and still to ask for
  logic [63:0] row_addr_q, addr_q, rs_addr_q;
  logic [15:0] o_q;
  logic [15:0] mul_a;
  logic [22:0] mul_b;
  logic [38:0] mul_q;
  logic [6:0] chunk_beats;
  logic [2:0] ask;                           // records of the next group
  logic [3:0] ask_beats;
  logic last_row, last_visit, give, give_rs, give_rec, row_done;
  logic [31:0] visit_q;
  logic [1:0] rs_held_q;                     // row scale halves given away
  logic [1:0] full_q;                        // record halves given away
  logic [2:0] size0_q, size1_q;              // records of each half
  logic fill_half_q;

  assign chunk_beats = {terms_i, 1'b0} + (n10_i ? {1'b0, terms_i} : 7'd0);
  always_comb begin
    mul_a = o0_i;
    mul_b = mul_q[22:0];
    case (state_q)
      MUL_ROW: begin
        mul_a = chunks_in_i;
        mul_b = {16'd0, chunk_beats};
      end
      MUL_COL: begin
        mul_a = i0_i;
        mul_b = {16'd0, chunk_beats};
      end
      MUL_OFF: begin
        mul_a = o0_i;
        mul_b = row_beats_q;
      end
      default: begin
        mul_a = i1_i - i0_i + 16'd1;
        mul_b = {17'd0, terms_i};
      end
    endcase
  end

  assign ask = left_q >= {19'd0, group} ? group : left_q[2:0];
  assign ask_beats = n10_i ? {ask, 1'b0} + {1'b0, ask} : {ask, 1'b0};
  assign last_row = o_q == o1_i;
  assign last_visit = visit_q + 32'd1 >= visits_i;
  assign give = cmd_valid_o && cmd_ready_i;
  assign give_rs = give && state_q == SCALES;
  assign give_rec = give && state_q == RECORDS;
  assign row_done = give_rec && left_q == {19'd0, ask};

  assign cmd_valid_o = !start_i && ((state_q == SCALES && rs_held_q != 2'd2) ||
                                    (state_q == RECORDS && !full_q[fill_half_q]));
  assign cmd_addr_o = state_q == SCALES ? rs_addr_q : addr_q;
  assign cmd_len_o = state_q == SCALES ? {rs_beats, 6'd0} : {3'd0, ask_beats, 6'd0};

  always_comb begin
    state_d = state_q;
    case (state_q)
      IDLE: state_d = IDLE;
      MUL_ROW: state_d = MUL_COL;
      MUL_COL: state_d = MUL_OFF;
      MUL_OFF: state_d = MUL_LEN;
      MUL_LEN: state_d = FIRST;
      FIRST: state_d = row_scale_i ? SCALES : RECORDS;
      SCALES: if (give_rs) state_d = RECORDS;
      RECORDS: if (row_done) state_d = last_row && last_visit ? IDLE : row_scale_i ? SCALES : RECORDS;
      default: state_d = IDLE;
    endcase
    if (start_i) state_d = MUL_ROW;
  end

  logic rec_freed;   // the reader is done with the oldest group
  logic read_half_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else state_q <= state_d;

    if (state_q != IDLE) begin
      mul_q <= {23'd0, mul_a} * {16'd0, mul_b};
      case (state_q)
        MUL_COL: row_beats_q <= mul_q[22:0];
        MUL_OFF: row_addr_q <= seeds_i + {35'd0, mul_q[22:0], 6'd0};
        MUL_LEN: row_addr_q <= row_addr_q + {19'd0, mul_q, 6'd0};
        FIRST: begin
          row_records_q <= mul_q[21:0];
          left_q <= mul_q[21:0];
          addr_q <= row_addr_q;
          rs_addr_q <= rs_base_i + (n10_i ? {36'd0, o0_i, 12'd0} : {38'd0, o0_i, 10'd0});
          o_q <= o0_i;
          visit_q <= 32'd0;
        end
        RECORDS: begin
          if (row_done) begin
            left_q <= row_records_q;
            addr_q <= row_addr_q;
            visit_q <= visit_q + 32'd1;
            if (last_visit) begin
              visit_q <= 32'd0;
              o_q <= o_q + 16'd1;
              row_addr_q <= row_addr_q + {35'd0, row_beats_q, 6'd0};
              addr_q <= row_addr_q + {35'd0, row_beats_q, 6'd0};
              rs_addr_q <= rs_addr_q + {51'd0, rs_beats, 6'd0};
            end
          end else if (give_rec) begin
            left_q <= left_q - {19'd0, ask};
            addr_q <= addr_q + {54'd0, ask_beats, 6'd0};
          end
        end
        default: ;
      endcase
    end

    if (give_rec && !fill_half_q) size0_q <= ask;
    if (give_rec && fill_half_q) size1_q <= ask;
    if (!rst_ni || start_i) begin
      rs_held_q <= 2'd0;
      full_q <= 2'b00;
      fill_half_q <= 1'b0;
    end else begin
      rs_held_q <= rs_held_q + {1'b0, give_rs} - {1'b0, rs_pop_i && row_scale_i};
      if (give_rec) begin
        full_q[fill_half_q] <= 1'b1;
        fill_half_q <= !fill_half_q;
      end
      if (rec_freed) full_q[read_half_q] <= 1'b0;
    end
  end

  // ---- data: the kind and length of every command under way ---------------------------------------
  logic [7:0] kind_q[0:3];  // {row scales, beats}
  logic [1:0] kind_in_q, kind_out_q;
  logic kind_rs;
  logic [6:0] kind_beats, beat_q;
  logic beat_last, rs_half_q, rec_half_q, rec_whole;
  logic [1:0] rec_beat_q;

  assign rd_ready_o = 1'b1;
  assign {kind_rs, kind_beats} = kind_q[kind_out_q];
  assign beat_last = rd_valid_i && beat_q == kind_beats - 7'd1;
  assign rec_whole = rd_valid_i && !kind_rs && rec_beat_q == beats - 2'd1;

  always_ff @(posedge clk_i) begin
    if (give) kind_q[kind_in_q] <= {give_rs, give_rs ? rs_beats : {3'd0, ask_beats}};
    if (!rst_ni || start_i) begin
      kind_in_q <= 2'd0;
      kind_out_q <= 2'd0;
      beat_q <= 7'd0;
      rec_beat_q <= 2'd0;
      rs_half_q <= 1'b0;
      rec_half_q <= 1'b0;
    end else begin
      if (give) kind_in_q <= kind_in_q + 2'd1;
      if (rd_valid_i) begin
        beat_q <= beat_last ? 7'd0 : beat_q + 7'd1;
        if (!kind_rs) rec_beat_q <= rec_whole ? 2'd0 : rec_beat_q + 2'd1;
      end
      if (beat_last) begin
        kind_out_q <= kind_out_q + 2'd1;
        if (kind_rs) rs_half_q <= !rs_half_q;
        else rec_half_q <= !rec_half_q;
      end
    end
  end

  // ---- row scales --------------------------------------------------------------------------------
  logic [511:0] rs_mem[0:127];
  logic [511:0] rs_word_q;
  logic [3:0] rs_sel_q;
  always_ff @(posedge clk_i) begin
    if (rd_valid_i && kind_rs) rs_mem[{rs_half_q, beat_q[5:0]}] <= rd_data_i;
    if (rs_en_i) begin
      rs_word_q <= rs_mem[rs_addr_i[10:4]];
      rs_sel_q <= rs_addr_i[3:0];
    end
  end
  assign rs_data_o = rs_word_q[{rs_sel_q, 5'd0}+:32];

  // ---- records: a header, then the angles from the last plane to the first ------------------------
  logic [511:0] rec_mem[0:15];
  logic [511:0] rec_word_q;
  logic [3:0] whole_q;            // records whole and not yet read to their end
  logic [2:0] rec_q;              // record in its group
  logic [3:0] rec_base_q;         // its first beat
  logic [6:0] r_pos_q, s_pos_q;   // halfwords of the next angles
  logic [6:0] pos;
  logic head_q, side_q;           // header next; else the side whose angle is next
  logic step, read_last, group_last;
  logic out_valid_q, out_head_q;
  logic [4:0] out_sel_q;
  logic out_take;
  logic [15:0] ctx_o_q, ctx_i_q;  // of the record being read
  logic [5:0] ctx_term_q;
  logic ctx_half_q, chunk_end, row_end, visits_end, job_end;
  logic [31:0] ctx_visit_q;

  assign pos = head_q ? 7'd0 : side_q ? s_pos_q : r_pos_q;
  assign step = whole_q != 4'd0 && (!out_valid_q || out_take);
  assign read_last = step && !head_q && side_q && r_pos_q == 7'd3;
  assign group_last = rec_q == (read_half_q ? size1_q : size0_q) - 3'd1;
  assign rec_freed = read_last && group_last;
  assign chunk_end = ctx_term_q == terms_i - 6'd1;
  assign row_end = ctx_i_q == i1_i;
  assign visits_end = ctx_visit_q + 32'd1 >= visits_i;
  assign job_end = row_end && visits_end && ctx_o_q == o1_i;

  always_ff @(posedge clk_i) begin
    if (rd_valid_i && !kind_rs) rec_mem[{rec_half_q, beat_q[2:0]}] <= rd_data_i;
    if (step) begin
      rec_word_q <= rec_mem[rec_base_q + {2'd0, pos[6:5]}];
      out_sel_q <= pos[4:0];
      out_head_q <= head_q;
      if (head_q) begin
        r_pos_q <= n10_i ? 7'd48 : 7'd31;
        s_pos_q <= n10_i ? 7'd93 : 7'd59;
      end else if (side_q) s_pos_q <= s_pos_q - 7'd1;
      else r_pos_q <= r_pos_q - 7'd1;
    end
    if (!rst_ni || start_i) begin
      whole_q <= 4'd0;
      rec_q <= 3'd0;
      rec_base_q <= 4'd0;
      read_half_q <= 1'b0;
      head_q <= 1'b1;
      side_q <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      whole_q <= whole_q + {3'd0, rec_whole} - {3'd0, read_last};
      out_valid_q <= step || (out_valid_q && !out_take);
      if (step) begin
        head_q <= read_last;
        side_q <= !head_q && !side_q;
      end
      if (read_last) begin
        rec_q <= group_last ? 3'd0 : rec_q + 3'd1;
        rec_base_q <= group_last ? {!read_half_q, 3'd0} : rec_base_q + {2'd0, beats};
        if (group_last) read_half_q <= !read_half_q;
      end
    end
  end

  // The header leaves the angles' way at once, so that the next term's angles run ahead of its start.
  logic hdr_take, hdr_valid_q;
  logic [rgu_pkg::HDR_W-1:0] hdr_q;
  assign hdr_take = out_valid_q && out_head_q && (!hdr_valid_q || hdr_ready_i);
  assign out_take = out_head_q ? hdr_take : ang_ready_i;
  assign ang_valid_o = out_valid_q && !out_head_q;
  assign ang_o = rec_word_q[{out_sel_q, 4'd0}+:16];
  assign hdr_valid_o = hdr_valid_q;
  assign hdr_o = hdr_q;

  always_ff @(posedge clk_i) begin
    if (hdr_take) begin
      hdr_q <= {rec_word_q[41:32], ctx_o_q, ctx_i_q, ctx_half_q, row_end, job_end, chunk_end,
                rec_word_q[30], rec_word_q[31], rec_word_q[22:0]};
    end
    if (!rst_ni || start_i) begin
      hdr_valid_q <= 1'b0;
      ctx_o_q <= o0_i;
      ctx_i_q <= i0_i;
      ctx_term_q <= 6'd0;
      ctx_half_q <= 1'b0;
      ctx_visit_q <= 32'd0;
    end else begin
      hdr_valid_q <= hdr_take || (hdr_valid_q && !hdr_ready_i);
      if (hdr_take) begin
        ctx_term_q <= chunk_end ? 6'd0 : ctx_term_q + 6'd1;
        if (chunk_end) ctx_i_q <= row_end ? i0_i : ctx_i_q + 16'd1;
        if (chunk_end && row_end) begin
          ctx_visit_q <= visits_end ? 32'd0 : ctx_visit_q + 32'd1;
          if (visits_end) ctx_o_q <= ctx_o_q + 16'd1;
          ctx_half_q <= !ctx_half_q;
        end
      end
    end
  end

  assign busy_o = state_q != IDLE || full_q != 2'b00 || kind_in_q != kind_out_q || out_valid_q ||
                  hdr_valid_q;

  always_ff @(posedge clk_i) begin
    if (rst_ni && !start_i) begin
      assert (!(rs_pop_i && row_scale_i && rs_held_q == 2'd0));
      assert (!(rd_valid_i && !kind_rs && !full_q[rec_half_q]));
    end
  end
endmodule
