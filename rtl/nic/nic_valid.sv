// One bit for each 4,096-byte page of KV memory: it has been written at its block's epoch.
//
// Words of 64 pages. A check of any range reads a word a cycle: chk_done_o comes 2 cycles after it was
// accepted and one more for each further word. A set takes 2 cycles, a clear a cycle for each full word
// and 2 for one in part. One operation at a time; bad_valid_i (a write has failed) is queued and goes first.
// A VALID descriptor clears a range, a DIR descriptor with its clear flag the pages of its block.
// Pages beyond 2^PageBits are never valid. After a reset no page is valid; that takes 2^(PageBits - 15)
// cycles: a word counts only when its own live bit is set.
module nic_valid #(
    parameter int unsigned PageBits = 14 // 20 in nic_top
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         upd_fire_i,
    output logic         upd_ready_o,
    /* verilator lint_off UNUSEDSIGNAL */ // other descriptors' bits
    input  logic [511:0] upd_desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic         chk_valid_i,
    output logic         chk_ready_o,
    input  logic [23:0]  chk_page_i,
    input  logic [20:0]  chk_count_i, // 0 is fine
    output logic         chk_done_o,
    output logic         chk_ok_o,
    input  logic         set_valid_i,
    output logic         set_ready_o,
    input  logic [23:0]  set_page_i,
    input  logic         bad_valid_i,
    input  logic [23:0]  bad_page_i
);
  localparam int unsigned WordBits = PageBits - 6;
  localparam int unsigned BitsW    = WordBits >= 10 ? 512 : 64;
  localparam int unsigned CountW   = 33;
  localparam int unsigned Bad      = 64; // more than nic_kvwr has writes under way

  typedef enum logic [2:0] {Idle, Check, Set, Clear, ClearPart} state_e;
  state_e state_q, state_d;

  logic [63:0]        mem [0:2**WordBits-1];
  logic [63:0]        word_q, word, mask, wr_word;
  logic [WordBits-1:0] rd_word, wr_addr;
  logic [32:0]        page_q, page_d, start;  // the rest of the range
  logic [CountW-1:0]  count_q, count_d, length, room;
  logic [6:0]         take;
  logic               rd_en, wr_en, live, live_wr, live_ready, idle, ok, done_d, done_q, ok_q, ok_d;
  logic               bad_valid, bad_pop, unused_ready;
  logic [23:0]        bad_page;
  logic [$clog2(Bad + 1)-1:0] unused_count;

  mr_fifo #(.Width(24), .Depth(Bad)) u_bad (
    .clk_i, .rst_ni, .valid_i(bad_valid_i), .ready_o(unused_ready), .data_i(bad_page_i), .valid_o(bad_valid),
    .ready_i(bad_pop), .data_o(bad_page), .count_o(unused_count)
  );
  nic_bits #(.AddrBits(WordBits), .Group(1), .Width(BitsW)) u_live (
    .clk_i, .rst_ni, .ready_o(live_ready), .rd_en_i(rd_en), .rd_addr_i(rd_word), .rd_data_o(live),
    .wr_en_i(live_wr), .wr_data_i(1'b1)
  );

  // ---- what a descriptor clears ----
  logic         is_valid, is_dir;
  logic [CountW-1:0] dir_pages;
  assign is_valid  = upd_fire_i && upd_desc_i[7:0] == nic_desc_pkg::DESC_VALID;
  assign is_dir    = upd_fire_i && upd_desc_i[7:0] == nic_desc_pkg::DESC_DIR && upd_desc_i[nic_desc_pkg::D_DIR_CLEAR_LSB];
  assign dir_pages = ({1'b0, upd_desc_i[nic_desc_pkg::D_DIR_BYTES_LSB+:32]} + CountW'(4095)) >> 12;

  // ---- one operation at a time ----
  assign idle        = state_q == Idle && live_ready && !bad_valid;
  assign chk_ready_o = idle;
  assign set_ready_o = idle && !chk_valid_i;
  assign upd_ready_o = idle && !chk_valid_i && !set_valid_i;

  always_comb begin
    start  = {9'd0, bad_page};
    length = CountW'(1);
    if (!bad_valid && chk_valid_i) begin
      start  = {9'd0, chk_page_i};
      length = CountW'(chk_count_i);
    end else if (!bad_valid && set_valid_i) begin
      start  = {9'd0, set_page_i};
    end else if (!bad_valid && is_dir) begin
      start  = {1'b0, upd_desc_i[nic_desc_pkg::D_DIR_PAGE_LSB+:32]};
      length = dir_pages;
    end else if (!bad_valid) begin
      start  = {1'b0, upd_desc_i[nic_desc_pkg::D_VALID_PAGE_LSB+:32]};
      length = {1'b0, upd_desc_i[nic_desc_pkg::D_VALID_COUNT_LSB+:32]};
    end
  end

  // the pages of the range in the word at page_q
  assign room = CountW'(64) - CountW'(page_q[5:0]);
  assign take = count_q < room ? count_q[6:0] : room[6:0];
  assign mask = take == 7'd0 ? '0 : ({64{1'b1}} >> (7'd64 - take)) << page_q[5:0];
  assign word = live ? word_q : '0;
  assign ok   = (word & mask) == mask;

  always_comb begin
    state_d = state_q;
    page_d  = page_q;
    count_d = count_q;
    rd_en   = 1'b0;
    rd_word = page_q[PageBits-1:6];
    wr_en   = 1'b0;
    wr_addr = page_q[PageBits-1:6];
    wr_word = '0;
    live_wr = 1'b0;
    bad_pop = 1'b0;
    done_d  = 1'b0;
    ok_d    = 1'b0;
    case (state_q)
      Idle: begin
        page_d  = start;
        count_d = length;
        rd_word = start[PageBits-1:6];
        rd_en   = live_ready && (bad_valid || chk_valid_i || set_valid_i || upd_fire_i);
        bad_pop = live_ready && bad_valid;
        if (live_ready) begin
          if (bad_valid || (!chk_valid_i && !set_valid_i && (is_valid || is_dir))) state_d = Clear;
          else if (chk_valid_i) state_d = Check;
          else if (set_valid_i) state_d = Set;
        end
      end
      Check: begin
        page_d  = page_q + 33'(take);
        count_d = count_q - CountW'(take);
        rd_word = page_d[PageBits-1:6];
        rd_en   = 1'b1;
        // beyond the bits there are no valid pages
        ok_d    = ok && ((page_q + count_q) >> PageBits == '0 || (page_q + count_q) == 33'(1 << PageBits));
        if (count_q == '0) ok_d = 1'b1;
        if (!ok_d || count_d == '0) begin
          done_d  = 1'b1;
          state_d = Idle;
        end
      end
      Set: begin
        wr_en   = page_q[32:PageBits] == '0;
        wr_word = word | mask;
        live_wr = wr_en;
        state_d = Idle;
      end
      Clear: begin
        if (count_q == '0 || page_q[32:PageBits] != '0) state_d = Idle;
        else if (take == 7'd64) begin
          wr_en   = 1'b1;
          page_d  = page_q + 33'(take);
          count_d = count_q - CountW'(take);
        end else begin
          rd_en   = 1'b1;
          state_d = ClearPart;
        end
      end
      ClearPart: begin
        wr_en   = live;
        wr_word = word & ~mask;
        page_d  = page_q + 33'(take);
        count_d = count_q - CountW'(take);
        state_d = Clear;
      end
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (rd_en) word_q <= mem[rd_word];
    if (wr_en) mem[wr_addr] <= wr_word;
    page_q  <= page_d;
    count_q <= count_d;
    ok_q    <= ok_d;
    done_q  <= rst_ni && done_d;
    state_q <= rst_ni ? state_d : Idle;
    if (rst_ni) begin
      bad_has_room:              assert (!bad_valid_i || unused_ready);
      update_between_operations: assert (!upd_fire_i || upd_ready_o);
    end
  end

  assign chk_done_o = done_q;
  assign chk_ok_o   = ok_q;

  mr_stream_check #(.Width(45)) u_check_chk (
    .clk_i, .rst_ni, .valid_i(chk_valid_i), .ready_i(chk_ready_o), .data_i({chk_page_i, chk_count_i}), .keep_i(1'b1),
    .last_i(1'b0)
  );
  mr_stream_check #(.Width(24)) u_check_set (
    .clk_i, .rst_ni, .valid_i(set_valid_i), .ready_i(set_ready_o), .data_i(set_page_i), .keep_i(1'b1), .last_i(1'b0)
  );
endmodule
