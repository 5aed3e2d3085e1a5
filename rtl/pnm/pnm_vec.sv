// The vector side of a group: executes VEC descriptors, d[r] = reduce(f(+-(a[r] * m) +- c)).
//
// desc_i is stable from start_i, a pulse, to done_o, a pulse after the last write has been granted; its
// fields have been checked. Rows of 16 words go through four lanes in four beats. Up to three reads and
// one write a row: four elements a cycle while the scratchpad grants them, and at most 14 cycles beside, 20 by
// table. With a reduction two vectors are under way: a vector takes the most of its beats, 18 cycles, and half of
// its beats and 15 (18 by table), a descriptor at most 40 beside. Rows under way are counted, so that the row
// FIFO in front of the write port takes all of them and the lanes never stop.
module pnm_vec (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    /* verilator lint_off UNUSEDSIGNAL */ // fields of other descriptors
    input  logic [511:0] desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic         done_o,
    // scratchpad
    output logic         rd_valid_o,
    input  logic         rd_ready_i,
    output logic [11:0]  rd_row_o,
    input  logic         rd_rvalid_i,
    input  logic [511:0] rd_data_i,
    output logic         wr_valid_o,
    input  logic         wr_ready_i,
    output logic [11:0]  wr_row_o,
    output logic [15:0]  wr_be_o,
    output logic [511:0] wr_data_o,
    // events
    output logic [4:0]   elems_o,
    output logic         nonfinite_o
);
  localparam int unsigned RowsUnderWay = 6;
  localparam logic [1:0] Element = 2'd2, Scalar = 2'd3;

  // ---- fields ----------------------------------------------------------------------------------------
  logic [2:0]  fn;
  logic [1:0]  mul, add, reduce;
  logic        neg_mul, neg_add, by_table, reducing;
  logic [15:0] count, width;
  logic [11:0] d0, a0, b0, c0, d_stride, a_stride, b_stride, c_stride; // rows modulo the scratchpad
  assign fn       = desc_i[pnm_desc_pkg::D_VEC_FN_LSB+:3];
  assign mul      = desc_i[pnm_desc_pkg::D_VEC_MUL_LSB+:2];
  assign add      = desc_i[pnm_desc_pkg::D_VEC_ADD_LSB+:2];
  assign neg_mul  = desc_i[pnm_desc_pkg::D_VEC_NEG_MUL_LSB];
  assign neg_add  = desc_i[pnm_desc_pkg::D_VEC_NEG_ADD_LSB];
  assign reduce   = desc_i[pnm_desc_pkg::D_VEC_REDUCE_LSB+:2];
  assign count    = desc_i[pnm_desc_pkg::D_VEC_COUNT_LSB+:16];
  assign width    = desc_i[pnm_desc_pkg::D_VEC_WIDTH_LSB+:16];
  assign d0       = desc_i[pnm_desc_pkg::D_VEC_D_LSB+:12];
  assign d_stride = desc_i[pnm_desc_pkg::D_VEC_D_STRIDE_LSB+:12];
  assign a0       = desc_i[pnm_desc_pkg::D_VEC_A_LSB+:12];
  assign a_stride = desc_i[pnm_desc_pkg::D_VEC_A_STRIDE_LSB+:12];
  assign b0       = desc_i[pnm_desc_pkg::D_VEC_B_LSB+:12];
  assign b_stride = desc_i[pnm_desc_pkg::D_VEC_B_STRIDE_LSB+:12];
  assign c0       = desc_i[pnm_desc_pkg::D_VEC_C_LSB+:12];
  assign c_stride = desc_i[pnm_desc_pkg::D_VEC_C_STRIDE_LSB+:12];
  assign by_table = fn == 3'd1 || fn == 3'd2;
  assign reducing = reduce != 2'd0;

  // ---- fetch: the operands of one row ahead ----------------------------------------------------------
  typedef enum logic [2:0] {None, ReadA, ReadB, ReadC, ReadM, ReadS, Ready} fetch_e; // M, S: scalars of b, c
  fetch_e       fetch_q, target_q;
  logic         pend_q;
  logic [15:0]  fr_q, fi_q; // vector and row that are fetched
  logic [11:0]  a_q, b_q, c_q; // first rows of the vector
  logic [511:0] a_row_q, b_row_q, c_row_q, m_row_q, s_row_q;
  logic         scalars, complete, load, may_load, fetch_last;

  function automatic fetch_e after(input fetch_e now, input logic b, input logic c, input logic m, input logic s);
    after = Ready;
    if (now < ReadS && s) after = ReadS;
    if (now < ReadM && m) after = ReadM;
    if (now < ReadC && c) after = ReadC;
    if (now < ReadB && b) after = ReadB;
  endfunction

  assign scalars    = fi_q == 16'd0 && fr_q[3:0] == 4'd0;
  assign rd_valid_o = fetch_q != None && fetch_q != Ready;
  always_comb begin
    case (fetch_q)
      ReadB: rd_row_o = b_q + fi_q[11:0];
      ReadC: rd_row_o = c_q + fi_q[11:0];
      ReadM: rd_row_o = b0 + fr_q[15:4];
      ReadS: rd_row_o = c0 + fr_q[15:4];
      default: rd_row_o = a_q + fi_q[11:0];
    endcase
  end
  assign complete   = fetch_q == Ready && (!pend_q || rd_rvalid_i);
  assign load       = complete && may_load;
  assign fetch_last = fi_q + 16'd1 == width;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fetch_q <= None;
      pend_q  <= 1'b0;
    end else begin
      pend_q <= (rd_valid_o && rd_ready_i) || (pend_q && !rd_rvalid_i);
      if (start_i) fetch_q <= ReadA;
      else if (load) fetch_q <= fetch_last && fr_q + 16'd1 == count ? None : ReadA;
      else if (rd_valid_o && rd_ready_i)
        fetch_q <= after(fetch_q, mul == Element, add == Element, mul == Scalar && scalars,
                         add == Scalar && scalars);
    end
    if (rd_valid_o && rd_ready_i) target_q <= fetch_q;
    if (start_i) begin
      fr_q <= '0;
      fi_q <= '0;
      a_q  <= a0;
      b_q  <= b0;
      c_q  <= c0;
    end else if (load) begin
      fi_q <= fetch_last ? 16'd0 : fi_q + 16'd1;
      if (fetch_last) begin
        fr_q <= fr_q + 16'd1;
        a_q  <= a_q + a_stride;
        b_q  <= b_q + b_stride;
        c_q  <= c_q + c_stride;
      end
    end
    if (rd_rvalid_i && pend_q)
      case (target_q)
        ReadA: a_row_q <= rd_data_i;
        ReadB: b_row_q <= rd_data_i;
        ReadC: c_row_q <= rd_data_i;
        ReadM: m_row_q <= rd_data_i;
        default: s_row_q <= rd_data_i;
      endcase
  end

  // ---- the row in hand: four beats -------------------------------------------------------------------
  logic         cur_q;
  logic [1:0]   beat_q;
  logic [511:0] cur_a_q, cur_m_q, cur_c_q;
  logic [31:0]  m_one_q, c_one_q; // where m or c is one value a vector
  logic [2:0]   rows_q;           // rows, or reduced vectors, under way to the write port
  logic [1:0]   vectors_q;        // vectors on their way through the reduction
  logic         row_out, vector_out;

  assign may_load = (!cur_q || beat_q == 2'd3) &&
      (reducing && fi_q != 16'd0 || rows_q < 3'(RowsUnderWay) && (!reducing || vectors_q < 2'd2));

  logic         fresh;
  logic [511:0] in_a, in_b, in_c, in_m, in_s;
  assign fresh = pend_q && rd_rvalid_i; // the last operand comes in the cycle in which the row is loaded
  assign in_a  = fresh && target_q == ReadA ? rd_data_i : a_row_q;
  assign in_b  = fresh && target_q == ReadB ? rd_data_i : b_row_q;
  assign in_c  = fresh && target_q == ReadC ? rd_data_i : c_row_q;
  assign in_m  = fresh && target_q == ReadM ? rd_data_i : m_row_q;
  assign in_s  = fresh && target_q == ReadS ? rd_data_i : s_row_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cur_q     <= 1'b0;
      beat_q    <= '0;
      rows_q    <= '0;
      vectors_q <= '0;
    end else begin
      cur_q  <= load || (cur_q && beat_q != 2'd3);
      beat_q <= cur_q ? beat_q + 2'd1 : 2'd0;
      rows_q <= rows_q + {2'd0, load && (!reducing || fi_q == 16'd0)} - {2'd0, row_out};
      vectors_q <= vectors_q + {1'b0, reducing && load && fi_q == 16'd0} - {1'b0, vector_out};
    end
    if (load) begin
      cur_a_q <= in_a;
      if (mul == Element) cur_m_q <= in_b;
      if (add == Element) cur_c_q <= in_c;
      m_one_q <= mul == Scalar ? in_m[32*fr_q[3:0]+:32] : desc_i[pnm_desc_pkg::D_VEC_IMM_M_LSB+:32];
      c_one_q <= add == Scalar ? in_s[32*fr_q[3:0]+:32] : desc_i[pnm_desc_pkg::D_VEC_IMM_C_LSB+:32];
    end else if (cur_q) begin
      cur_a_q <= cur_a_q >> 128;
      if (mul == Element) cur_m_q <= cur_m_q >> 128;
      if (add == Element) cur_c_q <= cur_c_q >> 128;
    end
  end

  // ---- lanes -----------------------------------------------------------------------------------------
  logic [11:0]  run_q;
  logic [127:0] value;
  logic         value_valid;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) run_q <= '0;
    else run_q <= {run_q[10:5] & {6{by_table}}, run_q[4:0], cur_q};
  end
  for (genvar l = 0; l < 4; l++) begin : g_lane
    pnm_vec_lane u_lane (
        .clk_i,
        .en_i({run_q[10:0], cur_q}),
        .fn_i(fn),
        .mul_i(mul != 2'd0),
        .add_i(add != 2'd0),
        .neg_mul_i(neg_mul),
        .neg_add_i(neg_add),
        .a_i(cur_a_q[32*l+:32]),
        .m_i(mul == Element ? cur_m_q[32*l+:32] : m_one_q),
        .c_i(add == Element ? cur_c_q[32*l+:32] : c_one_q),
        .v_o(value[32*l+:32])
    );
  end
  assign value_valid = by_table ? run_q[11] : run_q[5];
  assign elems_o     = value_valid ? 5'd4 : 5'd0;

  // ---- what comes out, in the same order -------------------------------------------------------------
  logic [15:0]  or_q, oi_q;
  logic [1:0]   ob_q;
  logic [11:0]  d_q;
  logic [383:0] gather_q;
  logic         out_last, push;
  logic [539:0] push_data;
  assign out_last = oi_q + 16'd1 == width;
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      or_q <= '0;
      oi_q <= '0;
      ob_q <= '0;
      d_q  <= d0;
    end else if (value_valid) begin
      ob_q <= ob_q + 2'd1;
      if (ob_q == 2'd3) begin
        oi_q <= out_last ? 16'd0 : oi_q + 16'd1;
        if (out_last) d_q <= d_q + d_stride;
      end
    end
    if (reducing && vector_out && !start_i) or_q <= or_q + 16'd1;
    if (value_valid && !reducing) gather_q <= {value, gather_q[383:128]};
  end

  logic [31:0] folded;
  pnm_vec_reduce u_reduce (
      .clk_i,
      .rst_ni,
      .max_i(reduce == 2'd2),
      .valid_i(value_valid && reducing),
      .first_i(oi_q == 16'd0),
      .last_i(out_last),
      .beat_i(ob_q),
      .data_i(value),
      .valid_o(vector_out),
      .data_o(folded)
  );

  assign push = reducing ? vector_out : value_valid && ob_q == 2'd3;
  assign push_data = reducing
      ? {d0 + or_q[15:4], 16'd1 << or_q[3:0], {16{folded}}}
      : {d_q + oi_q[11:0], 16'hFFFF, value, gather_q};

  logic       push_ready;
  logic [2:0] unused_count;
  mr_fifo #(.Width(540), .Depth(RowsUnderWay)) u_rows (
      .clk_i,
      .rst_ni,
      .valid_i(push),
      .ready_o(push_ready),
      .data_i(push_data),
      .valid_o(wr_valid_o),
      .ready_i(wr_ready_i),
      .data_o({wr_row_o, wr_be_o, wr_data_o}),
      .count_o(unused_count)
  );
  assign row_out = wr_valid_o && wr_ready_i;

  // ---- end -------------------------------------------------------------------------------------------
  logic [31:0] left_q;
  logic        busy_q, odd;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (start_i) busy_q <= 1'b1;
    else if (done_o) busy_q <= 1'b0;
    if (start_i) left_q <= reducing ? {16'd0, count} : count * width;
    else if (wr_valid_o && wr_ready_i) left_q <= left_q - 32'd1;
  end
  assign done_o = busy_q && wr_valid_o && wr_ready_i && left_q == 32'd1;

  always_comb begin
    odd = 1'b0;
    if (!reducing)
      for (int unsigned l = 0; l < 4; l++)
        if (value_valid && value[32*l+23+:8] == 8'hFF) odd = 1'b1;
    if (reducing && vector_out && folded[30:23] == 8'hFF) odd = 1'b1;
  end
  assign nonfinite_o = odd && !by_table && reduce != 2'd2;

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!push || push_ready);          // rows under way were counted
      assert (!start_i || !busy_q || done_o);  // one descriptor at a time
    end
  end
endmodule
