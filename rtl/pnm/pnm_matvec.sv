// The matrix side of a group: executes MATVEC and WSTORE.
//
// desc_i is stable from start_i, a pulse, to done_o, a pulse; its fields have been checked. A MATVEC loads its
// activations (pnm_act) and copies its rows from the banks (pnm_rows); pnm_walk chooses the columns of a row that
// meet a vector's activations in four elements (pnm_pe), from the first vector on that is complete; finished sums
// leave through pnm_epilogue. One column a cycle, or one every L/StreamBits cycles, and no more outputs than the
// epilogue has room for. No product depends on how the work is cut, so there is nothing to keep between descriptors
// but the exponent registers.
module pnm_matvec #(
    parameter int unsigned Gen        = pnm_stream_pkg::GEN_CENTRED,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16
) (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          start_i,
    /* verilator lint_off UNUSEDSIGNAL */ // fields of other descriptors
    input  logic [511:0]  desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic          done_o,
    // scratchpad
    output logic          rd_valid_o,
    input  logic          rd_ready_i,
    output logic [11:0]   rd_row_o,
    input  logic          rd_rvalid_i,
    input  logic [511:0]  rd_data_i,
    output logic          wr_valid_o,
    input  logic          wr_ready_i,
    output logic [11:0]   wr_row_o,
    output logic [15:0]   wr_be_o,
    output logic [511:0]  wr_data_o,
    // banks
    output logic          req_valid_o,
    input  logic          req_ready_i,
    output logic          req_we_o,
    output logic [13:0]   req_col_o,
    output logic [63:0]   req_wmask_o,
    output logic [1023:0] req_wdata_o,
    output logic          req_last_o,
    input  logic          rvalid_i,
    input  logic [1023:0] rdata_i,
    // events
    output logic          stream_o,    // the lanes multiply
    output logic          product_o,   // a column has met its activations: 64 products
    output logic          range_o,
    output logic          nonfinite_o
);
  localparam int unsigned LogBits = $clog2(StreamBits);
  localparam int unsigned OutDepth = 16;

  // ---- fields ----------------------------------------------------------------------------------------
  logic        is_store, use_wreg;
  logic [8:0]  kc;
  logic [13:0] quads;
  logic [6:0]  vectors;
  logic [3:0]  log;
  logic [1:0]  mode;
  logic [7:0]  wexp, wreg_value;
  logic [5:0]  slices;  // of a product
  assign is_store = desc_i[7:0] == pnm_desc_pkg::DESC_WSTORE;
  assign use_wreg = desc_i[pnm_desc_pkg::D_MATVEC_USE_WREG_LSB];
  assign kc       = desc_i[pnm_desc_pkg::D_MATVEC_KC_LSB+:9];
  assign quads    = desc_i[pnm_desc_pkg::D_MATVEC_OUTPUTS_LSB+2+:14];
  assign vectors  = desc_i[pnm_desc_pkg::D_MATVEC_VECTORS_LSB+:7];
  assign log      = desc_i[pnm_desc_pkg::D_MATVEC_LOG_LENGTH_LSB+:4];
  assign mode     = desc_i[pnm_desc_pkg::D_MATVEC_MODE_LSB+:2];
  assign slices   = mode == 2'd2 || log <= 4'(LogBits) ? 6'd1 : 6'd1 << (log - 4'(LogBits));

  // ---- exponent registers ----------------------------------------------------------------------------
  logic [7:0] wreg_q [pnm_desc_pkg::WREGS];
  logic [5:0] wreg;
  logic       store_done;
  logic [7:0] store_top;
  assign wreg       = desc_i[pnm_desc_pkg::D_WSTORE_WREG_LSB+:6]; // the place of MATVEC's wexp
  assign wreg_value = wreg_q[wreg];
  assign wexp       = use_wreg ? wreg_value : desc_i[pnm_desc_pkg::D_MATVEC_WEXP_LSB+:8];
  always_ff @(posedge clk_i) begin
    if (!rst_ni)
      for (int unsigned k = 0; k < pnm_desc_pkg::WREGS; k++) wreg_q[k] <= '0;
    else if (store_done) begin
      if (desc_i[pnm_desc_pkg::D_WSTORE_RESET_LSB] || store_top > wreg_value) wreg_q[wreg] <= store_top;
    end
  end

  // ---- WSTORE ----------------------------------------------------------------------------------------
  logic        st_rd_valid, st_rd_ready, st_req_valid;
  logic [11:0] st_rd_row;
  logic [13:0] st_req_col;
  pnm_wstore u_store (
      .clk_i,
      .rst_ni,
      .start_i(start_i && is_store),
      .transposed_i(desc_i[pnm_desc_pkg::D_WSTORE_TRANSPOSED_LSB]),
      .col_i(desc_i[pnm_desc_pkg::D_WSTORE_COL_LSB+:14]),
      .kc_i(desc_i[pnm_desc_pkg::D_WSTORE_KC_LSB+:9]),
      .length_rows_i(desc_i[pnm_desc_pkg::D_WSTORE_LENGTH_LSB+4+:12]),
      .vectors_i(desc_i[pnm_desc_pkg::D_WSTORE_VECTORS_LSB+:16]),
      .x_i(desc_i[pnm_desc_pkg::D_WSTORE_X_LSB+:12]),
      .stride_i(desc_i[pnm_desc_pkg::D_WSTORE_X_STRIDE_LSB+:12]),
      .first_i(desc_i[pnm_desc_pkg::D_WSTORE_FIRST_LSB+:16]),
      .done_o(store_done),
      .top_o(store_top),
      .rd_valid_o(st_rd_valid),
      .rd_ready_i(st_rd_ready),
      .rd_row_o(st_rd_row),
      .rd_rvalid_i,
      .rd_data_i,
      .req_valid_o(st_req_valid),
      .req_ready_i,
      .req_col_o(st_req_col),
      .req_wmask_o,
      .req_wdata_o
  );

  // ---- activations -----------------------------------------------------------------------------------
  logic         act_rd_valid, act_rd_ready, take, hold;
  logic [6:0]   loaded;
  logic [11:0]  act_rd_row;
  logic [9:0]   walk_act;
  logic [255:0] act_codes;
  logic [5:0]   top_vector;
  logic [7:0]   top_exp;
  pnm_act u_act (
      .clk_i,
      .rst_ni,
      .start_i(start_i && !is_store),
      .kc_i(kc),
      .vectors_i(vectors),
      .x_i(desc_i[pnm_desc_pkg::D_MATVEC_X_LSB+:12]),
      .stride_i(desc_i[pnm_desc_pkg::D_MATVEC_X_STRIDE_LSB+:12]),
      .run_i(desc_i[pnm_desc_pkg::D_MATVEC_X_RUN_LSB+:16]),
      .jump_i(desc_i[pnm_desc_pkg::D_MATVEC_X_JUMP_LSB+:12]),
      .loaded_o(loaded),
      .rd_valid_o(act_rd_valid),
      .rd_ready_i(act_rd_ready),
      .rd_row_o(act_rd_row),
      .rd_rvalid_i,
      .rd_data_i,
      .read_i(take),
      .at_i(walk_act),
      .codes_o(act_codes),
      .vector_i(top_vector),
      .exp_o(top_exp)
  );
  assign hold = loaded != vectors;

  // ---- the next column and vector ----------------------------------------------------------------------
  logic        walk_valid, head, tail, enter, leave, give_up, slot, there, row_req_valid, row_req_last, epi_taken;
  logic [13:0] walk_col, walk_quad, row_req_col;
  logic [5:0]  walk_vector, pace_q;
  logic [14:0] length;
  logic [15:0] upto;
  logic [4:0]  outs_q;  // outputs begun that the epilogue has not taken
  logic [1023:0] hand;
  logic [9:0]  unused_col;
  assign unused_col = walk_col[13:4];
  pnm_walk u_walk (
      .clk_i,
      .rst_ni,
      .start_i(start_i && !is_store),
      .col_i(desc_i[pnm_desc_pkg::D_MATVEC_COL_LSB+:14]),
      .kc_i(kc),
      .quads_i(quads),
      .vectors_i(vectors),
      .loaded_i(loaded),
      .valid_o(walk_valid),
      .next_i(take),
      .col_o(walk_col),
      .slot_o(slot),
      .act_o(walk_act),
      .vector_o(walk_vector),
      .quad_o(walk_quad),
      .head_o(head),
      .tail_o(tail),
      .enter_o(enter),
      .leave_o(leave),
      .release_o(give_up),
      .length_o(length),
      .upto_o(upto)
  );
  pnm_rows u_rows (
      .clk_i,
      .rst_ni,
      .start_i(start_i && !is_store),
      .col_i(desc_i[pnm_desc_pkg::D_MATVEC_COL_LSB+:14]),
      .length_i(length),
      .upto_i(upto),
      .release_i(give_up),
      .req_valid_o(row_req_valid),
      .req_ready_i,
      .req_col_o(row_req_col),
      .req_last_o(row_req_last),
      .rvalid_i,
      .rdata_i,
      .slot_i(slot),
      .at_i(walk_col[3:0]),
      .there_o(there),
      .read_i(take),
      .data_o(hand)
  );
  assign take        = walk_valid && there && pace_q == 6'd0 && (!tail || outs_q != 5'(OutDepth));
  assign req_valid_o = row_req_valid || st_req_valid;
  assign req_we_o    = st_req_valid;
  assign req_col_o   = st_req_valid ? st_req_col : row_req_col;
  assign req_last_o  = !st_req_valid && row_req_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pace_q <= '0;
      outs_q <= '0;
    end else begin
      if (take) pace_q <= slices - 6'd1;
      else if (pace_q != 6'd0) pace_q <= pace_q - 6'd1;
      outs_q <= outs_q + {4'd0, take && tail} - {4'd0, epi_taken};
    end
  end

  // ---- data meets activations: in hand, in the lanes, out --------------------------------------------
  logic [1023:0] weight_q;
  logic          in_hand_q, in_lanes_q, slicing_q, finish_q, first_q, product_q;
  logic [5:0]    slice_q;
  logic [2:0]    sum_q;

  always_ff @(posedge clk_i) begin
    if (in_hand_q) weight_q <= hand;
    if (in_lanes_q) begin
      slice_q <= '0;
      first_q <= 1'b1;
    end else if (slicing_q) begin
      slice_q <= slice_q + 6'd1;
      first_q <= 1'b0;
    end
    if (!rst_ni) begin
      in_hand_q  <= 1'b0;
      in_lanes_q <= 1'b0;
      slicing_q  <= 1'b0;
      finish_q   <= 1'b0;
      product_q  <= 1'b0;
      sum_q      <= '0;
    end else begin
      in_hand_q  <= take;
      in_lanes_q <= in_hand_q;
      slicing_q  <= in_lanes_q || (slicing_q && slice_q + 6'd1 != slices);
      finish_q   <= slicing_q && slice_q + 6'd1 == slices;
      product_q  <= finish_q;
      sum_q      <= {sum_q[1:0], product_q};
    end
  end
  assign stream_o  = slicing_q;
  assign product_o = product_q;

  // where the products belong
  localparam int unsigned PlaceWidth = 6 + 14 + 4;
  logic                  place_ready, place_valid;
  logic [PlaceWidth-1:0] place, place1_q, place2_q;
  logic [20:0]           place3_q; // vector, quad, tail
  logic [4:0]            unused_places;
  mr_fifo #(.Width(PlaceWidth), .Depth(16)) u_places (
      .clk_i,
      .rst_ni,
      .valid_i(take),
      .ready_o(place_ready),
      .data_i({walk_vector, walk_quad, head, tail, enter, leave}),
      .valid_o(place_valid),
      .ready_i(product_q),
      .data_o(place),
      .count_o(unused_places)
  );
  logic [8:0] top, top1_q, top2_q, top3_q;
  assign top_vector = place[PlaceWidth-1-:6];
  assign top        = {1'b0, wexp} + {1'b0, top_exp};
  always_ff @(posedge clk_i) begin
    if (product_q) begin
      place1_q <= place;
      top1_q   <= top;
    end
    if (sum_q[0]) begin
      place2_q <= place1_q;
      top2_q   <= top1_q;
    end
    if (sum_q[1]) begin
      place3_q <= {place2_q[PlaceWidth-1:4], place2_q[2]};
      top3_q   <= top2_q;
    end
  end

  // ---- elements --------------------------------------------------------------------------------------
  logic [24:0]  cfg;
  logic [203:0] sums;
  logic [3:0]   range;
  pnm_mult_set #(.Gen(Gen), .Cut(Cut)) u_set (
      .clk_i, .rst_ni, .en_i(start_i), .kind_i(mode), .log_i(log), .cfg_o(cfg));
  for (genvar e = 0; e < 4; e++) begin : g_pe
    pnm_pe #(.Gen(Gen), .Cut(Cut), .StreamBits(StreamBits)) u_pe (
        .clk_i,
        .cfg_i(cfg),
        .load_i(in_hand_q),
        .act_i(act_codes),
        .en_i({finish_q, slicing_q, in_lanes_q}),
        .first_i(first_q),
        .slice_i(slice_q),
        .weight_i(weight_q[256*e+:256]),
        .sum_en_i({sum_q[1:0], product_q}),
        .top_i(top),
        .start_i(place2_q[3]),
        .resume_i(place2_q[1]),
        .keep_i(place2_q[0] && !place2_q[2]),
        .vector_i(place2_q[PlaceWidth-1-:6]),
        .acc_o($signed(sums[51*e+:48])),
        .nan_o(sums[51*e+50]),
        .pinf_o(sums[51*e+49]),
        .ninf_o(sums[51*e+48]),
        .range_o(range[e])
    );
  end
  assign range_o = sum_q[0] && range != '0;

  // ---- results ---------------------------------------------------------------------------------------
  logic        epi_rd_valid, epi_rd_ready, written;
  logic [11:0] epi_rd_row;
  pnm_epilogue #(.Depth(OutDepth)) u_epilogue (
      .clk_i,
      .rst_ni,
      .start_i,
      .hold_i(hold),
      .bias_i(desc_i[pnm_desc_pkg::D_MATVEC_BIAS_LSB]),
      .accum_i(desc_i[pnm_desc_pkg::D_MATVEC_ACCUM_LSB]),
      .relu_i(desc_i[pnm_desc_pkg::D_MATVEC_RELU_LSB]),
      .bias_row_i(desc_i[pnm_desc_pkg::D_MATVEC_BIAS_ROW_LSB+:12]),
      .old_i(desc_i[pnm_desc_pkg::D_MATVEC_OLD_LSB+:12]),
      .old_stride_i(desc_i[pnm_desc_pkg::D_MATVEC_OLD_STRIDE_LSB+:12]),
      .y_i(desc_i[pnm_desc_pkg::D_MATVEC_Y_LSB+:12]),
      .y_stride_i(desc_i[pnm_desc_pkg::D_MATVEC_Y_STRIDE_LSB+:12]),
      .valid_i(sum_q[2] && place3_q[0]),
      .vector_i(place3_q[20:15]),
      .quad_i(place3_q[14:1]),
      .top_i(top3_q),
      .sums_i(sums),
      .taken_o(epi_taken),
      .written_o(written),
      .nonfinite_o,
      .rd_valid_o(epi_rd_valid),
      .rd_ready_i(epi_rd_ready),
      .rd_row_o(epi_rd_row),
      .rd_rvalid_i,
      .rd_data_i,
      .wr_valid_o,
      .wr_ready_i,
      .wr_row_o,
      .wr_be_o,
      .wr_data_o
  );

  // results first: their reads are few, and multiplying waits for them; a store is alone
  assign rd_valid_o   = act_rd_valid || st_rd_valid || epi_rd_valid;
  assign rd_row_o     = epi_rd_valid ? epi_rd_row : act_rd_valid ? act_rd_row : st_rd_row;
  assign act_rd_ready = rd_ready_i && !epi_rd_valid;
  assign st_rd_ready  = rd_ready_i;
  assign epi_rd_ready = rd_ready_i;

  // ---- end -------------------------------------------------------------------------------------------
  logic [19:0] left_q;
  always_ff @(posedge clk_i) begin
    if (start_i) left_q <= quads * vectors;
    else if (written) left_q <= left_q - 20'd1;
  end
  assign done_o = store_done || (written && left_q == 20'd1);

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!take || place_ready);
      assert (!product_q || place_valid);
    end
  end
endmodule
