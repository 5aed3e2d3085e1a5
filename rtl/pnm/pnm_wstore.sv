// WSTORE: scratchpad rows, rounded to bf16, into the banks as weights.
//
// start_i, a pulse; the fields are stable until done_o, a pulse after the last write was granted. Rows form: a row
// is one column of one bank. Transposed: a row of 16 elements is one bf16 value in each bank of four columns.
// top_o with done_o: the largest exponent stored.
module pnm_wstore (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          start_i,
    input  logic          transposed_i,
    input  logic [13:0]   col_i,
    input  logic [8:0]    kc_i,
    input  logic [11:0]   length_rows_i,
    input  logic [15:0]   vectors_i,
    input  logic [11:0]   x_i,
    input  logic [11:0]   stride_i,
    input  logic [15:0]   first_i,
    output logic          done_o,
    output logic [7:0]    top_o,
    output logic          rd_valid_o,
    input  logic          rd_ready_i,
    output logic [11:0]   rd_row_o,
    input  logic          rd_rvalid_i,
    input  logic [511:0]  rd_data_i,
    output logic          req_valid_o,
    input  logic          req_ready_i,
    output logic [13:0]   req_col_o,
    output logic [63:0]   req_wmask_o,
    output logic [1023:0] req_wdata_o
);
  typedef enum logic [1:0] {Idle, Read, Take, Write} state_e;
  state_e       state_q;
  logic [15:0]  i_q, at_q;      // vector, its m or k
  logic [11:0]  j_q, vec_row_q; // row of the vector
  logic [1:0]   q_q;            // quarter of the row, transposed
  logic [13:0]  col_q, out_q;   // column of this write; of the vector's first
  logic [255:0] codes, codes_q;
  logic [7:0]   top, top_q;
  logic         row_done, vec_done, all_done;

  pnm_bf16 u_bf16 (.row_i(rd_data_i), .codes_o(codes), .top_o(top));
  assign rd_valid_o  = state_q == Read;
  assign rd_row_o    = vec_row_q + j_q;
  assign req_valid_o = state_q == Write;
  assign req_col_o   = col_q;
  assign row_done    = !transposed_i || q_q == 2'd3;
  assign vec_done    = row_done && j_q + 12'd1 == length_rows_i;
  assign all_done    = vec_done && i_q + 16'd1 == vectors_i;
  assign done_o      = state_q == Write && req_ready_i && all_done;
  assign top_o       = top_q;

  // ---- the column's data -----------------------------------------------------------------------------
  always_comb begin
    req_wmask_o = '0;
    for (int unsigned b = 0; b < 4; b++)
      for (int unsigned l = 0; l < 16; l++)
        req_wmask_o[16*b+l] = transposed_i ? at_q[3:0] == 4'(l) : at_q[1:0] == 2'(b);
    for (int unsigned b = 0; b < 4; b++)
      req_wdata_o[256*b+:256] = transposed_i ? {16{codes_q[64*q_q+16*b+:16]}} : codes_q;
  end

  logic [22:0] first_col;
  assign first_col = transposed_i ? {9'd0, col_i} + {11'd0, first_i[15:4]}
                                  : {9'd0, col_i} + 23'(first_i[15:2]) * 23'(kc_i);
  logic [8:0] unused_col;
  assign unused_col = first_col[22:14];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else
      unique case (state_q)
        Idle: if (start_i) state_q <= Read;
        Read: if (rd_ready_i) state_q <= Take;
        Take: if (rd_rvalid_i) state_q <= Write;
        default: if (req_ready_i && row_done) state_q <= all_done ? Idle : Read;
      endcase
    if (start_i) begin
      i_q       <= '0;
      j_q       <= '0;
      q_q       <= '0;
      top_q     <= '0;
      at_q      <= first_i;
      vec_row_q <= x_i;
      out_q     <= first_col[13:0];
      col_q     <= first_col[13:0];
    end
    if (state_q == Take && rd_rvalid_i) begin
      codes_q <= codes;
      if (top > top_q) top_q <= top;
    end
    if (state_q == Write && req_ready_i) begin
      q_q   <= transposed_i ? q_q + 2'd1 : 2'd0;
      col_q <= transposed_i ? col_q + {5'd0, kc_i} : col_q + 14'd1;
      if (row_done) j_q <= j_q + 12'd1;
      if (vec_done) begin
        j_q       <= '0;
        i_q       <= i_q + 16'd1;
        at_q      <= at_q + 16'd1;
        vec_row_q <= vec_row_q + stride_i;
        // the next k is in the next column after 16, the next m in the next columns after 4
        if (transposed_i) begin
          out_q <= out_q + {13'd0, at_q[3:0] == 4'hF};
          col_q <= out_q + {13'd0, at_q[3:0] == 4'hF};
        end else begin
          out_q <= at_q[1:0] == 2'd3 ? out_q + {5'd0, kc_i} : out_q;
          col_q <= at_q[1:0] == 2'd3 ? out_q + {5'd0, kc_i} : out_q;
        end
      end
    end
  end
endmodule
