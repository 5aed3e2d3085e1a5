// The r' and s' tables of the chunks in work, and their hand-over to the consumer.
//
// A side is 512 words of 32 lanes (22 bits for r', 20 for s'). Lane = k[4:0], word = k[n-2:5], where k is
// a blade without its top bit. The words form a ring of slots, one slot a term (2^(n-6) words): a chunk
// holds as many neighbouring slots as it has terms and frees them when popped. Up to four whole chunks
// wait; a term is written only where a slot is free.
//
// Write: sixteen values of the expander a cycle, no stall, taken two cycles later into the banks. Values
// are rounded and signed on the way: r' gets (-1)^(|K|(|K|-1)/2), the gain's sign and, in an odd term,
// moves to blade K^1; s' gets (-1)^(|K|(|K|-1)/2), which makes it rev(s). The sixteen values share
// K[n-5:1] and differ in the rest, so they would meet in four or fewer lanes: lane l of a word lies in
// bank l ^ rgu_pkg::skew(word), which spreads them over sixteen banks.
// Read: one word a side a cycle, 1 cycle latency, the skew undone by an XOR of lanes behind the banks;
// s_xor_i joins the same network, so the reader gets its lane permutation free.
module rgu_tables (
    input  logic                      clk_i,
    input  logic                      rst_ni,
    input  logic                      clear_i,
    input  logic                      n10_i,
    input  logic [               5:0] terms_i,
    // from the expander
    output logic                      slot_ready_o,
    input  logic                      wr_valid_i,
    input  logic                      wr_side_i,
    input  logic [               4:0] wr_word_i,
    input  logic [             383:0] wr_data_i,
    input  logic                      wr_done_i,
    input  logic [rgu_pkg::CTX_W-1:0] wr_ctx_i,
    // oldest whole chunk
    output logic                      tab_valid_o,
    output logic [               9:0] tab_e_o,
    output logic [              31:0] tab_odd_o,
    output logic [              15:0] tab_row_o,
    output logic [              15:0] tab_col_o,
    output logic                      tab_rs_half_o,
    output logic                      tab_row_last_o,
    output logic                      tab_last_o,
    input  logic                      tab_pop_i,
    // reads
    input  logic                      rd_en_i,
    input  logic [               8:0] r_addr_i,
    input  logic [               8:0] s_addr_i,
    input  logic [               4:0] s_xor_i,
    output logic [             703:0] r_data_o,
    output logic [             639:0] s_data_o
);
  localparam int unsigned W = rgu_pkg::EXP_W;

  // ---- slots and chunks --------------------------------------------------------------------------
  logic [6:0] wr_slot_q, rd_base_q;  // the low five bits count at n = 10
  logic [7:0] used_q;                // slots written and not popped
  logic [2:0] chunks_q;              // whole chunks waiting
  logic [1:0] head_q, tail_q;
  logic [31:0] odd_q;                // of the terms of the chunk being written
  logic [4:0] term_q;
  logic [76:0] info_q[0:3];
  logic done1_q, done2_q, term_last, chunk_done;
  logic odd2;
  logic [rgu_pkg::CTX_W-1:1] ctx2_q;
  logic [31:0] odd_d;

  assign slot_ready_o = chunks_q != 3'd4 && (n10_i ? used_q != 8'd32 : used_q != 8'd128);
  assign term_last = ctx2_q[2];
  assign odd2 = ctx2_q[1];
  assign chunk_done = done2_q && term_last;
  assign odd_d = (term_q == 5'd0 ? 32'd0 : odd_q) | ({31'd0, odd2} << term_q);

  always_ff @(posedge clk_i) begin
    if (done1_q) ctx2_q <= wr_ctx_i[rgu_pkg::CTX_W-1:1];
    if (done2_q) odd_q <= odd_d;
    if (chunk_done) info_q[tail_q] <= {odd_d, ctx2_q[47:3]};
    if (!rst_ni || clear_i) begin
      done1_q <= 1'b0;
      done2_q <= 1'b0;
      wr_slot_q <= 7'd0;
      rd_base_q <= 7'd0;
      used_q <= 8'd0;
      chunks_q <= 3'd0;
      head_q <= 2'd0;
      tail_q <= 2'd0;
      term_q <= 5'd0;
    end else begin
      done1_q <= wr_done_i;
      done2_q <= done1_q;
      used_q <= used_q + {7'd0, done2_q} - (tab_pop_i ? {2'd0, terms_i} : 8'd0);
      chunks_q <= chunks_q + {2'd0, chunk_done} - {2'd0, tab_pop_i};
      if (done2_q) begin
        wr_slot_q <= wr_slot_q + 7'd1;
        term_q <= term_last ? 5'd0 : term_q + 5'd1;
      end
      if (chunk_done) tail_q <= tail_q + 2'd1;
      if (tab_pop_i) begin
        head_q <= head_q + 2'd1;
        rd_base_q <= rd_base_q + {1'b0, terms_i};
      end
    end
  end

  assign tab_valid_o = chunks_q != 3'd0;
  assign {tab_odd_o, tab_e_o, tab_row_o, tab_col_o, tab_rs_half_o, tab_row_last_o, tab_last_o} =
      info_q[head_q];

  always_ff @(posedge clk_i) begin
    if (rst_ni && !clear_i) begin
      assert (!tab_pop_i || tab_valid_o);
      assert (!done2_q || slot_ready_o);
    end
  end

  // ---- write, first cycle: round and sign --------------------------------------------------------
  // Sign of an entry, hi = its index bits 0..3, lo = the word's: q(hi) + q(lo) + (par(hi) or par(lo)),
  // q(x) = bit 1 of popcount(x). It is |K|(|K|-1)/2 with blade bit 0 taken from parity, and, in an odd
  // term, that of K^1 plus the sign popcount(K>>1) of the move: both come out the same.
  logic valid1_q, side1_q;
  logic [4:0] word1_q;
  logic lo_q2, lo_par, lo_par1_q, odd1_q;
  logic [351:0] value_q;  // 16 x 22

  assign lo_par = ^wr_word_i;
  assign lo_q2 = (wr_word_i[0] & (^wr_word_i[4:1])) ^ (wr_word_i[1] & (^wr_word_i[4:2])) ^
                 (wr_word_i[2] & (^wr_word_i[4:3])) ^ (wr_word_i[3] & wr_word_i[4]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) valid1_q <= 1'b0;
    else valid1_q <= wr_valid_i;
    if (wr_valid_i) begin
      side1_q <= wr_side_i;
      word1_q <= wr_word_i;
      lo_par1_q <= lo_par;
      odd1_q <= wr_ctx_i[1] && !wr_side_i;
    end
  end

  for (genvar e = 0; e < 16; e++) begin : g_value
    localparam int unsigned Ones = e % 2 + (e / 2) % 2 + (e / 4) % 2 + e / 8;
    localparam logic HiPar = Ones % 2 == 1;
    localparam logic HiQ = (Ones / 2) % 2 == 1;
    logic [21:0] rounded;
    logic negative;
    assign rounded = wr_side_i ? {{2{wr_data_i[e*W+23]}}, wr_data_i[e*W+4+:20]} + {21'd0, wr_data_i[e*W+3]}
                               : wr_data_i[e*W+2+:22] + {21'd0, wr_data_i[e*W+1]};
    assign negative = HiQ ^ lo_q2 ^ (HiPar | lo_par) ^ (wr_ctx_i[0] & ~wr_side_i);
    always_ff @(posedge clk_i) begin
      if (wr_valid_i) value_q[e*22+:22] <= negative ? 22'd0 - rounded : rounded;
    end
  end

  // ---- write, second cycle: to the banks ---------------------------------------------------------
  // Position t of the permuted values: t[3], t[2], t[1] are the bank bits that entry bits 3, 1 and 2 land
  // in, t[0] is bank bit 0 = blade bit 0. Sorting is fixed wiring, then an XOR of positions.
  // Blade bits of the word: n = 8: {K1,K2,K3} = word[2:0]; n = 10: {K1..K5} = word[4:0].
  logic [3:0] flip;
  logic [351:0] sorted;

  assign flip = n10_i ? {word1_q[4], word1_q[2], word1_q[3], lo_par1_q ^ odd1_q}
                      : {1'b0, word1_q[1], word1_q[2], lo_par1_q ^ odd1_q};

  // One level of the XOR of positions.
  function automatic logic [351:0] swap(input logic [351:0] x, input int unsigned distance);
    for (int unsigned t = 0; t < 16; t++) swap[t*22+:22] = x[(t^distance)*22+:22];
  endfunction

  always_comb begin
    sorted = '0;
    if (valid1_q) begin  // quiet between words
      for (int unsigned t = 0; t < 16; t++)
        sorted[t*22+:22] = value_q[{5'd0, t[3], t[1], t[2], ^t[3:0]}*22+:22];
      if (flip[3]) sorted = swap(sorted, 8);
      if (flip[2]) sorted = swap(sorted, 4);
      if (flip[1]) sorted = swap(sorted, 2);
      if (flip[0]) sorted = swap(sorted, 1);
    end
  end

  // ---- banks -------------------------------------------------------------------------------------
  logic [8:0] r_addr, s_addr;
  logic [2:0] r_skew_q;   // bank bits 3..1
  logic [4:0] s_skew_q;

  function automatic logic [8:0] place(input logic n10, input logic [6:0] slot,
                                       input logic [3:0] word);
    place = n10 ? {slot[4:0], word} : {slot, word[1:0]};
  endfunction

  assign r_addr = place(n10_i, rd_base_q + {2'd0, r_addr_i[8:4]}, r_addr_i[3:0]);
  assign s_addr = place(n10_i, rd_base_q + {2'd0, s_addr_i[8:4]}, s_addr_i[3:0]);

  always_ff @(posedge clk_i) begin
    if (rd_en_i) begin
      r_skew_q <= n10_i ? r_addr_i[3:1] : {1'b0, r_addr_i[1:0]};
      s_skew_q <= s_xor_i ^ rgu_pkg::skew(n10_i, s_addr_i[3:0]);
    end
  end

  for (genvar b = 0; b < 32; b++) begin : g_bank
    localparam logic [4:0] B = b;
    localparam logic [3:0] Pos8 = {B[4], B[2:0]};
    localparam logic [3:0] Pos10 = {B[1], B[3], B[2], B[0]};
    logic [21:0] r_mem[0:511];
    logic [19:0] s_mem[0:511];
    logic [21:0] r_q, value;
    logic [19:0] s_q;
    logic [8:0] addr;

    always_comb begin
      addr = '0;
      value = '0;
      if (valid1_q) begin
        addr = n10_i ? {wr_slot_q[4:0], B[3:1] ^ {word1_q[2], word1_q[3], word1_q[4]}, word1_q[0]}
                     : {wr_slot_q, B[2:1] ^ {word1_q[1], word1_q[2]}};
        value = n10_i ? sorted[{5'd0, Pos10}*22+:22] : sorted[{5'd0, Pos8}*22+:22];
      end
    end

    always_ff @(posedge clk_i) begin
      if (valid1_q && (n10_i ? word1_q[1] == B[4] : word1_q[0] == B[3])) begin
        if (side1_q) s_mem[addr] <= value[19:0];
        else r_mem[addr] <= value;
      end
      if (rd_en_i) begin
        r_q <= r_mem[r_addr];
        s_q <= s_mem[s_addr];
      end
    end
  end

  // ---- lanes back in order -----------------------------------------------------------------------
  for (genvar l = 0; l < 32; l++) begin : g_lane
    logic [21:0] r1, r2, r3;
    logic [19:0] s1, s2, s3, s4, s5;
    assign r1 = r_skew_q[0] ? g_bank[l^2].r_q : g_bank[l].r_q;
    assign r2 = r_skew_q[1] ? g_lane[l^4].r1 : r1;
    assign r3 = r_skew_q[2] ? g_lane[l^8].r2 : r2;
    assign s1 = s_skew_q[0] ? g_bank[l^1].s_q : g_bank[l].s_q;
    assign s2 = s_skew_q[1] ? g_lane[l^2].s1 : s1;
    assign s3 = s_skew_q[2] ? g_lane[l^4].s2 : s2;
    assign s4 = s_skew_q[3] ? g_lane[l^8].s3 : s3;
    assign s5 = s_skew_q[4] ? g_lane[l^16].s4 : s4;
    assign r_data_o[l*22+:22] = r3;
    assign s_data_o[l*20+:20] = s5;
  end
endmodule
