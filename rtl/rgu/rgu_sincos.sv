// Cosine and sine of angle_i * pi/32768 with 20 fraction bits, exact at multiples of pi/2.
//
// Angle sum over two ROMs of 24 fraction bits: cos(a+b) = c1 c2 - s1 s2, sin(a+b) = s1 c2 + c1 s2, one
// rounding (half up) each, then the quadrant. Two multipliers (25x25 and 25x18) make the cosine in one
// cycle and the sine in the next: an angle every two cycles, the result offered four cycles after the
// angle was taken. Results wait in a FIFO of four; angles are taken only when there is room.
module rgu_sincos (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        clear_i,   // forget everything in flight
    input  logic        valid_i,
    output logic        ready_o,
    input  logic [15:0] angle_i,   // signed; as unsigned it only adds a full turn
    output logic        valid_o,
    input  logic        ready_i,
    output logic [21:0] cos_o,
    output logic [21:0] sin_o
);
  // valid bits: 0 the ROM has answered (cosine), 1 sine, 2 results
  logic [2:0] stage_q;
  logic [2:0] room_q;  // entries neither full nor promised
  logic take, push, pop;

  assign ready_o = !stage_q[0] && room_q != 3'd0;
  assign take = valid_i && ready_o;
  assign push = stage_q[2];
  assign pop = valid_o && ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      stage_q <= 3'b000;
      room_q <= 3'd4;
    end else begin
      stage_q <= {stage_q[1:0], take};
      if (take && !pop) room_q <= room_q - 3'd1;
      if (!take && pop) room_q <= room_q + 3'd1;
    end
  end

  logic [24:0] c1, c2;
  logic [23:0] s1;
  logic [17:0] s2;

  rgu_trig_rom u_rom (
      .clk_i,
      .en_i(take),
      .a_i(angle_i[13:7]),
      .b_i(angle_i[6:0]),
      .c1_o(c1),
      .s1_o(s1),
      .c2_o(c2),
      .s2_o(s2)
  );

  // Round half up from 48 to 20 fraction bits; both results are in 0 .. 2^20.
  /* verilator lint_off UNUSEDSIGNAL */  // the bits rounded away
  function automatic logic [20:0] round28(input logic [48:0] x);
    round28 = x[48:28] + {20'd0, x[27]};
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  logic [1:0] quad_q, quad2_q;
  logic [48:0] pa_q;
  logic [42:0] pb_q;
  logic [20:0] cos_q, sin_d;
  logic [43:0] result_d;

  always_ff @(posedge clk_i) begin
    if (take) quad_q <= angle_i[15:14];
    if (stage_q[0] || stage_q[1]) begin
      pa_q <= {24'd0, stage_q[0] ? c1 : {1'b0, s1}} * {24'd0, c2};
      pb_q <= {18'd0, stage_q[0] ? {1'b0, s1} : c1} * {25'd0, s2};
    end
    if (stage_q[1]) begin
      cos_q <= round28(pa_q - {6'd0, pb_q});
      quad2_q <= quad_q;
    end
  end

  assign sin_d = round28(pa_q + {6'd0, pb_q});

  always_comb begin
    case (quad2_q)
      2'd0: result_d = {1'b0, cos_q, 1'b0, sin_d};
      2'd1: result_d = {22'd0 - {1'b0, sin_d}, 1'b0, cos_q};
      2'd2: result_d = {22'd0 - {1'b0, cos_q}, 22'd0 - {1'b0, sin_d}};
      default: result_d = {1'b0, sin_d, 22'd0 - {1'b0, cos_q}};
    endcase
  end

  logic [43:0] fifo_q[0:3];
  logic [1:0] head_q, tail_q;
  logic [2:0] fill_q;

  always_ff @(posedge clk_i) begin
    if (push) fifo_q[tail_q] <= result_d;
    if (!rst_ni || clear_i) begin
      head_q <= 2'd0;
      tail_q <= 2'd0;
      fill_q <= 3'd0;
    end else begin
      if (push) tail_q <= tail_q + 2'd1;
      if (pop) head_q <= head_q + 2'd1;
      if (push && !pop) fill_q <= fill_q + 3'd1;
      if (!push && pop) fill_q <= fill_q - 3'd1;
    end
  end

  assign valid_o = fill_q != 3'd0;
  assign {cos_o, sin_o} = fifo_q[head_q];

  // A promised place is always there.
  always_ff @(posedge clk_i) begin
    if (rst_ni && !clear_i) assert (!(push && fill_q == 3'd4));
  end
endmodule
