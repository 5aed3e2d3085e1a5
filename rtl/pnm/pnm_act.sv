// Stationary activations: reads a MATVEC's vectors from the scratchpad, a row a cycle, rounds them to bf16 and
// keeps them, with the largest exponent of each vector.
//
// start_i, a pulse; the fields are stable until loaded_o, the vectors that are complete from the first one on, is
// vectors_i. Those can be read while others are on their way: column c of vector n lies at n * kc + c, codes_o one
// cycle after read_i.
module pnm_act (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic [8:0]   kc_i,
    input  logic [6:0]   vectors_i,
    input  logic [11:0]  x_i,
    input  logic [11:0]  stride_i,
    input  logic [15:0]  run_i,
    input  logic [11:0]  jump_i,
    output logic [6:0]   loaded_o,
    output logic         rd_valid_o,
    input  logic         rd_ready_i,
    output logic [11:0]  rd_row_o,
    input  logic         rd_rvalid_i,
    input  logic [511:0] rd_data_i,
    input  logic         read_i,
    input  logic [9:0]   at_i,
    output logic [255:0] codes_o,
    input  logic [5:0]   vector_i,
    output logic [7:0]   exp_o
);
  // ---- reads -----------------------------------------------------------------------------------------
  logic        busy_q, run_last, vec_last;
  logic [6:0]  n_q;
  logic [8:0]  c_q;
  logic [15:0] in_run_q;
  logic [11:0] row_q, run_row_q, vec_row_q;
  assign rd_valid_o = busy_q;
  assign rd_row_o   = row_q;
  assign vec_last   = c_q + 9'd1 == kc_i;
  assign run_last   = in_run_q + 16'd1 == run_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (start_i) busy_q <= 1'b1;
    else if (rd_ready_i && vec_last && n_q + 7'd1 == vectors_i) busy_q <= 1'b0;
    if (start_i) begin
      n_q       <= '0;
      c_q       <= '0;
      in_run_q  <= '0;
      row_q     <= x_i;
      run_row_q <= x_i;
      vec_row_q <= x_i;
    end else if (busy_q && rd_ready_i) begin
      if (vec_last) begin
        n_q       <= n_q + 7'd1;
        c_q       <= '0;
        in_run_q  <= '0;
        row_q     <= vec_row_q + stride_i;
        run_row_q <= vec_row_q + stride_i;
        vec_row_q <= vec_row_q + stride_i;
      end else begin
        c_q <= c_q + 9'd1;
        if (run_last) begin
          in_run_q  <= '0;
          row_q     <= run_row_q + jump_i;
          run_row_q <= run_row_q + jump_i;
        end else begin
          in_run_q <= in_run_q + 16'd1;
          row_q    <= row_q + 12'd1;
        end
      end
    end
  end

  // ---- what comes back -------------------------------------------------------------------------------
  logic [255:0] codes, codes_q;
  logic [7:0]   top, top_q, so_far_q, now;
  logic         full_q, wait_q, last;
  logic [9:0]   to_q;
  logic [8:0]   wc_q;
  logic [6:0]   wn_q;
  logic [255:0] mem [pnm_desc_pkg::ACT_COLUMNS];
  logic [7:0]   exp_q [pnm_desc_pkg::MAX_VECTORS];
  logic [255:0] read_q;
  pnm_bf16 u_bf16 (.row_i(rd_data_i), .codes_o(codes), .top_o(top));
  assign now  = wc_q != 9'd0 && so_far_q > top_q ? so_far_q : top_q;
  assign last = wc_q + 9'd1 == kc_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wait_q <= 1'b0;
      full_q <= 1'b0;
    end else begin
      wait_q <= busy_q && rd_ready_i;
      full_q <= wait_q && rd_rvalid_i;
    end
    if (wait_q && rd_rvalid_i) begin
      codes_q <= codes;
      top_q   <= top;
    end
    if (start_i) begin
      to_q <= '0;
      wc_q <= '0;
      wn_q <= '0;
    end else if (full_q) begin
      mem[to_q] <= codes_q;
      to_q      <= to_q + 10'd1;
      so_far_q  <= now;
      wc_q      <= last ? 9'd0 : wc_q + 9'd1;
      if (last) begin
        exp_q[wn_q[5:0]] <= now;
        wn_q             <= wn_q + 7'd1;
      end
    end
    if (read_i) read_q <= mem[at_i];
  end
  assign loaded_o = wn_q;
  assign codes_o  = read_q;
  assign exp_o    = exp_q[vector_i];
endmodule
