// The order in which a MATVEC multiplies: DRAM row, vector, column of the row. So a row that has been read serves
// all vectors before it is given up.
//
// Vectors are in hand one after the other (loaded_i of them so far), and none waits for the others: rows go round
// and round, a vector joins at the first output that begins in the row at hand, and leaves when it has seen every
// column once. Sums are integers, so it does not matter with which column one begins. Vectors at work are
// neighbours, the oldest first; those that joined in one row leave together, and what they joined at waits in a
// FIFO. Where loading is faster than multiplying, all join in the first row and each row is visited once.
//
// start_i, a pulse; the fields are stable until the last step. valid_o with the step: bank column col_o (its row is
// in register slot_o), activation column act_o, vector, output quad; head_o and tail_o say that the column is the
// first or last one of its output, enter_o and leave_o that it is the first or last one the vector sees of this
// visit. One step a cycle under next_i; release_o with it: the row is given up. Columns are counted from the start
// through all rounds: those from upto_o on are not needed, as far as is known.
module pnm_walk (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,
    input  logic [13:0] col_i,
    input  logic [8:0]  kc_i,
    input  logic [13:0] quads_i,    // outputs / 4
    input  logic [6:0]  vectors_i,
    input  logic [6:0]  loaded_i,
    output logic        valid_o,
    input  logic        next_i,
    output logic [13:0] col_o,
    output logic        slot_o,
    output logic [9:0]  act_o,
    output logic [5:0]  vector_o,
    output logic [13:0] quad_o,
    output logic        head_o,
    output logic        tail_o,
    output logic        enter_o,
    output logic        leave_o,
    output logic        release_o,
    output logic [14:0] length_o,   // columns of the matrix, from the cycle after start_i
    output logic [15:0] upto_o
);
  logic        busy_q, have_q, enter_q, slot_q;
  logic [13:0] col_q, quad_q, row_col_q, row_quad_q, quad_next, row_next;
  logic [8:0]  k_q, row_k_q, k_next;
  logic [6:0]  n_q, lo_q, hi_q;                // the vector in hand; those at work are lo to hi - 1
  logic [9:0]  base_q, lo_base_q, hi_base_q;   // times kc
  logic [15:0] row_at_q, join_at_q;            // columns before the row; before the last vector's first
  logic [14:0] length_q;
  logic        joined_q, all_q;

  // ---- the output that begins in this row --------------------------------------------------------------
  logic        has_head;
  logic [8:0]  head_off;
  logic [14:0] head_col;
  logic [13:0] head_quad;
  assign head_off  = row_k_q == 9'd0 ? 9'd0 : kc_i - row_k_q;
  assign head_col  = {1'b0, row_col_q} + {6'd0, head_off};
  assign head_quad = row_k_q == 9'd0 ? row_quad_q : row_quad_q + 14'd1;
  assign has_head  = head_col[14:4] == {1'b0, row_col_q[13:4]} && head_quad != quads_i;

  // ---- vectors that joined together: where, and the first one after them -------------------------------
  logic        push, pop, ev_ready, ev_valid;
  logic [13:0] ev_col;
  logic [6:0]  ev_hi, unused_count;
  logic [9:0]  ev_base;
  mr_fifo #(.Width(31), .Depth(pnm_desc_pkg::MAX_VECTORS)) u_joined (
      .clk_i,
      .rst_ni,
      .valid_i(push),
      .ready_o(ev_ready),
      .data_i({head_col[13:0], hi_q, hi_base_q}),
      .valid_o(ev_valid),
      .ready_i(pop),
      .data_o({ev_col, ev_hi, ev_base}),
      .count_o(unused_count)
  );

  // ---- where the step ends ------------------------------------------------------------------------------
  logic last, row_end, ends_here, ends_before, vec_end, only_row;
  assign last        = tail_o && quad_q + 14'd1 == quads_i;
  assign row_end     = col_q[3:0] == 4'hF || last;
  assign ends_before = ev_valid && ev_col == row_col_q;  // they saw the row from its beginning
  assign ends_here   = ev_valid && ev_col[13:4] == row_col_q[13:4] && !ends_before;
  assign vec_end     = ends_here && n_q < ev_hi ? col_q + 14'd1 == ev_col : row_end;
  assign k_next      = tail_o ? 9'd0 : k_q + 9'd1;
  assign quad_next   = tail_o ? quad_q + 14'd1 : quad_q;
  assign row_next    = last ? col_i : col_q + 14'd1;
  assign only_row    = last && row_col_q == col_i;

  // ---- what comes after it -------------------------------------------------------------------------------
  logic       choose, follow, join_in, leave_row;
  logic [6:0] next, lo;
  logic [9:0] next_base;
  assign choose    = busy_q && (have_q ? next_i && vec_end : 1'b1);
  assign pop       = choose && (have_q ? ends_here && n_q + 7'd1 == ev_hi : ends_before);
  assign lo        = pop ? ev_hi : lo_q;
  assign next      = have_q ? n_q + 7'd1 : lo_q;
  assign next_base = have_q ? base_q + {1'b0, kc_i} : lo_base_q;
  assign follow    = choose && next != hi_q && (have_q || !ends_before);
  assign join_in   = choose && next == hi_q && hi_q < loaded_i && has_head;
  assign leave_row = choose && next == hi_q && !join_in && lo != hi_q;
  assign push      = leave_row && joined_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      have_q <= 1'b0;
    end else begin
      if (start_i) busy_q <= 1'b1;
      else if (choose && all_q && lo == hi_q) busy_q <= 1'b0;
      if (start_i) have_q <= 1'b0;
      else if (follow || join_in) have_q <= 1'b1;
      // a row in which others end first is looked at without a vector in hand
      else if (leave_row) have_q <= !only_row && !(ev_valid && ev_col == row_next);
      else if (choose) have_q <= 1'b0;
    end
    if (start_i) begin
      row_col_q  <= col_i;
      row_k_q    <= '0;
      row_quad_q <= '0;
      row_at_q   <= '0;
      length_q   <= {1'b0, quads_i} * {6'd0, kc_i};
      slot_q     <= 1'b0;
      lo_q       <= '0;
      lo_base_q  <= '0;
      hi_q       <= '0;
      hi_base_q  <= '0;
      joined_q   <= 1'b0;
      all_q      <= 1'b0;
    end else if (busy_q) begin
      if (next_i && !vec_end) begin
        col_q   <= col_q + 14'd1;
        k_q     <= k_next;
        quad_q  <= quad_next;
        enter_q <= 1'b0;
      end
      if (pop) begin
        lo_q      <= ev_hi;
        lo_base_q <= ev_base;
      end
      if (follow) begin
        col_q   <= row_col_q;
        k_q     <= row_k_q;
        quad_q  <= row_quad_q;
        n_q     <= next;
        base_q  <= next_base;
        enter_q <= 1'b1;
      end
      if (join_in) begin
        col_q     <= head_col[13:0];
        k_q       <= '0;
        quad_q    <= head_quad;
        n_q       <= hi_q;
        base_q    <= hi_base_q;
        enter_q   <= 1'b1;
        hi_q      <= hi_q + 7'd1;
        hi_base_q <= hi_base_q + {1'b0, kc_i};
        joined_q  <= 1'b1;
        if (hi_q + 7'd1 == vectors_i) begin
          all_q     <= 1'b1;
          join_at_q <= row_at_q + {7'd0, head_off};
        end
      end
      if (leave_row) begin
        row_col_q  <= row_next;
        row_k_q    <= last ? 9'd0 : k_next;
        row_quad_q <= last ? 14'd0 : quad_next;
        row_at_q   <= row_at_q + {12'd0, col_q[3:0]} - {12'd0, row_col_q[3:0]} + 16'd1;
        slot_q     <= !slot_q;
        joined_q   <= 1'b0;
        col_q      <= row_next;
        k_q        <= last ? 9'd0 : k_next;
        quad_q     <= last ? 14'd0 : quad_next;
        n_q        <= lo;
        base_q     <= lo_base_q;
        enter_q    <= 1'b1;
      end
    end
  end

  assign valid_o   = have_q;
  assign col_o     = col_q;
  assign slot_o    = slot_q;
  assign act_o     = base_q + {1'b0, k_q};
  assign vector_o  = n_q[5:0];
  assign quad_o    = quad_q;
  assign head_o    = k_q == 9'd0;
  assign tail_o    = k_q + 9'd1 == kc_i;
  assign enter_o   = enter_q;
  assign leave_o   = vec_end;
  assign release_o = leave_row;
  assign length_o  = length_q;
  assign upto_o    = (all_q ? join_at_q : row_at_q) + {1'b0, length_q};

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!push || ev_ready);
      assert (!(pop && leave_row));      // those that end are never the last at work in a row that is left
      assert (!start_i || !ev_valid);    // everybody left
    end
  end
endmodule
