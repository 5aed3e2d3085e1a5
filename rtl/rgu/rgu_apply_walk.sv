// The order in which apply mode does things: chunk rows o, groups of vectors, chunk columns i,
// terms, vectors of the group, innermost last.
//
// step_i moves on; outputs describe the current position and are registered (new ones the cycle
// after start_i or step_i). more_o falls with the last step. A group has 4096 / 2^n vectors, the
// last of a row maybe fewer. Every vector of a group has an accumulator slot: slots are handed out
// round robin, group after group. Loops that a user does not have are switched off by limits of 1
// and by Vectors = 0.
module rgu_apply_walk #(
    parameter bit Vectors = 1'b1
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,
    input  logic        step_i,
    input  logic        n10_i,
    input  logic [15:0] chunks_out_i,
    input  logic [31:0] batch_i,
    input  logic [15:0] chunks_in_i,
    input  logic [ 5:0] terms_i,
    output logic        more_o,
    output logic [15:0] o_o,
    output logic [15:0] i_o,
    output logic [ 4:0] t_o,
    output logic [ 3:0] slot_o,
    output logic        first_o,   // first chunk column and term
    output logic        last_o,    // last chunk column and term
    output logic        v_first_o, // first and last vector of the group
    output logic        v_last_o,
    output logic        t_last_o,
    output logic        g_last_o   // last group
);
  logic more_q, i_last, o_last;
  logic [15:0] o_q, i_q;
  logic [4:0] t_q;
  logic [3:0] v_q, slot_q;  // slot of the group's first vector
  logic [31:0] left_q;      // vectors of this and the later groups
  logic [4:0] size;         // vectors of a full group
  logic [4:0] now;          // of this group

  assign size = n10_i ? 5'd4 : 5'd16;
  assign g_last_o = left_q <= {27'd0, size};
  assign now = g_last_o ? left_q[4:0] : size;
  assign v_first_o = v_q == 4'd0;
  assign v_last_o = !Vectors || {1'b0, v_q} + 5'd1 == now;
  assign t_last_o = {1'b0, t_q} + 6'd1 == terms_i;
  assign i_last = i_q == chunks_in_i - 16'd1;
  assign o_last = o_q == chunks_out_i - 16'd1;
  assign first_o = i_q == 16'd0 && t_q == 5'd0;
  assign last_o = i_last && t_last_o;
  assign more_o = more_q;
  assign o_o = o_q;
  assign i_o = i_q;
  assign t_o = t_q;
  assign slot_o = (slot_q + v_q) & {{2{!n10_i}}, 2'b11};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      more_q <= 1'b0;
    end else if (start_i) begin
      more_q <= 1'b1;
      o_q <= 16'd0;
      i_q <= 16'd0;
      t_q <= 5'd0;
      v_q <= 4'd0;
      slot_q <= 4'd0;
      left_q <= batch_i;
    end else if (step_i) begin
      v_q <= v_last_o ? 4'd0 : v_q + 4'd1;
      if (v_last_o) begin
        t_q <= t_last_o ? 5'd0 : t_q + 5'd1;
        if (t_last_o) i_q <= i_last ? 16'd0 : i_q + 16'd1;
        if (last_o) begin
          slot_q <= slot_q + now[3:0];
          left_q <= g_last_o ? batch_i : left_q - {27'd0, size};
          if (g_last_o) o_q <= o_q + 16'd1;
          if (g_last_o && o_last) more_q <= 1'b0;
        end
      end
    end
  end
endmodule
