// From bank data to output lines: 32 conversions a step, then 64-byte lines.
//
// A token (see rgu_reader) comes with its bank data and moves on with en_i; ready_o says that it can.
// Two enabled cycles for conversion, then lines leave one a cycle through a register: bf16 and fp16 give
// two lines a token of one parity, one line otherwise; 8-bit formats one line a token, or one of two
// tokens with both parities; fp32 four or two. Only the lines tok_first_i..tok_last_i are made.
// Columns of the other parity are +0 (one parity in the job). 32 multipliers 31x24.
module rgu_format (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             both_i,
    input  logic [3:0]       format_i,
    input  logic             en_i,
    output logic             ready_o,
    input  logic             tok_valid_i,
    input  logic [31:0]      tok_neg_i,
    input  logic             tok_mirror_i,
    input  logic             tok_phase_i,
    input  logic             tok_part_i,
    input  logic [1:0]       tok_first_i,
    input  logic [1:0]       tok_last_i,
    input  logic [23:0]      tok_sig_i,
    input  logic             tok_sign_i,
    input  logic [11:0]      tok_exp_i,
    input  logic [4:0]       man_i,
    input  logic [30:0]      max_i,
    input  logic [30:0]      over_i,
    input  logic [31:0]      sign_mask_i,
    input  logic             int_i,
    input  logic [32*31-1:0] data_i,
    output logic             valid_o,
    input  logic             ready_i,
    output logic [511:0]     data_o,
    output logic             busy_o
);
  localparam logic [31:0] Par = 32'h9669_6996;  // parity of the lane number

  // ---- conversion ----------------------------------------------------------------------------------
  logic [2:0] v_q;
  logic [32*32-1:0] code;
  logic conv_en;
  assign conv_en = en_i && (tok_valid_i || v_q[1:0] != 2'b00);

  for (genvar l = 0; l < 32; l++) begin : gen_lane
    mr_fx_to_fp u_conv (
        .clk_i,
        .en_i(conv_en),
        .w_i(data_i[l*31+:31]),
        .sig_i(tok_sig_i),
        .sign_i(tok_sign_i ^ tok_neg_i[l]),
        .exp_i(tok_exp_i),
        .man_i, .max_i, .over_i, .sign_mask_i, .int_i,
        .code_o(code[l*32+:32])
    );
  end

  // what travels along: {mirror, phase, part, first, last}
  logic [6:0] a_q, b_q, c_q;
  logic       mirror, phase, part;
  logic [1:0] last, line_q, line;
  assign {mirror, phase, part} = c_q[6:4];
  assign last = c_q[1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) v_q <= '0;
    else if (en_i) v_q <= {v_q[1:0], tok_valid_i};
    if (conv_en) begin
      a_q <= {tok_mirror_i, tok_phase_i, tok_part_i, tok_first_i, tok_last_i};
      b_q <= a_q;
      c_q <= b_q;
    end
  end

  // ---- lines ---------------------------------------------------------------------------------------
  logic byte_wide, word_wide, collect, out_free, emit, out_q, begun_q, sent_q;
  logic [511:0] line_data_q;
  logic [255:0] half_q;

  assign byte_wide = format_i != rgu_pkg::FMT_FP32 && format_i[3:1] != 3'd0;
  assign word_wide = format_i == rgu_pkg::FMT_FP32;
  assign collect = byte_wide && both_i && !part;  // first half of a line: kept, not sent
  assign out_free = !out_q || ready_i;
  assign emit = v_q[2] && !collect && !sent_q && out_free;
  assign line = begun_q ? line_q : c_q[3:2];
  assign ready_o = !v_q[2] || collect || sent_q || (out_free && line == last);
  assign valid_o = out_q;
  assign data_o = line_data_q;
  assign busy_o = tok_valid_i || v_q != '0 || out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q   <= 1'b0;
      begun_q <= 1'b0;
      sent_q  <= 1'b0;
    end else begin
      out_q <= emit || (out_q && !ready_i);
      // begun: some lines of the token are out; sent: all of them, but it cannot move on yet
      begun_q <= !en_i && (begun_q || emit);
      sent_q  <= !en_i && (sent_q || (emit && line == last));
    end
    if (emit) line_q <= line + 2'd1;
  end

  // Lane l of a token goes to column l of its half segment, or 31 - l in a mirror row. show[c]: column c
  // of half `top` of the segment is of the class that this job has.
  logic        top;
  logic [31:0] show;
  assign top = word_wide ? line[1] : line[0];
  assign show = both_i ? '1 : ~(Par ^ {32{phase ^ (byte_wide ? 1'b0 : top)}});

  always_ff @(posedge clk_i) begin : p_lines
    logic [32*32-1:0] v;
    logic [255:0] bytes;
    if (emit || (v_q[2] && collect)) begin
      v = code;
      if (mirror) begin
        for (int l = 0; l < 32; l++) v[l*32+:32] = code[(31-l)*32+:32];
      end
      if (word_wide) begin
        for (int l = 0; l < 16; l++) begin
          line_data_q[l*32+:32] <= line[0] ? v[(16+l)*32+:32] & {32{show[16+l]}}
                                           : v[l*32+:32] & {32{show[l]}};
        end
      end else if (byte_wide) begin
        for (int l = 0; l < 32; l++) bytes[l*8+:8] = v[l*32+:8];
        if (both_i) begin
          if (part) line_data_q <= {bytes, half_q};
          else half_q <= bytes;
        end else begin
          for (int l = 0; l < 32; l++) begin
            line_data_q[l*8+:8] <= bytes[l*8+:8] & {8{show[l]}};
            line_data_q[256+l*8+:8] <= bytes[l*8+:8] & {8{!show[l]}};
          end
        end
      end else begin
        for (int l = 0; l < 32; l++) line_data_q[l*16+:16] <= v[l*32+:16] & {16{show[l]}};
      end
    end
  end
endmodule
