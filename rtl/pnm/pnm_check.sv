// Whether a descriptor can be executed: its type is known, its fields are in their ranges, no row or column lies
// beyond the end. The rules are those of models/golden/pnm_check.c.
//
// desc_i is stable from start_i, a pulse, to done_o, a pulse; bad_type_o and bad_field_o count with it. Two cycles,
// and one for every run of a MATVEC's activations.
module pnm_check (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic [511:0] desc_i,
    input  logic [3:0]   own_i,      // this group's bit of a barrier
    output logic         done_o,
    output logic         bad_type_o,
    output logic         bad_field_o
);
  // `count` places of `size` rows, `stride` apart from `first`
  function automatic logic fits(input logic signed [33:0] first, input logic [15:0] count,
                                  input logic signed [15:0] stride, input logic [16:0] size);
    logic signed [33:0] last, low, high;
    last = first + ($signed({18'd0, count}) - 34'sd1) * 34'(stride);
    low = last < first ? last : first;
    high = last < first ? first : last;
    fits = low >= 34'sd0 && high + $signed({17'd0, size}) <= $signed(34'(pnm_desc_pkg::SCRATCH_ROWS));
  endfunction

  function automatic logic signed [33:0] row(input logic [15:0] field);
    row = $signed({18'd0, field});
  endfunction

  // ---- fields ----------------------------------------------------------------------------------------
  logic [7:0]  kind;
  logic [15:0] mv_kc, mv_m, mv_n, mv_run, ws_kc, ws_len, ws_n, ws_first, v_n, v_width, v_scalars;
  logic [31:0] ws_end;
  assign kind     = desc_i[7:0];
  assign mv_kc    = desc_i[pnm_desc_pkg::D_MATVEC_KC_LSB+:16];
  assign mv_m     = desc_i[pnm_desc_pkg::D_MATVEC_OUTPUTS_LSB+:16];
  assign mv_n     = desc_i[pnm_desc_pkg::D_MATVEC_VECTORS_LSB+:16];
  assign mv_run   = desc_i[pnm_desc_pkg::D_MATVEC_X_RUN_LSB+:16];
  assign ws_kc    = desc_i[pnm_desc_pkg::D_WSTORE_KC_LSB+:16];
  assign ws_len   = desc_i[pnm_desc_pkg::D_WSTORE_LENGTH_LSB+:16];
  assign ws_n     = desc_i[pnm_desc_pkg::D_WSTORE_VECTORS_LSB+:16];
  assign ws_first = desc_i[pnm_desc_pkg::D_WSTORE_FIRST_LSB+:16];
  assign ws_end   = {16'd0, ws_first} + {16'd0, ws_n};
  assign v_n      = desc_i[pnm_desc_pkg::D_VEC_COUNT_LSB+:16];
  assign v_width  = desc_i[pnm_desc_pkg::D_VEC_WIDTH_LSB+:16];
  assign v_scalars = 16'(({1'b0, v_n} + 17'd15) >> 4);

  logic signed [15:0] x_stride, jump;
  assign x_stride = $signed(desc_i[pnm_desc_pkg::D_MATVEC_X_STRIDE_LSB+:16]);
  assign jump     = $signed(desc_i[pnm_desc_pkg::D_MATVEC_X_JUMP_LSB+:16]);

  // ---- one look, then run by run ---------------------------------------------------------------------
  logic               look_q, runs_q, known_q, ok_q, run_ok, finish;
  logic signed [33:0] at_q;
  logic [15:0]        left_q, size;
  assign size   = left_q < mv_run ? left_q : mv_run;
  assign run_ok = fits(at_q, mv_n, x_stride, {1'b0, size}) && at_q >= 34'sd0;
  assign finish = runs_q && (kind != pnm_desc_pkg::DESC_MATVEC || !ok_q || left_q <= mv_run || !run_ok);
  assign done_o      = finish;
  assign bad_type_o  = !known_q;
  assign bad_field_o = !ok_q || (kind == pnm_desc_pkg::DESC_MATVEC && !run_ok);

  always_ff @(posedge clk_i) begin : p_check
    logic        ok, known;
    logic [1:0]  v_mul, v_add, v_reduce;
    logic [31:0] wide;
    if (!rst_ni) begin
      look_q <= 1'b0;
      runs_q <= 1'b0;
    end else begin
      look_q <= start_i;
      runs_q <= look_q || (runs_q && !finish);
    end
    if (look_q) begin
      known = 1'b1;
      ok = 1'b0;
      wide = '0;
      v_mul = desc_i[pnm_desc_pkg::D_VEC_MUL_LSB+:2];
      v_add = desc_i[pnm_desc_pkg::D_VEC_ADD_LSB+:2];
      v_reduce = desc_i[pnm_desc_pkg::D_VEC_REDUCE_LSB+:2];
      case (kind)
        pnm_desc_pkg::DESC_LOAD, pnm_desc_pkg::DESC_STORE, pnm_desc_pkg::DESC_WLOAD: begin
          wide = {16'd0, desc_i[pnm_desc_pkg::D_LOAD_ROWS_LSB+:16]} + {16'd0, desc_i[pnm_desc_pkg::D_LOAD_ROW_LSB+:16]};
          ok = desc_i[pnm_desc_pkg::D_LOAD_ROWS_LSB+:16] != 16'd0 &&
              wide <= (kind == pnm_desc_pkg::DESC_WLOAD ? pnm_desc_pkg::COLUMNS : pnm_desc_pkg::SCRATCH_ROWS) &&
              desc_i[pnm_desc_pkg::D_LOAD_ADDR_LSB+:6] == 6'd0 && desc_i[pnm_desc_pkg::D_LOAD_STEP_LSB+:6] == 6'd0;
        end
        pnm_desc_pkg::DESC_MATVEC: begin
          wide = {16'd0, desc_i[pnm_desc_pkg::D_MATVEC_COL_LSB+:16]} + 32'(mv_m[15:2]) * {16'd0, mv_kc};
          ok = mv_kc != 16'd0 && mv_kc <= 16'(pnm_desc_pkg::MAX_KC) && mv_m != 16'd0 && mv_m[3:0] == 4'd0 &&
              mv_n != 16'd0 && mv_n <= 16'(pnm_desc_pkg::MAX_VECTORS) &&
              {16'd0, mv_n} * {16'd0, mv_kc} <= pnm_desc_pkg::ACT_COLUMNS &&
              desc_i[pnm_desc_pkg::D_MATVEC_MODE_LSB+:2] != 2'd3 &&
              desc_i[pnm_desc_pkg::D_MATVEC_LOG_LENGTH_LSB+:4] >= 4'd2 &&
              desc_i[pnm_desc_pkg::D_MATVEC_LOG_LENGTH_LSB+:4] <= 4'd8 &&
              (desc_i[pnm_desc_pkg::D_MATVEC_USE_WREG_LSB]
                   ? desc_i[pnm_desc_pkg::D_MATVEC_WEXP_LSB+:8] < 8'(pnm_desc_pkg::WREGS)
                   : desc_i[pnm_desc_pkg::D_MATVEC_WEXP_LSB+:8] != 8'hFF) &&
              wide <= pnm_desc_pkg::COLUMNS && mv_run != 16'd0 &&
              fits(row(desc_i[pnm_desc_pkg::D_MATVEC_Y_LSB+:16]), mv_n,
                     $signed(desc_i[pnm_desc_pkg::D_MATVEC_Y_STRIDE_LSB+:16]), {5'd0, mv_m[15:4]}) &&
              (!desc_i[pnm_desc_pkg::D_MATVEC_BIAS_LSB] ||
               fits(row(desc_i[pnm_desc_pkg::D_MATVEC_BIAS_ROW_LSB+:16]), 16'd1, 16'sd0, {5'd0, mv_m[15:4]})) &&
              (!desc_i[pnm_desc_pkg::D_MATVEC_ACCUM_LSB] ||
               fits(row(desc_i[pnm_desc_pkg::D_MATVEC_OLD_LSB+:16]), mv_n,
                      $signed(desc_i[pnm_desc_pkg::D_MATVEC_OLD_STRIDE_LSB+:16]), {5'd0, mv_m[15:4]}));
        end
        pnm_desc_pkg::DESC_WSTORE: begin
          ok = ws_kc != 16'd0 && ws_kc <= 16'(pnm_desc_pkg::MAX_KC) && ws_len != 16'd0 && ws_len[3:0] == 4'd0 &&
              ws_n != 16'd0 && desc_i[pnm_desc_pkg::D_WSTORE_WREG_LSB+:8] < 8'(pnm_desc_pkg::WREGS) &&
              fits(row(desc_i[pnm_desc_pkg::D_WSTORE_X_LSB+:16]), ws_n,
                     $signed(desc_i[pnm_desc_pkg::D_WSTORE_X_STRIDE_LSB+:16]), {5'd0, ws_len[15:4]});
          if (desc_i[pnm_desc_pkg::D_WSTORE_TRANSPOSED_LSB]) begin
            wide = {16'd0, desc_i[pnm_desc_pkg::D_WSTORE_COL_LSB+:16]} + 32'(ws_len[15:2]) * {16'd0, ws_kc};
            ok = ok && ws_end <= {12'd0, ws_kc, 4'd0};
          end else begin
            wide = {16'd0, desc_i[pnm_desc_pkg::D_WSTORE_COL_LSB+:16]} + ((ws_end + 32'd3) >> 2) * {16'd0, ws_kc};
            ok = ok && {16'd0, ws_len} == {12'd0, ws_kc, 4'd0};
          end
          ok = ok && wide <= pnm_desc_pkg::COLUMNS;
        end
        pnm_desc_pkg::DESC_VEC:
          ok = v_n != 16'd0 && v_width != 16'd0 && desc_i[pnm_desc_pkg::D_VEC_FN_LSB+:3] <= 3'd3 && v_reduce != 2'd3 &&
              fits(row(desc_i[pnm_desc_pkg::D_VEC_A_LSB+:16]), v_n,
                     $signed(desc_i[pnm_desc_pkg::D_VEC_A_STRIDE_LSB+:16]), {1'b0, v_width}) &&
              (v_mul != 2'd2 || fits(row(desc_i[pnm_desc_pkg::D_VEC_B_LSB+:16]), v_n,
                                       $signed(desc_i[pnm_desc_pkg::D_VEC_B_STRIDE_LSB+:16]), {1'b0, v_width})) &&
              (v_mul != 2'd3 || fits(row(desc_i[pnm_desc_pkg::D_VEC_B_LSB+:16]), 16'd1, 16'sd0, {1'b0, v_scalars})) &&
              (v_add != 2'd2 || fits(row(desc_i[pnm_desc_pkg::D_VEC_C_LSB+:16]), v_n,
                                       $signed(desc_i[pnm_desc_pkg::D_VEC_C_STRIDE_LSB+:16]), {1'b0, v_width})) &&
              (v_add != 2'd3 || fits(row(desc_i[pnm_desc_pkg::D_VEC_C_LSB+:16]), 16'd1, 16'sd0, {1'b0, v_scalars})) &&
              (v_reduce != 2'd0
                   ? fits(row(desc_i[pnm_desc_pkg::D_VEC_D_LSB+:16]), 16'd1, 16'sd0, {1'b0, v_scalars})
                   : fits(row(desc_i[pnm_desc_pkg::D_VEC_D_LSB+:16]), v_n,
                            $signed(desc_i[pnm_desc_pkg::D_VEC_D_STRIDE_LSB+:16]), {1'b0, v_width}));
        pnm_desc_pkg::DESC_SEND:
          ok = desc_i[pnm_desc_pkg::D_SEND_GROUP_LSB+:8] < 8'(pnm_desc_pkg::GROUPS) &&
              desc_i[pnm_desc_pkg::D_SEND_SEM_LSB+:8] < 8'(pnm_desc_pkg::SEMAPHORES) &&
              {16'd0, desc_i[pnm_desc_pkg::D_SEND_ROW_LSB+:16]} + {16'd0, desc_i[pnm_desc_pkg::D_SEND_ROWS_LSB+:16]} <=
                  pnm_desc_pkg::SCRATCH_ROWS &&
              {16'd0, desc_i[pnm_desc_pkg::D_SEND_TO_LSB+:16]} + {16'd0, desc_i[pnm_desc_pkg::D_SEND_ROWS_LSB+:16]} <=
                  pnm_desc_pkg::SCRATCH_ROWS;
        pnm_desc_pkg::DESC_WAIT:
          ok = desc_i[pnm_desc_pkg::D_WAIT_SEM_LSB+:8] < 8'(pnm_desc_pkg::SEMAPHORES) &&
              desc_i[pnm_desc_pkg::D_WAIT_COUNT_LSB+:16] != 16'd0;
        pnm_desc_pkg::DESC_BARRIER:
          ok = desc_i[pnm_desc_pkg::D_BARRIER_GROUPS_LSB+4+:28] == 28'd0 &&
              (desc_i[pnm_desc_pkg::D_BARRIER_GROUPS_LSB+:4] & own_i) != 4'd0;
        pnm_desc_pkg::DESC_LOOP: ok = desc_i[pnm_desc_pkg::D_LOOP_COUNT_LSB+:32] != 32'd0;
        default: known = 1'b0;
      endcase
      known_q <= known;
      ok_q    <= ok;
      at_q    <= row(desc_i[pnm_desc_pkg::D_MATVEC_X_LSB+:16]);
      left_q  <= mv_kc;
    end else if (runs_q) begin
      at_q   <= at_q + 34'(jump);
      left_q <= left_q - mv_run;
    end
  end
endmodule
