// Rotor expansion: the angles of a term's two sides become the 2^(n-1) even blades of r and s.
//
// The state of a side is an array of 24-bit numbers (22 fraction bits) whose index bit p is blade bit
// n-1-p; the lowest blade bit in play is implied by parity. Stage q = 1..n-1 makes one more blade bit
// explicit and runs q passes with strides 1, 2, 4 .. 2^(q-1) over 2^q entries:
//     y[k] = RNH(c x[k] +- s x[k ^ stride], 20),   minus where parity(k & (2 stride - 1)) is even.
// Sixteen entries a cycle: 32 multipliers 24x22, exact sums, one rounding. Strides below 16 stay inside
// a word, larger ones pair two words, which lie in different banks (bank = parity of the word index);
// paired words follow each other, so that results can go back in place. Passes of r and s alternate:
// one side's pipeline drains while the other issues.
//
// Coefficients arrive in the order of use: planes in reverse lexicographic order, r before s.
// The last pass of a side leaves through wr_*, a word of sixteen entries a cycle, wr_done_o with the
// very last; it starts only under slot_ready_i. No port stalls it after that.
// Cycles a term with coefficients at hand: 240 at n = 8, 1072 at n = 10; terms follow without a gap.
module rgu_expand (
    input  logic                      clk_i,
    input  logic                      rst_ni,
    input  logic                      clear_i,
    input  logic                      n10_i,
    // a term: {context, g}
    input  logic                      hdr_valid_i,
    output logic                      hdr_ready_o,
    input  logic [rgu_pkg::HDR_W-1:0] hdr_i,
    // coefficients
    input  logic                      trig_valid_i,
    output logic                      trig_ready_o,
    input  logic [              21:0] cos_i,
    input  logic [              21:0] sin_i,
    // results
    input  logic                      slot_ready_i,
    output logic                      wr_valid_o,
    output logic                      wr_side_o,    // 0: r, 1: s
    output logic [               4:0] wr_word_o,    // index bits n-2..4
    output logic [             383:0] wr_data_o,
    output logic                      wr_done_o,
    output logic [rgu_pkg::CTX_W-1:0] wr_ctx_o,     // of the term being written
    output logic                      busy_o,
    output logic                      mults_busy_o
);
  localparam int unsigned L = rgu_pkg::EXP_LANES;
  localparam int unsigned W = rgu_pkg::EXP_W;

  // ---- issue: which word of which pass -----------------------------------------------------------
  logic side_q;                // 0: r, 1: s
  logic [3:0] stage_q;         // 1..n-1
  logic [3:0] pass_q;          // 0..stage-1, stride = 2^pass
  logic [4:0] count_q;         // word of the pass, in issue order
  logic [3:1] live_q;          // pipeline stages 1..3 hold a word
  logic [3:1] live_side_q;
  logic run_q;                 // between the first and the last word of a term

  logic first_pass, last_pass, start, draining, pass_ok, issue;
  logic [4:0] last_word;
  logic word_end, side_end, stage_end, term_end;
  logic valid4_q, side4_q;

  assign first_pass = pass_q == 4'd0;
  assign stage_end = pass_q == stage_q - 4'd1;
  assign last_pass = stage_end && stage_q == (n10_i ? 4'd9 : 4'd7);
  assign start = stage_q == 4'd1;
  assign draining = |(live_q & ~(live_side_q ^ {3{side_q}})) || (valid4_q && side4_q == side_q);
  assign pass_ok = trig_valid_i && !draining && (side_q || !last_pass || slot_ready_i) &&
                   (side_q || !start || hdr_valid_i);
  assign issue = count_q != 5'd0 || pass_ok;

  always_comb begin
    case (stage_q)
      4'd5: last_word = 5'd1;
      4'd6: last_word = 5'd3;
      4'd7: last_word = 5'd7;
      4'd8: last_word = 5'd15;
      4'd9: last_word = 5'd31;
      default: last_word = 5'd0;
    endcase
  end

  assign word_end = count_q == last_word;
  assign side_end = word_end && side_q;
  assign term_end = side_end && last_pass;
  assign trig_ready_o = issue && word_end;
  assign hdr_ready_o = issue && start && !side_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      side_q <= 1'b0;
      stage_q <= 4'd1;
      pass_q <= 4'd0;
      count_q <= 5'd0;
      run_q <= 1'b0;
    end else if (issue) begin
      run_q <= !term_end;
      count_q <= word_end ? 5'd0 : count_q + 5'd1;
      if (word_end) side_q <= !side_q;
      if (side_end) begin
        pass_q <= stage_end ? 4'd0 : pass_q + 4'd1;
        if (stage_end) stage_q <= last_pass ? 4'd1 : stage_q + 4'd1;
      end
    end
  end

  // Words of a pair follow each other: bit 0 of the count goes to the bit that tells them apart.
  logic [2:0] pair_from, pair_bit;
  logic [4:0] word, self_word, pair_mask, low_mask;
  logic across;  // the partner is in another word

  assign across = pass_q[3:2] != 2'b00;
  assign pair_from = first_pass ? stage_q[2:0] - 3'd5 : pass_q[2:0] - 3'd4;
  assign pair_bit = (first_pass ? stage_q > 4'd5 : across) ? pair_from : 3'd0;
  assign pair_mask = 5'd1 << pair_bit;
  assign low_mask = pair_mask - 5'd1;
  assign word = ({1'b0, count_q[4:1]} & low_mask) | ({count_q[4:1], 1'b0} & ~(low_mask | pair_mask)) |
                (count_q[0] ? pair_mask : 5'd0);
  // The first pass of a stage reads the array as it was before the new blade bit, the new top index bit.
  assign self_word = first_pass ? word & ~pair_mask : word;

  // ---- state memory: two banks, one read and one write a cycle each ------------------------------
  logic [L*W-1:0] bank0_q[0:31];
  logic [L*W-1:0] bank1_q[0:31];
  logic [L*W-1:0] read0_q, read1_q, y_q;
  logic [4:0] addr0, addr1, word4_q;
  logic [4:1] other_word;
  logic wr_bank;

  assign other_word = word[4:1] ^ pair_mask[4:1];
  assign addr0 = {side_q, (^self_word) ? other_word : self_word[4:1]};
  assign addr1 = {side_q, (^self_word) ? self_word[4:1] : other_word};
  assign wr_bank = ^word4_q;

  always_ff @(posedge clk_i) begin
    if (valid4_q && !wr_bank) bank0_q[{side4_q, word4_q[4:1]}] <= y_q;
    if (valid4_q && wr_bank) bank1_q[{side4_q, word4_q[4:1]}] <= y_q;
    if (issue) begin
      read0_q <= bank0_q[addr0];
      read1_q <= bank1_q[addr1];
    end
  end

  // ---- stage 1: operands -------------------------------------------------------------------------
  logic [4:0] word1_q, word2_q, word3_q;
  logic [1:0] pass1_q;         // stride inside the word
  logic [3:0] stage1_q;
  logic start1_q, first1_q, across1_q, swap1_q, odd1_q, sign1_q;
  logic [W-1:0] begin1_q;
  logic [21:0] cos1_q, sin1_q, cos2_q, sin2_q;
  logic [3:1] last_q, done_q;
  logic last4_q, done4_q;

  always_ff @(posedge clk_i) begin
    if (issue) begin
      word1_q <= word;
      pass1_q <= pass_q[1:0];
      stage1_q <= stage_q;
      start1_q <= start;
      first1_q <= first_pass;
      across1_q <= across;
      swap1_q <= ^self_word;
      odd1_q <= ^word;
      sign1_q <= ^(word & (low_mask | pair_mask));
      begin1_q <= side_q ? 24'd4194304 : {1'b0, hdr_i[rgu_pkg::GAIN_W-1:0]};
      cos1_q <= cos_i;
      sin1_q <= sin_i;
    end
    if (live_q[1]) begin
      word2_q <= word1_q;
      cos2_q <= cos1_q;
      sin2_q <= sin1_q;
    end
    if (live_q[2]) word3_q <= word2_q;
    if (live_q[3]) begin
      word4_q <= word3_q;
      side4_q <= live_side_q[3];
      last4_q <= last_q[3];
      done4_q <= done_q[3];
    end
    if (!rst_ni || clear_i) begin
      live_q <= 3'b000;
      live_side_q <= 3'b000;
      last_q <= 3'b000;
      done_q <= 3'b000;
      valid4_q <= 1'b0;
    end else begin
      live_q <= {live_q[2:1], issue};
      live_side_q <= {live_side_q[2:1], side_q};
      last_q <= {last_q[2:1], last_pass};
      done_q <= {done_q[2:1], term_end};
      valid4_q <= live_q[3];
    end
  end

  // The array with its new index bit: an entry of odd parity is new and zero, an even one is the old
  // entry at the index without the new bit. Stage 1 starts from one number. All quiet between words.
  logic [L*W-1:0] self, other, z;
  always_comb begin
    self = '0;
    other = '0;
    z = '0;
    if (live_q[1]) begin
      self = swap1_q ? read1_q : read0_q;
      other = swap1_q ? read0_q : read1_q;
      if (start1_q) z = {{(L - 1) * W{1'b0}}, begin1_q};
      else if (!first1_q) z = self;
      else begin
        for (int e = 0; e < L; e++) begin
          if (odd1_q == (e[0] ^ e[1] ^ e[2] ^ e[3])) begin
            case (stage1_q)
              4'd2: z[e*W+:W] = self[(e&~2)*W+:W];
              4'd3: z[e*W+:W] = self[(e&~4)*W+:W];
              4'd4: z[e*W+:W] = self[(e&~8)*W+:W];
              default: z[e*W+:W] = self[e*W+:W];
            endcase
          end
        end
      end
    end
  end

  // Round half up of a +- b from 42 to 22 fraction bits; the magnitude stays near 1, so 24 bits hold it.
  function automatic logic [W-1:0] round20(input logic signed [45:0] a, input logic signed [45:0] b,
                                           input logic minus);
    logic signed [46:0] sum;
    sum = minus ? a - b : a + b;
    sum = sum + 47'sd524288;
    round20 = sum[20+:W];
  endfunction

  // ---- stages 2..4: sixteen butterflies ----------------------------------------------------------
  for (genvar e = 0; e < L; e++) begin : g_lane
    // parity of the index bits up to each stride inside the word
    localparam logic Par0 = e % 2 == 1;
    localparam logic Par1 = (e ^ (e >> 1)) % 2 == 1;
    localparam logic Par2 = (e ^ (e >> 1) ^ (e >> 2)) % 2 == 1;
    localparam logic Par3 = (e ^ (e >> 1) ^ (e >> 2) ^ (e >> 3)) % 2 == 1;
    logic signed [W-1:0] a_q, b_q;
    logic signed [45:0] ca_q, sb_q;
    logic minus2_q, minus3_q;

    always_ff @(posedge clk_i) begin
      if (live_q[1]) begin
        a_q <= z[e*W+:W];
        if (across1_q) begin
          b_q <= other[e*W+:W];
          minus2_q <= !(Par3 ^ sign1_q);
        end else begin
          case (pass1_q)
            2'd0: begin
              b_q <= z[(e^1)*W+:W];
              minus2_q <= !Par0;
            end
            2'd1: begin
              b_q <= z[(e^2)*W+:W];
              minus2_q <= !Par1;
            end
            2'd2: begin
              b_q <= z[(e^4)*W+:W];
              minus2_q <= !Par2;
            end
            default: begin
              b_q <= z[(e^8)*W+:W];
              minus2_q <= !Par3;
            end
          endcase
        end
      end
      if (live_q[2]) begin
        ca_q <= a_q * $signed(cos2_q);
        sb_q <= b_q * $signed(sin2_q);
        minus3_q <= minus2_q;
      end
      if (live_q[3]) y_q[e*W+:W] <= round20(ca_q, sb_q, minus3_q);
    end
  end

  // ---- results -----------------------------------------------------------------------------------
  // The next term begins while the last words of this one are on their way: its context waits in ctx_q.
  logic [rgu_pkg::CTX_W-1:0] ctx_q, wr_ctx_q;
  always_ff @(posedge clk_i) begin
    if (hdr_ready_o) ctx_q <= hdr_i[rgu_pkg::HDR_W-1:rgu_pkg::GAIN_W];
    if (issue && last_pass && !side_q) wr_ctx_q <= ctx_q;
  end

  assign wr_valid_o = valid4_q && last4_q;
  assign wr_side_o = side4_q;
  assign wr_word_o = word4_q;
  assign wr_data_o = y_q;
  assign wr_done_o = valid4_q && done4_q;
  assign wr_ctx_o = wr_ctx_q;
  assign mults_busy_o = live_q[2];
  assign busy_o = run_q || live_q != 3'b000 || valid4_q;
endmodule
