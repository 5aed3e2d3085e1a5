// Tile generator: the tables of a chunk become the integers of its weights, one M = I ^ J at a time.
//
// For every M a group of 2^(n-6) words of 32 lanes leaves, in natural order of u = J[n-2:0]
// (word u[n-2:5], lane u[4:0]): V[u] = w[J ^ M][J], 24 fraction bits, final sign included. M runs
// through blocks of columns: block number (high bits of M) outermost, then M[4:0], then one extra
// bit x, which is the parity class when both parities are in the job (both_i) and M[6] in blocks of
// 128 columns (wide_i); M[5] follows from the class. A class without terms gives zeros.
//
// One product a lane and cycle: a word takes as many cycles as its class has terms, and one at least.
// Latency from the first read of a group to its first word: 9 cycles and 15 words. Where no chunk
// is waiting, empty groups push the last words out. The output is a strobe under a credit: wr_en_o
// comes only while room_i is high, and room_i low freezes the whole pipeline once a word is due.
module rgu_gen (
    input  logic             clk_i,
    input  logic             rst_ni,
    // job, stable while a chunk is in the pipeline
    input  logic             n10_i,        // n = 10, else 8
    input  logic [5:0]       terms_i,      // 1..32
    input  logic             both_i,       // both parity classes; not together with wide_i
    input  logic             odd_i,        // the one class otherwise
    input  logic             wide_i,
    // oldest chunk of the tables
    input  logic             tab_valid_i,
    input  logic [31:0]      tab_odd_i,
    output logic             tab_pop_o,
    output logic             ctx_take_o,   // pulse: the first read of a chunk
    input  logic             ctx_ready_i,  // its context can be taken
    output logic             rd_en_o,
    output logic [8:0]       r_addr_o,     // {term, word}
    output logic [8:0]       s_addr_o,
    output logic [4:0]       s_xor_o,
    input  logic [32*22-1:0] r_data_i,
    input  logic [32*20-1:0] s_data_i,
    // words
    input  logic             room_i,
    output logic             wr_en_o,
    output logic [32*32-1:0] wr_data_o,
    output logic             busy_o,       // a word or product is on its way
    output logic             mults_busy_o  // 32 products this cycle
);
  // ---- which product ---------------------------------------------------------------------------
  logic [3:0]  block_q, h_q;
  logic [4:0]  m_q;
  logic        x_q, fill_q, sum_q;       // fill: an empty group; sum: inside the terms of a word
  logic [31:0] left_q;                   // terms of this word still to come, while sum_q

  logic        en, work, fill, group_start, chunk_start, class_odd, b5;
  logic        word_end, h_end, x_end, m_end, block_end;
  logic [31:0] class_terms, left, low;
  logic [4:0]  term;
  logic [9:0]  big_m, g;
  logic [8:0]  gk, flip;
  logic        no_term, more;

  assign class_odd = both_i ? x_q : odd_i;
  assign b5 = (^m_q) ^ (^block_q) ^ (wide_i & x_q) ^ class_odd;
  assign big_m = wide_i ? {block_q[2:0], x_q, b5, m_q} : {block_q, b5, m_q};
  assign g = rgu_pkg::g_mask(big_m);
  // the sign of a product is parity(K & g); K's top bit is the parity of the others, or its inverse
  assign gk = g[8:0] ^ {9{n10_i ? g[9] : g[7]}};
  assign flip = g[8:0] ^ {9{class_odd}};

  assign class_terms = (class_odd ? tab_odd_i : ~tab_odd_i) & ~(32'hFFFF_FFFE << (terms_i - 6'd1));
  assign left = sum_q ? left_q : class_terms;
  assign low = left & (32'd0 - left);
  assign no_term = left == 32'd0;
  assign more = (left ^ low) != 32'd0;
  assign term = {|(low & 32'hFFFF_0000), |(low & 32'hFF00_FF00), |(low & 32'hF0F0_F0F0),
                 |(low & 32'hCCCC_CCCC), |(low & 32'hAAAA_AAAA)};

  assign group_start = h_q == 4'd0 && !sum_q;
  assign chunk_start = group_start && block_q == 4'd0 && m_q == 5'd0 && !x_q;
  assign work = en && !fill_q && tab_valid_i && (!chunk_start || ctx_ready_i);
  assign word_end = fill || (work && !more);
  assign h_end = n10_i ? h_q == 4'd15 : h_q == 4'd3;
  assign x_end = x_q || !(both_i || wide_i);
  assign m_end = m_q == 5'd31;
  assign block_end = block_q == (n10_i ? (wide_i ? 4'd7 : 4'd15) : (wide_i ? 4'd1 : 4'd3));

  assign rd_en_o = work && !no_term;
  assign r_addr_o = {term, h_q};
  assign s_addr_o = {term, h_q ^ (n10_i ? big_m[8:5] : {2'b00, big_m[6:5]})};
  assign s_xor_o = big_m[4:0];
  assign ctx_take_o = work && chunk_start;
  assign tab_pop_o = work && word_end && h_end && x_end && m_end && block_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      block_q <= '0;
      h_q     <= '0;
      m_q     <= '0;
      x_q     <= 1'b0;
      fill_q  <= 1'b0;
      sum_q   <= 1'b0;
    end else begin
      if (fill || (work && group_start)) fill_q <= fill && !h_end;
      if (work) sum_q <= more;
      if (word_end) begin
        h_q <= h_end ? 4'd0 : h_q + 4'd1;
        if (work && h_end) begin
          x_q <= !x_end;
          if (x_end) begin
            m_q <= m_q + 5'd1;
            if (m_end) block_q <= block_end ? 4'd0 : block_q + 4'd1;
          end
        end
      end
    end
    if (work) left_q <= left ^ low;
  end

  // ---- pipeline down to the sums -----------------------------------------------------------------
  // stage 1: table data out; 2: operands; 3: products; 4: sums (a finished word is a slot)
  logic [3:1] live_q, slot_in_q, real_q;
  logic       slot_q, slot_real_q;
  logic [3:1] first_q, zero_q;
  logic [8:0] gk1_q, gk2_q;
  logic       cst1_q, cst2_q;
  logic [3:0] h1_q, h2_q, h3_q, h4_q;
  logic [8:0] flip1_q, flip2_q, flip3_q, flip4_q;
  logic [31:0] neg2, neg3_q;

  // sign of lane l: parity(l & gk[4:0]) against what is common to the word
  assign neg2 = ({32{gk2_q[0]}} & 32'hAAAA_AAAA) ^ ({32{gk2_q[1]}} & 32'hCCCC_CCCC) ^
      ({32{gk2_q[2]}} & 32'hF0F0_F0F0) ^ ({32{gk2_q[3]}} & 32'hFF00_FF00) ^
      ({32{gk2_q[4]}} & 32'hFFFF_0000) ^ {32{cst2_q ^ (^(h2_q & gk2_q[8:5]))}};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      live_q      <= '0;
      slot_in_q   <= '0;
      real_q      <= '0;
      slot_q      <= 1'b0;
      slot_real_q <= 1'b0;
    end else if (en) begin
      live_q      <= {live_q[2:1], work};
      slot_in_q   <= {slot_in_q[2:1], word_end};
      real_q      <= {real_q[2:1], work};
      slot_q      <= slot_in_q[3];
      slot_real_q <= real_q[3];
    end
    if (en) begin
      first_q <= {first_q[2:1], !sum_q};
      zero_q  <= {zero_q[2:1], no_term};
      if (word_end || work) begin
        gk1_q   <= gk;
        cst1_q  <= class_odd & (n10_i ? g[9] : g[7]);
        h1_q    <= h_q;
        flip1_q <= flip;
      end
      if (live_q[1] || slot_in_q[1]) begin
        gk2_q   <= gk1_q;
        cst2_q  <= cst1_q;
        h2_q    <= h1_q;
        flip2_q <= flip1_q;
      end
      if (live_q[2] || slot_in_q[2]) begin
        neg3_q  <= neg2;
        h3_q    <= h2_q;
        flip3_q <= flip2_q;
      end
      if (slot_in_q[3]) begin
        h4_q    <= h3_q;
        flip4_q <= flip3_q;
      end
    end
  end

  logic [32*32-1:0] acc, word;
  rgu_mac u_mac (
      .clk_i,
      .en1_i(en && live_q[1] && !zero_q[1]),
      .en2_i(en && live_q[2] && !zero_q[2]),
      .en3_i(en && live_q[3]),
      .r_data_i, .s_data_i,
      .first_i(first_q[3]),
      .zero_i(zero_q[3]),
      .neg_i(neg3_q),
      .acc_o(acc)
  );

  // ---- transform -----------------------------------------------------------------------------------
  localparam int Slots = 20;  // slot latency: 17 in rgu_wht_word, 3 in rgu_wht_lane
  logic slot_en;
  logic [Slots-1:0] valid_q;
  logic [4:0] lane_flip;
  assign slot_en = en && slot_q;

  rgu_wht_word #(.TagWidth(5)) u_word (
      .clk_i,
      .en_i(slot_en),
      .n10_i,
      .h_i(h4_q),
      .flip_i(flip4_q[8:5]),
      .tag_i(flip4_q[4:0]),
      .data_i(acc),
      .tag_o(lane_flip),
      .data_o(word)
  );
  rgu_wht_lane u_lane (
      .clk_i,
      .en_i(slot_en),
      .flip_i(lane_flip),
      .data_i(word),
      .data_o(wr_data_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else if (slot_en) valid_q <= {valid_q[Slots-2:0], slot_real_q};
  end

  assign busy_o = (valid_q != '0) || (slot_q && slot_real_q) || (live_q != '0);
  assign wr_en_o = slot_en && valid_q[Slots-1];
  assign en = room_i || !valid_q[Slots-1];
  // Nothing to start, words in the pipeline: push them on with an empty group.
  assign fill = en && (fill_q || (group_start && !work && busy_o));
  assign mults_busy_o = en && live_q[2] && !zero_q[2];
endmodule
