// A group's sequencer: takes descriptors in order, checks them, and starts the side that executes them.
//
// A descriptor waits until all before it are finished, unless its overlap bit lets a MATVEC, WSTORE or VEC start
// while the other side works. WAIT, BARRIER and LOOP are executed here. The next descriptor is fetched and checked
// while the ones before it run; what is wrong with it is said when they are finished. start_i, a pulse, begins at
// descriptor 0; done_o is a level. With an error, or stop_i (another group's), nothing more is started; done_o
// comes when both sides are at rest.
module pnm_seq (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic [31:0]  count_i,
    input  logic [3:0]   own_i,
    input  logic         stop_i,
    output logic         done_o,
    output logic [7:0]   error_o,
    output logic [31:0]  index_o,
    // fetch
    input  logic         desc_valid_i,
    output logic         desc_ready_o,
    input  logic [511:0] desc_i,
    input  logic         desc_err_i,
    output logic         jump_o,
    output logic [31:0]  target_o,
    // sides; the kind tells which part of a side
    output logic         matrix_start_o,
    output logic [511:0] matrix_desc_o,
    input  logic         matrix_done_i,
    output logic         vector_start_o,
    output logic [511:0] vector_desc_o,
    input  logic         vector_done_i,
    input  logic [7:0]   move_error_i,  // of a LOAD, STORE, WLOAD or SEND, with its done
    output logic [31:0]  iteration_o,
    // other groups
    input  logic         signal_i,
    input  logic [2:0]   signal_sem_i,
    output logic         full_o,        // that semaphore cannot take one more
    output logic         at_barrier_o,
    output logic [3:0]   barrier_o,
    input  logic         release_i,
    output logic         waiting_o
);
  // ---- the next descriptor ---------------------------------------------------------------------------
  logic         next_q, checked_q, check_start_q, check_done, bad_type, bad_field;
  logic [511:0] desc_q;
  logic [31:0]  pc_q, matrix_pc_q, vector_pc_q, iteration_q;
  logic [7:0]   bad_q;  // what is wrong with it
  logic         run_q, failed_q;
  logic [7:0]   error_q, kind;
  logic         take, leave;
  assign kind         = desc_q[7:0];
  assign desc_ready_o = run_q && !next_q && !jump_o;
  assign take         = desc_valid_i && desc_ready_o;
  pnm_check u_check (
      .clk_i, .rst_ni, .start_i(check_start_q), .desc_i(desc_q), .own_i, .done_o(check_done),
      .bad_type_o(bad_type), .bad_field_o(bad_field));

  // ---- sides -----------------------------------------------------------------------------------------
  logic         matrix_q, vector_q, matrix_start_q, vector_start_q, matrix_free, vector_free, both_free;
  logic [511:0] matrix_desc_q, vector_desc_q;
  logic         is_matrix, is_vector, may_overlap, go;
  assign matrix_free = !matrix_q || matrix_done_i;
  assign vector_free = !vector_q || vector_done_i;
  assign both_free   = matrix_free && vector_free;
  assign is_matrix   = kind == pnm_desc_pkg::DESC_MATVEC || kind == pnm_desc_pkg::DESC_WSTORE ||
      kind == pnm_desc_pkg::DESC_WLOAD;
  assign is_vector   = kind == pnm_desc_pkg::DESC_VEC || kind == pnm_desc_pkg::DESC_LOAD ||
      kind == pnm_desc_pkg::DESC_STORE || kind == pnm_desc_pkg::DESC_SEND;
  assign may_overlap = desc_q[pnm_desc_pkg::D_VEC_OVERLAP_LSB] && (kind == pnm_desc_pkg::DESC_MATVEC ||
      kind == pnm_desc_pkg::DESC_WSTORE || kind == pnm_desc_pkg::DESC_VEC);
  // a failed transfer stops the list before anything else is started; a WLOAD has the mover for itself
  logic move_failed, desc_failed, wload;
  assign move_failed = (vector_done_i || matrix_done_i) && move_error_i != pnm_desc_pkg::ERR_OK;
  assign wload       = matrix_q && matrix_desc_q[7:0] == pnm_desc_pkg::DESC_WLOAD;
  assign go = next_q && checked_q && bad_q == pnm_desc_pkg::ERR_OK && !failed_q && !stop_i && !move_failed &&
      (both_free || (may_overlap && (is_matrix ? matrix_free : vector_free)));
  assign desc_failed = run_q && both_free && !failed_q && !stop_i && !move_failed &&
      (next_q ? checked_q && bad_q != pnm_desc_pkg::ERR_OK : desc_err_i);

  // ---- control ---------------------------------------------------------------------------------------
  logic [15:0] sem_q [pnm_desc_pkg::SEMAPHORES];
  logic [2:0]  sem;
  logic [15:0] need;
  logic        wait_ok, loop_again, barrier_q, barrier_go;
  assign sem        = desc_q[pnm_desc_pkg::D_WAIT_SEM_LSB+:3];
  assign need       = desc_q[pnm_desc_pkg::D_WAIT_COUNT_LSB+:16];
  assign wait_ok    = go && kind == pnm_desc_pkg::DESC_WAIT && sem_q[sem] >= need;
  assign loop_again = iteration_q + 32'd1 < desc_q[pnm_desc_pkg::D_LOOP_COUNT_LSB+:32];
  assign jump_o     = go && kind == pnm_desc_pkg::DESC_LOOP && loop_again;
  assign target_o   = desc_q[pnm_desc_pkg::D_LOOP_TARGET_LSB+:32];
  assign barrier_go = barrier_q && release_i;
  assign leave      = go && (is_matrix || is_vector || kind == pnm_desc_pkg::DESC_LOOP) || wait_ok || barrier_go;
  assign full_o     = sem_q[signal_sem_i] == 16'hFFFF;

  always_ff @(posedge clk_i) begin
    matrix_start_q <= 1'b0;
    vector_start_q <= 1'b0;
    check_start_q  <= take;
    if (!rst_ni) begin
      next_q    <= 1'b0;
      checked_q <= 1'b0;
      run_q     <= 1'b0;
      failed_q  <= 1'b0;
      error_q   <= '0;
      matrix_q  <= 1'b0;
      vector_q  <= 1'b0;
      barrier_q <= 1'b0;
      check_start_q <= 1'b0;
      for (int unsigned k = 0; k < pnm_desc_pkg::SEMAPHORES; k++) sem_q[k] <= '0;
    end else begin
      if (start_i) begin
        run_q       <= count_i != 32'd0;
        pc_q        <= '0;
        iteration_q <= '0;
        next_q      <= 1'b0;
        checked_q   <= 1'b0;
        failed_q    <= 1'b0;
        error_q     <= '0;
        barrier_q   <= 1'b0;
        for (int unsigned k = 0; k < pnm_desc_pkg::SEMAPHORES; k++) sem_q[k] <= '0;
      end
      if (take) begin
        next_q    <= 1'b1;
        checked_q <= 1'b0;
        desc_q    <= desc_i;
      end
      if (check_done && next_q) begin
        checked_q <= 1'b1;
        bad_q     <= bad_type ? pnm_desc_pkg::ERR_TYPE : bad_field ? pnm_desc_pkg::ERR_FIELD : pnm_desc_pkg::ERR_OK;
      end
      if (matrix_done_i) matrix_q <= 1'b0;
      if (vector_done_i) vector_q <= 1'b0;
      if (go && is_matrix) begin
        matrix_q       <= 1'b1;
        matrix_start_q <= 1'b1;
        matrix_desc_q  <= desc_q;
        matrix_pc_q    <= pc_q;
      end
      if (go && is_vector) begin
        vector_q       <= 1'b1;
        vector_start_q <= 1'b1;
        vector_desc_q  <= desc_q;
        vector_pc_q    <= pc_q;
      end
      if (go && kind == pnm_desc_pkg::DESC_BARRIER && both_free) barrier_q <= 1'b1;
      if (barrier_go) barrier_q <= 1'b0;
      if (signal_i && !full_o) sem_q[signal_sem_i] <= sem_q[signal_sem_i] + 16'd1;
      if (wait_ok) sem_q[sem] <= sem_q[sem] - need + {15'd0, signal_i && !full_o && signal_sem_i == sem};
      if (leave) begin
        next_q    <= 1'b0;
        checked_q <= 1'b0;
        pc_q      <= jump_o ? target_o : pc_q + 32'd1;
        if (kind == pnm_desc_pkg::DESC_LOOP) iteration_q <= loop_again ? iteration_q + 32'd1 : 32'd0;
      end
      if (move_failed && !failed_q) begin
        failed_q <= 1'b1;
        error_q  <= move_error_i;
        pc_q     <= wload ? matrix_pc_q : vector_pc_q;
      end
      if (desc_failed) begin
        failed_q <= 1'b1;
        error_q  <= next_q ? bad_q : pnm_desc_pkg::ERR_READ;
      end
      if (run_q && !start_i && (failed_q || stop_i || (pc_q >= count_i && !next_q)) && !matrix_q && !vector_q &&
          !matrix_start_q && !vector_start_q)
        run_q <= 1'b0;
    end
  end

  assign matrix_start_o = matrix_start_q;
  assign vector_start_o = vector_start_q;
  assign matrix_desc_o  = matrix_desc_q;
  assign vector_desc_o  = vector_desc_q;
  assign iteration_o    = iteration_q;
  assign at_barrier_o   = barrier_q;
  assign barrier_o      = desc_q[pnm_desc_pkg::D_BARRIER_GROUPS_LSB+:4];
  assign done_o         = !run_q;
  assign error_o        = error_q;
  assign index_o        = pc_q;
  assign waiting_o      = run_q && next_q && checked_q && (kind == pnm_desc_pkg::DESC_WAIT ||
      kind == pnm_desc_pkg::DESC_BARRIER) && both_free;
endmodule
