// Aligns the bytes of contributions and says what each beat of them is.
//
// The payload begins at an even byte of its first source beat. An aligned beat is offered to stage 1 of the
// engine the cycle after the source beat that completes it; nothing downstream ever stalls. One beat a
// cycle; a contribution that does not begin at byte 0 has one source beat more, or one cycle.
// A contribution begins only when the beats of the one before it in the same slot are far enough ahead:
// Distance cycles from a beat to the same beat of the next contribution, which is what the engine needs to
// write back what it has gathered. busy_o has the slots for which a contribution given now would wait.
module nic_merge_walk #(
    parameter int unsigned Distance = 7
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  frame_valid_i,
    output logic                  frame_ready_o,
    input  nic_merge_pkg::frame_t frame_i,
    input  logic                  valid_i,
    output logic                  ready_o,
    input  logic [511:0]          data_i,
    input  logic                  last_i,
    output logic                  stat_o,     // stage 0, combinational: what stage 1 will hold
    output logic                  vec_o,
    output nic_merge_pkg::beat_t  beat_o,
    output logic [511:0]          data_o,     // stage 1
    input  logic                  take_valid_i,
    input  logic [5:0]            take_slot_i, // a contribution was given
    output logic [63:0]           busy_o
);
  // ---- source beats ----
  logic [511:0] hold_q, data_q;
  logic [7:0]   src_q, out_q; // source beats taken, beats given
  logic         hazard, lone, need, take, emit, done;

  assign need = src_q != frame_i.src_beats;
  // the first source beat alone gives nothing, unless it needs no other one
  assign lone = src_q == 8'd0 && frame_i.src_off != 5'd0;
  assign ready_o = frame_valid_i && need && !(src_q == 8'd0 && hazard);
  assign take = ready_o && valid_i;
  assign emit = frame_valid_i && (need ? take && !lone : 1'b1);
  assign done = emit && out_q + 8'd1 == frame_i.beats;
  assign frame_ready_o = done;
  assign data_o = data_q;

  always_ff @(posedge clk_i) begin
    if (take) hold_q <= data_i;
    if (emit) begin
      if (frame_i.src_off == 5'd0) data_q <= data_i;
      else
        data_q <= (hold_q >> {frame_i.src_off, 4'b0})
                  | (data_i << (10'd512 - {1'b0, frame_i.src_off, 4'b0}));
    end
    if (!rst_ni) begin
      src_q <= 8'd0;
      out_q <= 8'd0;
    end else begin
      if (done) src_q <= 8'd0;
      else if (take) src_q <= src_q + 8'd1;
      if (done) out_q <= 8'd0;
      else if (emit) out_q <= out_q + 8'd1;
    end
  end

  // ---- what the beat is ----
  logic [6:0]  base_q;              // row of the weights' ring where this contribution's heads begin
  logic [12:0] left_q, left;        // values or heads still to come
  logic [12:0] rem_q, rem, rem_sum; // position of the first value in its head
  logic [9:0]  head_q, head;        // that head
  logic [12:0] gap;
  logic [31:0] begins;
  logic        stat, wide, first_vec;
  logic [5:0]  per_beat;
  logic [7:0]  index;
  logic [5:0]  lse_beats;

  assign wide = frame_i.dtype == nic_merge_pkg::DT_FP32 || frame_i.dtype == nic_merge_pkg::DT_INT32;
  assign stat = out_q < {1'b0, frame_i.stat_beats};
  assign first_vec = out_q == {1'b0, frame_i.stat_beats};
  assign stat_o = emit && stat;
  assign vec_o = emit && !stat;
  assign per_beat = stat ? 6'd8 : wide ? 6'd16 : 6'd32;
  assign left = out_q == 8'd0 && stat ? 13'(frame_i.heads) : first_vec ? frame_i.total : left_q;
  assign rem = first_vec ? 13'd0 : rem_q;
  assign head = first_vec ? 10'd0 : head_q;
  assign index = stat ? out_q : out_q - {1'b0, frame_i.stat_beats};
  assign lse_beats = 6'((frame_i.stat_beats + 7'd1) >> 1);

  // where heads begin in this beat: dim - rem values on, then every dim values
  assign gap = frame_i.dim - rem;
  assign begins = gap > 13'd31 ? 32'd0 : frame_i.pattern << gap[4:0];
  assign rem_sum = rem + 13'(frame_i.part);

  always_ff @(posedge clk_i) begin
    if (emit) begin
      left_q <= left - 13'(per_beat);
      if (!stat) begin
        rem_q  <= rem_sum >= frame_i.dim ? rem_sum - frame_i.dim : rem_sum;
        head_q <= head + 10'(frame_i.whole) + 10'(rem_sum >= frame_i.dim);
      end
      if (done && !frame_i.reduce) base_q <= base_q + frame_i.stat_beats;
    end
    if (!rst_ni) base_q <= 7'd0;
  end

  assign beat_o = {
    frame_i.slot, frame_i.reduce, frame_i.dtype, frame_i.rop, frame_i.nat, frame_i.first, frame_i.last,
    index,
    stat ? {base_q + out_q[6:0], 3'b0} : {base_q, 3'b0} + head,
    begins,
    left < 13'(per_beat) ? left[5:0] : per_beat,
    out_q == 8'd0, done,
    stat ? {1'b0, index[7:1]} : {2'b0, lse_beats} + index,
    !stat || index[0] || left <= 13'd8
  };

  // ---- distance between contributions of a slot ----
  // A contribution of n < Distance beats enters at place n when its last beat leaves, and stands in the way
  // of its slot until it has moved past the last place.
  logic [Distance-1:0]   wait_q;
  logic [6*Distance-1:0] slot_q;
  logic [63:0]           busy_q;
  always_comb begin
    hazard = 1'b0;
    for (int unsigned k = 1; k < Distance; k++)
      if (wait_q[k] && slot_q[6*k+:6] == frame_i.slot) hazard = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    slot_q <= {slot_q[6*Distance-7:0], 6'd0};
    for (int unsigned k = 1; k < Distance; k++)
      if (done && frame_i.beats == 8'(k)) slot_q[6*k+:6] <= frame_i.slot;
    if (!rst_ni) begin
      wait_q <= '0;
      busy_q <= '0;
    end else begin
      wait_q <= {wait_q[Distance-2:0], 1'b0};
      for (int unsigned k = 1; k < Distance; k++)
        if (done && frame_i.beats == 8'(k)) wait_q[k] <= 1'b1;
      // a long one keeps its distance by its own length
      if (take && src_q == 8'd0 && frame_i.beats >= 8'(Distance)) busy_q[frame_i.slot] <= 1'b0;
      if (wait_q[Distance-1]) busy_q[slot_q[6*Distance-1-:6]] <= 1'b0;
      if (take_valid_i) busy_q[take_slot_i] <= 1'b1;
    end
  end
  assign busy_o = busy_q;

  // The crossbar gives exactly what was asked for.
  always_ff @(posedge clk_i) begin
    if (rst_ni && take) assert (last_i == (src_q + 8'd1 == frame_i.src_beats));
  end
endmodule
