// Constants and small functions shared by every block of the rotor generation unit.
// The arithmetic they belong to is docs/rgu-arithmetic.md; nothing here has state or latency.
package rgu_pkg;
  // A top uses only some of the constants of its unit.
  /* verilator lint_off UNUSEDPARAM */
  // Shape of the datapath.
  localparam int unsigned LANES = 32;       // blades a table word, k[4:0]
  localparam int unsigned MAX_N = 10;       // largest algebra
  localparam int unsigned MAX_TERMS = 32;   // terms a chunk
  localparam int unsigned TAB_AW = 9;       // table words a side, log2 (words of 32 lanes)
  localparam int unsigned TERM_W = 5;       // term index
  localparam int unsigned WORD_W = 4;       // word of a term's table, k[n-2:5]

  // Widths of the numbers on the way, two's complement.
  localparam int unsigned TRIG_W = 22;      // sine and cosine, 20 fraction bits, exact +-1
  localparam int unsigned EXP_W = 24;       // expansion state, 22 fraction bits
  localparam int unsigned GAIN_W = 23;      // |gain| * 2^(22-e), 0 .. 2^22
  localparam int unsigned E_W = 10;         // chunk exponent e, signed
  localparam int unsigned R_W = 22;         // r table, 20 fraction bits
  localparam int unsigned S_W = 20;         // s table, 18 fraction bits
  localparam int unsigned TRIG_FRAC = 20;
  localparam int unsigned EXP_FRAC = 22;
  localparam int unsigned R_FRAC = 20;
  localparam int unsigned S_FRAC = 18;
  localparam int unsigned ACC_FRAC = 24;    // accumulator and everything after it
  localparam int unsigned PROD_SHIFT = R_FRAC + S_FRAC - ACC_FRAC;
  localparam int unsigned EXP_LANES = 16;   // butterfly outputs a cycle in the expander

  // What travels with a term from the record to the tables:
  // {e[9:0], chunk row[15:0], chunk column[15:0], row scale half, last chunk of its row,
  //  last chunk of the job, last term of the chunk, odd, gain is negative}; a header adds g below.
  localparam int unsigned CTX_W = 48;
  localparam int unsigned HDR_W = CTX_W + GAIN_W;

  // Output formats, MODE[7:4].
  localparam logic [3:0] FMT_BF16 = 4'd0;
  localparam logic [3:0] FMT_FP16 = 4'd1;
  localparam logic [3:0] FMT_FP8E4M3 = 4'd2;
  localparam logic [3:0] FMT_FP8E5M2 = 4'd3;
  localparam logic [3:0] FMT_INT8 = 4'd4;
  localparam logic [3:0] FMT_FP32 = 4'd5;

  // ERROR register codes.
  localparam logic [7:0] ERR_OK = 8'd0;
  localparam logic [7:0] ERR_N = 8'd1;
  localparam logic [7:0] ERR_TERMS = 8'd2;
  localparam logic [7:0] ERR_WINDOW = 8'd3;
  localparam logic [7:0] ERR_FORMAT = 8'd4;
  localparam logic [7:0] ERR_ALIGN = 8'd5;
  localparam logic [7:0] ERR_READ = 8'd6;
  localparam logic [7:0] ERR_WRITE = 8'd7;

  // g(M)_i = XOR of M_j over j < i: the mask with s(A, M) = parity(A & g(M)).
  function automatic logic [MAX_N-1:0] g_mask(input logic [MAX_N-1:0] m);
    logic acc;
    acc = 1'b0;
    for (int i = 0; i < MAX_N; i++) begin
      g_mask[i] = acc;
      acc = acc ^ m[i];
    end
  endfunction

  // Bank of lane 0 of a table word: banks are lanes XOR this, so that the sixteen values the
  // expander makes in a cycle, which share K[n-5:1], fall into sixteen different banks.
  function automatic logic [4:0] skew(input logic n10, input logic [WORD_W-1:0] word);
    skew = n10 ? {1'b0, word[3:1], 1'b0} : {2'b00, word[1:0], 1'b0};
  endfunction
  /* verilator lint_on UNUSEDPARAM */
endpackage
