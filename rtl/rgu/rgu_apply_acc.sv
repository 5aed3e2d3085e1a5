// Accumulators of apply mode: 4,096 numbers of 56 bits in two banks, a running exponent for every
// slot.
//
// A slot holds one vector's D x D matrix: value = acc * 2^(exp - 31). Each pass adds one term of
// one chunk at exponent e: whichever of accumulator and product has the smaller exponent is shifted
// down, rounded half away from zero. A slot whose accumulators are all zero takes the exponent of
// what comes.
//   start_i (one pulse a pass, at the issue of its first column; slot, first, use, bad and e stand
//   from
//   then on): first: what was there is forgotten. use low: the pass adds nothing. u_valid_i comes 5
//   cycles
//   after its issue, with row and column of that issue in row_i, col_i. Stages: 5 read, 6 shift, 7
//   add
//   and write. A pass on the slot of the one before starts 4 cycles or more after the last issue of
//   that.
//   rd_*: reads for the results in cycles without u_valid_i; data the cycle after, held.
module rgu_apply_acc (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               n10_i,
    input  logic               start_i,
    input  logic [        3:0] slot_i,
    input  logic               first_i,
    input  logic               use_i,
    input  logic               bad_i,
    input  logic signed [10:0] e_i,
    input  logic               u_valid_i,
    input  logic [        4:0] row_i,     // n = 8: even row of the pair
    input  logic [        4:0] col_i,
    input  logic signed [53:0] u0_i,
    input  logic signed [53:0] u1_i,
    // results
    input  logic [        3:0] rd_slot_i,
    input  logic               rd_en_i,
    input  logic [        3:0] rd_pair_i,  // rows 2 pair_i and 2 pair_i + 1
    input  logic [        4:0] rd_col0_i,
    input  logic [        4:0] rd_col1_i,
    output logic signed [55:0] rd0_o,
    output logic signed [55:0] rd1_o,
    output logic signed [10:0] rd_exp_o,  // of rd_slot_i
    output logic               rd_bad_o
);
  localparam logic [5:0] UShift = 6'd6;

  // ---- exponents, decided four cycles after the start of a pass
  // -----------------------------------
  logic signed [10:0] exp_q[0:15];
  logic [15:0] any_q, bad_q;
  logic start_q1, start_q2, start_q3, start_q4;
  logic has, first_q, use_q;
  logic signed [10:0] old;
  logic signed [11:0] over;     // e - exp
  logic [5:0] acc_sh_q, u_sh_q;
  logic [3:0] slot_q;

  // The shifts change just before the first column of their pass reaches stage 5; by then the last
  // column of the pass before has left it.
  assign has = any_q[slot_i] && !first_i;
  assign old = exp_q[slot_i];
  assign over = 12'(e_i) - 12'(old);

  function automatic logic [5:0] clamp(input logic [11:0] x);
    clamp = x > 12'd63 ? 6'd63 : x[5:0];
  endfunction

  logic any_now;  // this cycle's sums
  always_ff @(posedge clk_i) begin
    start_q1 <= rst_ni && start_i;
    start_q2 <= rst_ni && start_q1;
    start_q3 <= rst_ni && start_q2;
    start_q4 <= rst_ni && start_q3;
    if (start_q4) begin
      slot_q <= slot_i;
      first_q <= first_i;
      use_q <= use_i;
      acc_sh_q <= use_i && has && over > 12'sd0 ? clamp(over) : 6'd0;
      u_sh_q <= use_i && has && over < 12'sd0 ? clamp(12'd6 - over) : UShift;
      if (use_i && (!has || over > 12'sd0)) exp_q[slot_i] <= e_i;
      bad_q[slot_i] <= (bad_q[slot_i] && !first_i) || bad_i;
    end
    if (start_q4) any_q[slot_i] <= 1'b0;
    if (any_now) any_q[slot3_q] <= 1'b1;
  end

  // ---- banks: row parity
  // ---------------------------------------------------------------------------
  function automatic logic [10:0] place(input logic n10, input logic [3:0] slot,
                                        input logic [3:0] pair, input logic [4:0] col);
    place = n10 ? {slot[1:0], pair, col} : {slot, pair[2:0], col[3:0]};
  endfunction

  logic [10:0] addr1_q, addr2_q;
  logic en0, en1, on0, on1, on0_q1, on1_q1, on0_q2, on1_q2;
  logic signed [55:0] mem0, mem1;
  logic signed [55:0] down0_q, down1_q, u0_q1, u1_q1, u0_q2, u1_q2, sum0, sum1;
  logic [3:0] slot2_q, slot3_q;
  logic [5:0] acc_sh2_q;
  logic first2_q;
  logic v1_q, v2_q;

  // n = 10: one row; n = 8: both
  assign on0 = u_valid_i && (!n10_i || !row_i[0]);
  assign on1 = u_valid_i && (!n10_i || row_i[0]);
  assign en0 = on0 || rd_en_i;
  assign en1 = on1 || rd_en_i;

  rgu_apply_ram #(.Width(56), .Depth(2048)) u_even (
      .clk_i, .we_i(on0_q2), .waddr_i(addr2_q), .wdata_i(sum0), .en_i(en0),
      .raddr_i(u_valid_i ? place(n10_i, slot_q, row_i[4:1], col_i)
                         : place(n10_i, rd_slot_i, rd_pair_i, rd_col0_i)),
      .rdata_o(mem0)
  );
  rgu_apply_ram #(.Width(56), .Depth(2048)) u_odd (
      .clk_i, .we_i(on1_q2), .waddr_i(addr2_q), .wdata_i(sum1), .en_i(en1),
      .raddr_i(u_valid_i ? place(n10_i, slot_q, row_i[4:1], col_i)
                         : place(n10_i, rd_slot_i, rd_pair_i, rd_col1_i)),
      .rdata_o(mem1)
  );

  // round half away from zero after dropping `by` bits
  function automatic logic signed [55:0] down(input logic signed [55:0] x, input logic [5:0] by);
    logic signed [63:0] y;
    y = 64'(x) + (by == 6'd0 ? 64'sd0 : (64'sd1 << (by - 6'd1)) - {63'd0, x[55]});
    y = y >>> by;
    down = 56'(y);
  endfunction

  // stage 5: the product comes and is shifted; stage 6: the accumulator comes and is shifted; 7:
  // add
  always_ff @(posedge clk_i) begin
    v1_q <= rst_ni && u_valid_i;
    v2_q <= v1_q;
    on0_q1 <= rst_ni && on0;
    on1_q1 <= rst_ni && on1;
    on0_q2 <= rst_ni && on0_q1;
    on1_q2 <= rst_ni && on1_q1;
    if (u_valid_i) begin
      addr1_q <= place(n10_i, slot_q, row_i[4:1], col_i);
      u0_q1 <= use_q ? down(56'(u0_i), u_sh_q) : 56'sd0;
      u1_q1 <= use_q ? down(n10_i ? 56'(u0_i) : 56'(u1_i), u_sh_q) : 56'sd0;
      slot2_q <= slot_q;
      first2_q <= first_q;
      acc_sh2_q <= acc_sh_q;
    end
    if (v1_q) begin
      addr2_q <= addr1_q;
      u0_q2 <= u0_q1;
      u1_q2 <= u1_q1;
      down0_q <= first2_q ? 56'sd0 : down(mem0, acc_sh2_q);
      down1_q <= first2_q ? 56'sd0 : down(mem1, acc_sh2_q);
      slot3_q <= slot2_q;
    end
  end
  assign sum0 = down0_q + u0_q2;
  assign sum1 = down1_q + u1_q2;
  assign any_now = (on0_q2 && sum0 != '0) || (on1_q2 && sum1 != '0);

  assign rd0_o = mem0;
  assign rd1_o = mem1;
  assign rd_exp_o = exp_q[rd_slot_i];
  assign rd_bad_o = bad_q[rd_slot_i];

  logic unused;
  assign unused = v2_q;
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (!(rd_en_i && u_valid_i));
  end
endmodule
