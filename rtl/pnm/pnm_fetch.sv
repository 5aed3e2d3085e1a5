// A group's descriptors, in order, read ahead in pieces of up to 16; a jump throws away what was read ahead.
//
// start_i, a pulse, begins at base_i; jump_i, a pulse that may come while a descriptor is offered or not, goes on
// at index target_i. Nothing is read at or beyond count_i. err_o: a read failed; what came is not offered.
module pnm_fetch (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic [63:0]  base_i,
    input  logic [31:0]  count_i,
    input  logic         jump_i,
    input  logic [31:0]  target_i,
    input  logic         stop_i,   // no more reads
    output logic         valid_o,
    input  logic         ready_i,
    output logic [511:0] desc_o,
    output logic         err_o,
    output logic         idle_o,
    output logic         beat_o,
    output logic [63:0]  araddr_o,
    output logic [7:0]   arlen_o,
    output logic         arvalid_o,
    input  logic         arready_i,
    input  logic [511:0] rdata_i,
    input  logic [1:0]   rresp_i,
    input  logic         rlast_i,
    input  logic         rvalid_i,
    output logic         rready_o
);
  logic [31:0] next_q, left;     // first descriptor not asked for
  logic [5:0]  ahead_q, drop_q;  // asked for and not taken; of those, not wanted any more
  logic [4:0]  piece;
  logic        ask, asked, cmd_ready, rd_valid, rd_ready, beat, drop, unused_last, unused_idle;
  logic [63:0] unused_keep;
  assign left  = next_q < count_i ? count_i - next_q : 32'd0;
  assign piece = left > 32'd16 ? 5'd16 : left[4:0];
  assign ask   = piece != 5'd0 && ahead_q <= 6'd16 && !stop_i && !jump_i && !start_i;
  assign asked = ask && cmd_ready;
  assign drop  = drop_q != 6'd0;
  assign rd_ready = drop || ready_i || err_o;
  assign beat     = rd_valid && rd_ready;
  assign valid_o  = rd_valid && !drop && !err_o;
  assign beat_o   = beat;
  assign idle_o   = ahead_q == 6'd0;

  mr_axi_rd #(.LenWidth(16), .MaxOutstanding(4), .Buffer(32)) u_rd (
      .clk_i, .rst_ni, .clear_i(start_i), .idle_o(unused_idle), .err_o,
      .cmd_valid_i(ask), .cmd_ready_o(cmd_ready), .cmd_addr_i(base_i + {26'd0, next_q, 6'd0}),
      .cmd_len_i({5'd0, piece, 6'd0}),
      .valid_o(rd_valid), .ready_i(rd_ready), .data_o(desc_o), .keep_o(unused_keep), .last_o(unused_last),
      .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_o);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q  <= '0;
      ahead_q <= '0;
      drop_q  <= '0;
    end else begin
      ahead_q <= ahead_q + (asked ? {1'b0, piece} : 6'd0) - {5'd0, beat};
      if (jump_i || start_i) drop_q <= ahead_q - {5'd0, beat};
      else if (drop && rd_valid) drop_q <= drop_q - 6'd1;
      if (start_i) next_q <= '0;
      else if (jump_i) next_q <= target_i;
      else if (asked) next_q <= next_q + {27'd0, piece};
    end
  end
endmodule
