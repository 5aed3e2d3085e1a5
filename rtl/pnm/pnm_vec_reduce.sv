// Folds a vector to one float32: sixteen partial results by position in the row, rows ascending, then
// halves onto halves: 8, 4, 2, 1.
//
// A vector comes as `width` rows of four beats of four words, without a ready: the sender has at most two
// vectors on their way. One vector is gathered while the one before is folded up, 17 cycles.
module pnm_vec_reduce (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         max_i,
    input  logic         valid_i,
    input  logic         first_i,  // beat of a vector's first row
    input  logic         last_i,   // beat of a vector's last row
    input  logic [1:0]   beat_i,
    input  logic [127:0] data_i,
    output logic         valid_o,
    output logic [31:0]  data_o
);
  // ---- partial results: [buffer][beat], a buffer a vector ------------------------------------------
  logic [127:0] part_q [8];
  logic         side_q, up_q;        // buffer that is gathered, and the one that is folded
  logic [1:0]   full_q;              // buffer is complete
  logic [2:0]   run_q, last_q;       // stages of the fold of rows
  logic [1:0]   beat_q [3];
  logic         buf_q [3];
  logic [127:0] row_sum;
  logic         again;

  assign again = valid_i && !first_i;
  for (genvar l = 0; l < 4; l++) begin : g_row
    pnm_vec_fold u_fold (
        .clk_i, .en_i({run_q[1:0], again}), .max_i, .a_i(part_q[{side_q, beat_i}][32*l+:32]),
        .b_i(data_i[32*l+:32]), .r_o(row_sum[32*l+:32]));
  end

  // ---- the fold of the halves: steps 0..16 ---------------------------------------------------------
  logic         fold_q, tree_en;
  logic [4:0]   step_q;
  logic [127:0] x_q, y_q, tree_a, tree_b, tree_r;
  logic [1:0]   tree_q;
  always_comb begin
    tree_en = 1'b0;
    tree_a = x_q;
    tree_b = y_q;
    case (step_q)
      5'd0: begin tree_en = 1'b1; tree_a = part_q[{up_q, 2'd0}]; tree_b = part_q[{up_q, 2'd2}]; end
      5'd1: begin tree_en = 1'b1; tree_a = part_q[{up_q, 2'd1}]; tree_b = part_q[{up_q, 2'd3}]; end
      5'd5: tree_en = 1'b1;                                               // + 4
      5'd9: begin tree_en = 1'b1; tree_b = {64'b0, x_q[127:64]}; end      // + 2
      5'd13: begin tree_en = 1'b1; tree_b = {96'b0, x_q[63:32]}; end      // + 1
      default: ;
    endcase
    if (!fold_q) tree_en = 1'b0;
  end
  for (genvar l = 0; l < 4; l++) begin : g_tree
    pnm_vec_fold u_fold (
        .clk_i, .en_i({tree_q, tree_en}), .max_i, .a_i(tree_a[32*l+:32]), .b_i(tree_b[32*l+:32]),
        .r_o(tree_r[32*l+:32]));
  end

  assign valid_o = fold_q && step_q == 5'd16;
  assign data_o  = tree_r[31:0];

  logic complete; // the last beat of a vector lies in its place with the next cycle
  logic done_buf;
  assign complete = valid_i && first_i && last_i ? beat_i == 2'd3 : run_q[2] && last_q[2] && beat_q[2] == 2'd3;
  assign done_buf = valid_i && first_i && last_i ? side_q : buf_q[2];

  always_ff @(posedge clk_i) begin
    if (valid_i && first_i) part_q[{side_q, beat_i}] <= data_i;
    if (run_q[2]) part_q[{buf_q[2], beat_q[2]}] <= row_sum;
    if (again) begin
      beat_q[0] <= beat_i;
      buf_q[0]  <= side_q;
    end
    for (int unsigned k = 1; k < 3; k++)
      if (run_q[k-1]) begin
        beat_q[k] <= beat_q[k-1];
        buf_q[k]  <= buf_q[k-1];
      end
    if (fold_q) begin
      if (step_q == 5'd3 || step_q == 5'd8 || step_q == 5'd12) x_q <= tree_r;
      if (step_q == 5'd4) y_q <= tree_r;
    end
    if (!rst_ni) begin
      side_q <= 1'b0;
      up_q   <= 1'b0;
      full_q <= '0;
      run_q  <= '0;
      last_q <= '0;
      fold_q <= 1'b0;
      step_q <= '0;
      tree_q <= '0;
    end else begin
      run_q  <= {run_q[1:0], again};
      last_q <= {last_q[1:0], last_i};
      tree_q <= {tree_q[0], tree_en};
      if (valid_i && last_i && beat_i == 2'd3) side_q <= !side_q;
      if (fold_q && step_q == 5'd16) begin
        fold_q <= 1'b0;
        full_q[up_q] <= 1'b0;
        up_q   <= !up_q;
      end else if (fold_q) begin
        step_q <= step_q + 5'd1;
      end else if (full_q[up_q]) begin
        fold_q <= 1'b1;
        step_q <= '0;
      end
      if (complete) full_q[done_buf] <= 1'b1;
    end
  end
endmodule
