// Block buffer: turns words of equal M = I ^ J into rows, in place.
//
// A block is what the generator makes for one setting of the block bits of M: 2^(n-1) rows ("reps",
// rows with J_top = 0; each gives its mirror row ~I too) of 32 values, or 64 with an extra bit x. It is
// written word by word (m, x, h; lane l = u[4:0] in bank l) and read rep by rep: lane l of rep
// i = {i_hi, i_lo} is the entry m = i_lo ^ l, h = i_hi ^ C(x) ^ parity(m), C from the block number. So
// every bank answers every read, at its own address.
//
// In place: the entries a rep frees are just those of one word of the next block, if blocks alternate
// between two maps from (l, m, x, h) to addresses:
//     straight  (m,     h ^ K(x) ^ A&parity(l))
//     skewed    (m ^ l, h ^ K(x) ^ (A&parity(l) ^ parity(m)))      (single bits meet bit 0 of h)
// Reading rep (i_lo, i_hi) of a block touches the addresses of word (m, h) = (i_lo, i_hi) of the next
// one, with K' = K ^ C and, after a straight block, A' = !A. So one map, that of the block being
// written, serves both sides, and a word may be written once its rep has been read.
// Between the last read of a block and the first of the next: 2 cycles, and 2^(n-6) more with x.
module rgu_block (
    input  logic             clk_i,
    input  logic             rst_ni,
    // job
    input  logic             n10_i,
    input  logic             both_i,
    input  logic             odd_i,
    input  logic             wide_i,
    // words of the generator: a strobe under the credit room_o
    output logic             room_o,
    input  logic             wr_en_i,
    input  logic [32*32-1:0] wr_data_i,
    // the block being read
    output logic             full_o,
    input  logic             done_i,       // its last read has been issued (now or before)
    input  logic [4:0]       rep_lo_i,     // reps before this one are read
    input  logic [3:0]       rep_hi_i,
    input  logic             rd_en_i,
    input  logic [4:0]       rd_lo_i,
    input  logic [3:0]       rd_hi_i,
    input  logic             rd_x_even_i,  // x of the lanes of even and of odd parity
    input  logic             rd_x_odd_i,
    output logic [32*31-1:0] rd_data_o     // the cycle after rd_en_i, held without it
);
  logic [3:0] block_q, h_q;
  logic [4:0] m_q;
  logic       x_q, full_q, skew_q, a_q;
  logic [3:0] k0_q, k1_q;

  logic h_end, x_end, m_end, block_end, last;
  logic [3:0] c0, c1;

  assign h_end = n10_i ? h_q == 4'd15 : h_q == 4'd3;
  assign x_end = x_q || !(both_i || wide_i);
  assign m_end = m_q == 5'd31;
  assign block_end = block_q == (n10_i ? (wide_i ? 4'd7 : 4'd15) : (wide_i ? 4'd1 : 4'd3));
  assign last = wr_en_i && h_end && x_end && m_end;

  // C(x): M[n-2:5] of the block with M[4:0] = 0
  function automatic logic [3:0] block_const(input logic n10, input logic wide, input logic both,
                                             input logic odd, input logic [3:0] block, input logic x);
    logic b5;
    b5 = (^block) ^ (wide & x) ^ (both ? x : odd);
    block_const = (wide ? {block[1:0], x, b5} : {block[2:0], b5}) & {n10, n10, 2'b11};
  endfunction
  assign c0 = block_const(n10_i, wide_i, both_i, odd_i, block_q, 1'b0);
  assign c1 = block_const(n10_i, wide_i, both_i, odd_i, block_q, 1'b1);

  assign full_o = full_q;
  assign room_o = !full_q || {m_q, h_q} < {rep_lo_i, rep_hi_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      block_q <= '0;
      h_q     <= '0;
      m_q     <= '0;
      x_q     <= 1'b0;
      full_q  <= 1'b0;
      skew_q  <= 1'b0;
      a_q     <= 1'b0;
      k0_q    <= '0;
      k1_q    <= '0;
    end else begin
      if (wr_en_i) begin
        h_q <= h_end ? 4'd0 : h_q + 4'd1;
        if (h_end) begin
          x_q <= !x_end;
          if (x_end) m_q <= m_q + 5'd1;
        end
      end
      if (last) begin
        block_q <= block_end ? 4'd0 : block_q + 4'd1;
        skew_q  <= !skew_q;
        a_q     <= a_q ^ !skew_q;
        k0_q    <= k0_q ^ c0;
        k1_q    <= k1_q ^ c1;
      end
      full_q <= last || (full_q && !done_i);
    end
  end

  // ---- banks ---------------------------------------------------------------------------------------
  // The h part of an address depends on the lane's parity only, the m part on its number.
  logic wr_pm, rd_pm;
  logic [3:0] wr_k, wr_h_even, wr_h_odd, rd_h_even, rd_h_odd;
  assign wr_pm = skew_q & (^m_q);
  assign rd_pm = skew_q & (^rd_lo_i);
  assign wr_k = h_q ^ (x_q ? k1_q : k0_q) ^ {3'b000, wr_pm};
  assign wr_h_even = wr_k;
  assign wr_h_odd = wr_k ^ {3'b000, a_q};
  assign rd_h_even = rd_hi_i ^ (rd_x_even_i ? k1_q : k0_q) ^ {3'b000, rd_pm};
  assign rd_h_odd = rd_hi_i ^ (rd_x_odd_i ? k1_q : k0_q) ^ {3'b000, rd_pm ^ a_q};

  for (genvar l = 0; l < 32; l++) begin : gen_bank
    localparam logic [4:0] Lane = 5'(l);
    localparam logic Odd = ^Lane;
    rgu_bank u_bank (
        .clk_i,
        .wr_en_i,
        .wr_addr_i({x_q, m_q ^ (Lane & {5{skew_q}}), Odd ? wr_h_odd : wr_h_even}),
        .wr_data_i(wr_data_i[l*32+:31]),
        .rd_en_i,
        .rd_addr_i({Odd ? rd_x_odd_i : rd_x_even_i, rd_lo_i ^ (Lane & {5{skew_q}}),
                    Odd ? rd_h_odd : rd_h_even}),
        .rd_data_o(rd_data_o[l*31+:31])
    );
  end

  // The top bit of a 32-bit lane only repeats the sign.
  logic [31:0] unused_top;
  for (genvar l = 0; l < 32; l++) begin : gen_top
    assign unused_top[l] = wr_data_i[l*32+31];
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && wr_en_i) begin
      credit: assert (room_o);
      for (int l = 0; l < 32; l++) fits: assert (wr_data_i[l*32+31] == wr_data_i[l*32+30]);
    end
    if (rst_ni && rd_en_i) read_full: assert (full_q);
  end
`endif
endmodule
