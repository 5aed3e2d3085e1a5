// Records between the stages of the transmitter.
package nic_tx_pkg;
  // A block uses only some of the constants.
  /* verilator lint_off UNUSEDPARAM */
  // One frame that is to be sent.
  typedef struct packed {
    logic         raw;     // as it lies
    logic         lone;    // no payload comes from a stream: none, or inline
    logic         done;    // the last frame of a result
    logic [5:0]   slot;    // of that result
    logic         retrans;
    logic         host;    // to the own host
    logic         direct;  // to rank, else to the rank that the job table gives
    logic [7:0]   rank;
    logic [13:0]  len;     // raw: bytes of the frame, else of the payload
    logic [15:0]  sum;     // of the payload
    logic [255:0] hdr;
    logic [63:0]  pay;     // inline payload, zero behind its end
  } frame_t;

  // The same with its headers made; byte 0 of head in [7:0]: 74 bytes of headers and 8 of inline payload.
  typedef struct packed {
    logic         raw;
    logic         lone;
    logic         drop;    // no such node: take the payload and send nothing
    logic         done;
    logic [5:0]   slot;
    logic         retrans;
    logic [13:0]  bytes;   // of the frame
    logic [655:0] head;
  } built_t;
  localparam int unsigned BUILT_W = 681;

  localparam int unsigned AHEAD = 8; // frames planned ahead of the one that leaves
  /* verilator lint_on UNUSEDPARAM */

  // 16-bit words of a header, byte 0 on top
  function automatic logic [19:0] sum_hdr(input logic [255:0] hdr);
    sum_hdr = 20'd0;
    for (int unsigned w = 0; w < 16; w++) sum_hdr = sum_hdr + {4'd0, hdr[w*16+:16]};
  endfunction
  function automatic logic [15:0] fold20(input logic [19:0] sum);
    logic [16:0] a;
    a = {1'b0, sum[15:0]} + {13'd0, sum[19:16]};
    fold20 = a[15:0] + {15'd0, a[16]};
  endfunction
endpackage
