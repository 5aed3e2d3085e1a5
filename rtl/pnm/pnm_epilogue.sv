// Sums to results: float32, bias, old value, threshold, into the scratchpad, four words at a time.
//
// valid_i brings the sums of four neighbouring outputs of vector vector_i, outputs 4 * quad_i to 4 * quad_i + 3,
// at most one a cycle; the sender has counted that there is room for Depth of them (taken_o gives one back).
// Bias rows lie in a cache of four, the row of old values is kept while it is the same, so that four quads cost
// two reads at most. Words are written once, so a row that is kept never goes stale. Under hold_i nothing is
// written: y may lie on activations that have not been read. A result of every vector can wait.
module pnm_epilogue #(
    parameter int unsigned Depth = 16
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               start_i,  // of a descriptor: nothing is cached
    input  logic               hold_i,
    input  logic               bias_i,
    input  logic               accum_i,
    input  logic               relu_i,
    input  logic [11:0]        bias_row_i,
    input  logic [11:0]        old_i,
    input  logic [11:0]        old_stride_i,
    input  logic [11:0]        y_i,
    input  logic [11:0]        y_stride_i,
    // sums
    input  logic               valid_i,
    input  logic [5:0]         vector_i,
    input  logic [13:0]        quad_i,
    input  logic [8:0]         top_i,
    input  logic [203:0]       sums_i,   // four of {nan, pinf, ninf, acc}
    output logic               taken_o,
    output logic               written_o,
    output logic               nonfinite_o,
    // scratchpad
    output logic               rd_valid_o,
    input  logic               rd_ready_i,
    output logic [11:0]        rd_row_o,
    input  logic               rd_rvalid_i,
    input  logic [511:0]       rd_data_i,
    output logic               wr_valid_o,
    input  logic               wr_ready_i,
    output logic [11:0]        wr_row_o,
    output logic [15:0]        wr_be_o,
    output logic [511:0]       wr_data_o
);
  // ---- sums that wait --------------------------------------------------------------------------------
  logic         in_valid, in_ready, fifo_ready;
  logic [5:0]   vector;
  logic [13:0]  quad;
  logic [8:0]   top;
  logic [203:0] sums;
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  logic [CountWidth-1:0] unused_in;
  mr_fifo #(.Width(233), .Depth(Depth)) u_in (
      .clk_i,
      .rst_ni,
      .valid_i,
      .ready_o(fifo_ready),
      .data_i({vector_i, quad_i, top_i, sums_i}),
      .valid_o(in_valid),
      .ready_i(in_ready),
      .data_o({vector, quad, top, sums}),
      .count_o(unused_in)
  );

  // ---- operands --------------------------------------------------------------------------------------
  logic [3:0]   bias_full_q;
  logic [9:0]   bias_tag_q [4];
  logic [511:0] bias_q [4];
  logic         old_full_q, bias_hit, old_hit, pend_q, pend_old_q;
  logic [5:0]   old_vector_q;
  logic [11:0]  old_tag_q;
  logic [511:0] old_q;
  logic [11:0]  row;        // of the output, within its vector
  logic [1:0]   way;
  assign row      = quad[13:2];
  assign way      = row[1:0];
  assign bias_hit = !bias_i || (bias_full_q[way] && bias_tag_q[way] == row[11:2]);
  assign old_hit  = !accum_i || (old_full_q && old_tag_q == row && old_vector_q == vector);

  logic [11:0] old_row, y_row;
  assign old_row    = old_i + 12'(vector * old_stride_i) + row;
  assign y_row      = y_i + 12'(vector * y_stride_i) + row;
  assign rd_valid_o = in_valid && !pend_q && !(bias_hit && old_hit);
  assign rd_row_o   = !bias_hit ? bias_row_i + row : old_row;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      bias_full_q <= '0;
      old_full_q  <= 1'b0;
      pend_q      <= 1'b0;
    end else begin
      pend_q <= rd_valid_o && rd_ready_i;
      if (rd_valid_o && rd_ready_i && bias_hit) old_full_q <= 1'b0;
      if (pend_q && rd_rvalid_i) begin
        if (pend_old_q) old_full_q <= 1'b1;
        else bias_full_q[way] <= 1'b1;
      end
    end
    if (rd_valid_o && rd_ready_i) pend_old_q <= bias_hit;
    if (pend_q && rd_rvalid_i) begin
      if (pend_old_q) begin
        old_q        <= rd_data_i;
        old_tag_q    <= row;
        old_vector_q <= vector;
      end else begin
        bias_q[way]     <= rd_data_i;
        bias_tag_q[way] <= row[11:2];
      end
    end
  end

  // ---- nine stages: to float32, bias, old ------------------------------------------------------------
  localparam int unsigned Waiting = 12 + pnm_desc_pkg::MAX_VECTORS;
  logic [6:0]   room_q;  // results under way to the write port
  logic         go, out;
  logic [8:0]   run_q;
  logic [127:0] bias_words, old_words, bias_d_q [3], old_d_q [6], r, with_bias, with_old, y;
  logic [31:0]  place_q [9];  // {row, quarter} of what is under way
  logic [31:0]  marks_q [3];
  assign go       = in_valid && bias_hit && old_hit && !pend_q && room_q != 7'(Waiting);
  assign in_ready = go;
  assign taken_o  = go;
  assign bias_words = bias_q[way][128*quad[1:0]+:128];
  assign old_words  = old_q[128*quad[1:0]+:128];
  assign out        = wr_valid_o && wr_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_q  <= '0;
      room_q <= '0;
    end else begin
      run_q  <= {run_q[7:0], go};
      room_q <= room_q + {6'd0, go} - {6'd0, out};
    end
    if (go) begin
      place_q[0] <= {18'd0, y_row, quad[1:0]};
      marks_q[0] <= {20'd0, sums[203:201], sums[152:150], sums[101:99], sums[50:48]};
      if (bias_i) bias_d_q[0] <= bias_words;
      if (accum_i) old_d_q[0] <= old_words;
    end
    for (int unsigned k = 1; k < 9; k++) if (run_q[k-1]) place_q[k] <= place_q[k-1];
    for (int unsigned k = 1; k < 3; k++) if (run_q[k-1]) marks_q[k] <= marks_q[k-1];
    for (int unsigned k = 1; k < 3; k++) if (run_q[k-1] && bias_i) bias_d_q[k] <= bias_d_q[k-1];
    for (int unsigned k = 1; k < 6; k++) if (run_q[k-1] && accum_i) old_d_q[k] <= old_d_q[k-1];
  end

  // products have 14 fraction bits and 19 below them; both exponents are biased by 127
  logic signed [10:0] scale;
  assign scale = $signed({2'b00, top}) - 11'sd287;

  for (genvar q = 0; q < 4; q++) begin : g_word
    logic [31:0]  fixed, value, b_pass_q [3], o_pass_q [3];
    logic [2:0]   mark; // nan, +inf, -inf
    mr_fx48_to_fp32 u_fp (
        .clk_i, .en_i({run_q[1:0], go}), .acc_i($signed(sums[51*q+:48])), .exp_i(scale), .r_o(fixed));
    assign mark = marks_q[2][3*q+:3];
    always_comb begin
      value = fixed;
      if (mark[2] || (mark[1] && mark[0])) value = 32'h7FC0_0000;
      else if (mark[1]) value = 32'h7F80_0000;
      else if (mark[0]) value = 32'hFF80_0000;
    end
    assign r[32*q+:32] = value;
    mr_fp32_add u_bias (
        .clk_i, .en_i(run_q[4:2] & {3{bias_i}}), .a_i(r[32*q+:32]), .b_i(bias_d_q[2][32*q+:32]),
        .sum_o(with_bias[32*q+:32]));
    mr_fp32_add u_old (
        .clk_i, .en_i(run_q[7:5] & {3{accum_i}}), .a_i(bias_i ? with_bias[32*q+:32] : b_pass_q[2]),
        .b_i(old_d_q[5][32*q+:32]), .sum_o(with_old[32*q+:32]));
    always_ff @(posedge clk_i) begin
      if (!bias_i) begin
        if (run_q[2]) b_pass_q[0] <= r[32*q+:32];
        if (run_q[3]) b_pass_q[1] <= b_pass_q[0];
        if (run_q[4]) b_pass_q[2] <= b_pass_q[1];
      end
      if (!accum_i) begin
        if (run_q[5]) o_pass_q[0] <= bias_i ? with_bias[32*q+:32] : b_pass_q[2];
        if (run_q[6]) o_pass_q[1] <= o_pass_q[0];
        if (run_q[7]) o_pass_q[2] <= o_pass_q[1];
      end
    end
    always_comb begin
      y[32*q+:32] = accum_i ? with_old[32*q+:32] : o_pass_q[2];
      if (relu_i && y[32*q+31] && y[32*q+:31] <= 31'h7F80_0000) y[32*q+:32] = '0;
    end
  end

  logic         push_ready, out_valid;
  logic [6:0]   unused_out;
  logic [11:0]  out_row;
  logic [1:0]   out_quarter;
  logic [127:0] out_words;
  mr_fifo #(.Width(142), .Depth(Waiting)) u_out (
      .clk_i,
      .rst_ni,
      .valid_i(run_q[8]),
      .ready_o(push_ready),
      .data_i({place_q[8][13:0], y}),
      .valid_o(out_valid),
      .ready_i(wr_ready_i && !hold_i),
      .data_o({out_row, out_quarter, out_words}),
      .count_o(unused_out)
  );
  assign wr_valid_o = out_valid && !hold_i;
  assign wr_row_o   = out_row;
  assign wr_be_o    = 16'hF << {out_quarter, 2'b00};
  assign wr_data_o  = {4{out_words}};
  assign written_o  = out;

  always_comb begin
    nonfinite_o = 1'b0;
    for (int unsigned q = 0; q < 4; q++) if (run_q[8] && y[32*q+23+:8] == 8'hFF) nonfinite_o = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!valid_i || fifo_ready);
      assert (!run_q[8] || push_ready);
    end
  end
endmodule
