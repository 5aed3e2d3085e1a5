// Puts a frame together: the headers' first beat, then the rest of the headers before the first payload beat,
// whose payload begins at byte 10, then the payload; or the beats of a raw frame as they come.
//
// Takes the next frame's headers the cycle after a frame's last beat; a beat a cycle into the output register
// while payload is there. Lanes behind the frame's end are zero. sent_o, done_o pulse with the last beat into
// the output register; gone_o with the end of any frame, dropped ones included.
module nic_tx_out (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               head_valid_i,
    output logic               head_ready_o,
    input  nic_tx_pkg::built_t head_i,
    input  logic               pay_valid_i,
    output logic               pay_ready_o,
    input  logic [511:0]       pay_data_i,
    input  logic               pay_last_i,
    output logic               valid_o,
    input  logic               ready_i,
    output logic [511:0]       data_o,
    output logic [63:0]        keep_o,
    output logic               last_o,
    output logic               gone_o,
    output logic               sent_o,
    output logic [13:0]        sent_bytes_o,
    output logic               sent_retrans_o,
    output logic               done_o,
    output logic [5:0]         done_slot_o
);
  // the beats of a frame: 0 the headers alone, 1 the one they end in, 2 payload
  logic [1:0]   at_q;
  logic         built, from_pay, last, emit, out_ready, step;
  logic [511:0] data;
  logic [63:0]  keep;

  assign built = !head_i.raw && !head_i.drop;
  // a dropped frame of no payload takes one cycle
  assign from_pay = built ? at_q != 2'd0 && !head_i.lone : !(head_i.drop && head_i.lone);
  assign last = built ? at_q != 2'd0 && (head_i.lone || pay_last_i) : head_i.lone || pay_last_i;
  assign step = head_valid_i && (!from_pay || pay_valid_i);
  assign emit = step && !head_i.drop;
  assign gone_o = step && last && (out_ready || head_i.drop);
  assign head_ready_o = gone_o;
  assign pay_ready_o = head_valid_i && from_pay && (out_ready || head_i.drop);

  function automatic logic [63:0] keep_of(input logic [5:0] bytes);
    keep_of = bytes == 6'd0 ? '1 : ~({64{1'b1}} << bytes);
  endfunction

  always_comb begin
    data = pay_data_i;
    keep = '1;
    if (emit) begin
      if (built && at_q == 2'd0) data = head_i.head[511:0];
      if (built && at_q == 2'd1) data = {from_pay ? pay_data_i[511:80] : {368'd0, head_i.head[655:592]}, head_i.head[591:512]};
      if (last) begin
        keep = keep_of(head_i.bytes[5:0]);
        data = nic_rx_pkg::mask_beat(data, keep);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) at_q <= 2'd0;
    else if (gone_o) at_q <= 2'd0;
    else if (emit && out_ready && at_q != 2'd2) at_q <= at_q + 2'd1;
  end

  assign sent_o = gone_o && !head_i.drop;
  assign sent_bytes_o = head_i.bytes;
  assign sent_retrans_o = head_i.retrans;
  assign done_o = gone_o && head_i.done;
  assign done_slot_o = head_i.slot;

  logic [575:0] out;
  assign {keep_o, data_o} = out;
  mr_stream_reg #(.Width(577)) u_out (
      .clk_i, .rst_ni, .valid_i(emit), .ready_o(out_ready), .data_i({last, keep, data}), .valid_o, .ready_i,
      .data_o({last_o, out})
  );
  mr_stream_check #(.Width(512), .Keep(64)) u_check (
      .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(keep_o), .last_i(last_o)
  );
endmodule
