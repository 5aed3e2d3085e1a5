// The order in which a MATVEC reads its columns: DRAM row, vector, column of the row. So an open row serves all
// vectors before it is closed.
//
// start_i, a pulse. valid_o with the column and its place: activation column act_o, vector, output quad; head_o
// and tail_o say that the column is the first or last one of its output, enter_o and leave_o that it is the
// first or last one that the vector sees of this row. close_o: nobody needs the row any more. One step a cycle
// under next_i; done_o: the last one has been taken.
module pnm_walk (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,
    input  logic [13:0] col_i,
    input  logic [8:0]  kc_i,
    input  logic [13:0] quads_i,    // outputs / 4
    input  logic [6:0]  vectors_i,
    output logic        valid_o,
    input  logic        next_i,
    output logic [13:0] col_o,
    output logic [9:0]  act_o,
    output logic [5:0]  vector_o,
    output logic [13:0] quad_o,
    output logic        head_o,
    output logic        tail_o,
    output logic        enter_o,
    output logic        leave_o,
    output logic        close_o
);
  logic        busy_q;
  logic [13:0] col_q, row_col_q, quad_q, row_quad_q, quad_next;
  logic [8:0]  k_q, row_k_q, k_next;
  logic [6:0]  n_q;
  logic [9:0]  base_q;  // n * kc
  logic        last, vec_last;

  assign valid_o  = busy_q;
  assign col_o    = col_q;
  assign act_o    = base_q + {1'b0, k_q};
  assign vector_o = n_q[5:0];
  assign quad_o   = quad_q;
  assign head_o   = k_q == 9'd0;
  assign tail_o   = k_q + 9'd1 == kc_i;
  assign enter_o  = col_q == row_col_q;
  assign last     = tail_o && quad_q + 14'd1 == quads_i;
  assign leave_o  = col_q[3:0] == 4'hF || last;
  assign vec_last = n_q + 7'd1 == vectors_i;
  assign close_o  = leave_o && vec_last;
  assign k_next    = tail_o ? 9'd0 : k_q + 9'd1;
  assign quad_next = tail_o ? quad_q + 14'd1 : quad_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (start_i) busy_q <= 1'b1;
    else if (next_i && last && vec_last) busy_q <= 1'b0;
    if (start_i) begin
      col_q      <= col_i;
      row_col_q  <= col_i;
      quad_q     <= '0;
      row_quad_q <= '0;
      k_q        <= '0;
      row_k_q    <= '0;
      n_q        <= '0;
      base_q     <= '0;
    end else if (next_i) begin
      if (!leave_o) begin
        col_q  <= col_q + 14'd1;
        k_q    <= k_next;
        quad_q <= quad_next;
      end else if (!vec_last) begin // the same columns for the next vector
        col_q  <= row_col_q;
        k_q    <= row_k_q;
        quad_q <= row_quad_q;
        n_q    <= n_q + 7'd1;
        base_q <= base_q + {1'b0, kc_i};
      end else begin
        col_q      <= col_q + 14'd1;
        row_col_q  <= col_q + 14'd1;
        k_q        <= k_next;
        row_k_q    <= k_next;
        quad_q     <= quad_next;
        row_quad_q <= quad_next;
        n_q        <= '0;
        base_q     <= '0;
      end
    end
  end
endmodule
