// Records that travel through the merge engine; nothing here has state or latency.
//
// The engine is one pipeline that never stalls. A beat of a contribution is in stage k k cycles after it
// left the aligner; beats of statistics and of vectors share the stages:
//   1..8   weight of a contribution against what its head has gathered: 2^-|difference of exponents|
//   9..13  d' = d * weight + d                14..18 1/d', log2 d'
//   16..20 o' = o * weight + o                21..23 o' / d', rounded; lse
//   24..26 result beat assembled, written, summed
package nic_merge_pkg;
  /* verilator lint_off UNUSEDPARAM */ // a block uses only some of the constants of its unit
  localparam int unsigned LANES = 32;      // values of 16 bits in a beat
  localparam int unsigned HEADS = 8;       // heads in a beat of statistics
  localparam int unsigned WEIGHT_W = 38;   // {newer, pass, shift[8:0], w[26:0]}
  localparam int unsigned FACTOR_W = 38;   // {class[1:0], shift[8:0], r[26:0]}

  // What a head's result is: a quotient, o times 0 (d is infinite), a NaN, or empty.
  localparam logic [1:0] CLASS_NORMAL = 2'd0;
  localparam logic [1:0] CLASS_ZERO = 2'd1;
  localparam logic [1:0] CLASS_NAN = 2'd2;
  localparam logic [1:0] CLASS_EMPTY = 2'd3;

  localparam logic [2:0] DT_FP16 = 3'd2; // nic_frame_pkg's codes
  localparam logic [2:0] DT_FP32 = 3'd3;
  localparam logic [2:0] DT_INT32 = 3'd4;

  // A contribution whose bytes are on their way.
  typedef struct packed {
    logic [5:0]  slot;
    logic        reduce;
    logic [2:0]  dtype;
    logic [1:0]  rop;
    logic        nat;
    logic        first;
    logic        last;
    logic [9:0]  heads;
    logic [12:0] dim;
    logic [12:0] total;       // values
    logic [6:0]  stat_beats;
    logic [7:0]  beats;       // of the payload
    logic [4:0]  src_off;     // where it begins in its first source beat, in 16-bit words
    logic [7:0]  src_beats;
    logic [5:0]  whole;       // heads that fit a beat, and what is left of the beat
    logic [5:0]  part;
    logic [31:0] pattern;     // bit i: a head begins i values after another one
  } frame_t;
  localparam int unsigned FRAME_W = 123;

  // A beat of it.
  typedef struct packed {
    logic [5:0]  slot;
    logic        reduce;
    logic [2:0]  dtype;
    logic [1:0]  rop;
    logic        nat;
    logic        first;
    logic        last;
    logic [7:0]  index;       // among the beats of statistics, or of vectors
    logic [9:0]  pos;         // ring position of the first value's head; statistics: of the beat's first
    logic [31:0] begins;      // bit i: value i > 0 is the first of a head
    logic [5:0]  count;       // values or heads in this beat
    logic        sof;         // first beat of its contribution
    logic        eof;
    logic [7:0]  res_beat;    // where the result goes
    logic        res_write;   // this beat completes a beat of the result
  } beat_t;
  localparam int unsigned BEAT_W = 82;
  /* verilator lint_on UNUSEDPARAM */
endpackage
