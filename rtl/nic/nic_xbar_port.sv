// One reader's end of the crossbar: takes fetch commands, asks for beat after beat, gives them in order.
//
// A command waits in a queue of two, so that commands follow each other without a gap. A beat is asked for
// only when there is a place for it in the queue of four in front of the reader: what a memory gives is
// always taken, so a reader that stalls holds no memory. Data two cycles after the grant; a beat a cycle.
module nic_xbar_port (
    input  logic          clk_i,
    input  logic          rst_ni,
    // commands
    input  logic          cmd_valid_i,
    output logic          cmd_ready_o,
    input  logic [1:0]    cmd_mem_i,
    input  logic [9:0]    cmd_buf_i,
    input  logic [7:0]    cmd_beat_i,
    input  logic [7:0]    cmd_beats_i, // at least 1
    input  logic          cmd_rel_i,
    // one beat wanted
    output logic          req_o,
    input  logic          grant_i,
    output logic [1:0]    mem_o,
    output logic [9:0]    buf_o,
    output logic [7:0]    beat_o,
    output logic          rel_o,       // with the last beat: drop a reference
    // what the memories give the cycle after
    input  logic [2047:0] rd_data_i,
    // to the reader
    output logic          valid_o,
    input  logic          ready_i,
    output logic [511:0]  data_o,
    output logic          last_o
);
  logic       head_valid, head_rel, head_last;
  logic [7:0] head_beat, head_beats, beat_q;
  logic [1:0] unused_count;
  mr_fifo #(.Width(29), .Depth(2)) u_commands (
      .clk_i, .rst_ni, .valid_i(cmd_valid_i), .ready_o(cmd_ready_o),
      .data_i({cmd_mem_i, cmd_buf_i, cmd_beat_i, cmd_beats_i, cmd_rel_i}),
      .valid_o(head_valid), .ready_i(grant_i && head_last), .data_o({mem_o, buf_o, head_beat, head_beats, head_rel}),
      .count_o(unused_count)
  );

  logic [2:0] room_q;
  assign req_o = head_valid && room_q != 3'd0;
  assign head_last = beat_q == head_beats - 8'd1;
  assign beat_o = head_beat + beat_q;
  assign rel_o = head_rel && head_last;

  // the beats that were given, and the one under way
  logic [511:0] data_mem[0:3];
  logic [3:0]   last_q;
  logic [1:0]   wr_q, rd_q, mem_q;
  logic [2:0]   count_q;
  logic         coming_q, coming_last_q, pop;
  assign valid_o = count_q != 3'd0;
  assign data_o = data_mem[rd_q];
  assign last_o = last_q[rd_q];
  assign pop = valid_o && ready_i;

  always_ff @(posedge clk_i) begin
    if (grant_i) begin
      mem_q <= mem_o;
      coming_last_q <= head_last;
    end
    if (coming_q) begin
      data_mem[wr_q] <= rd_data_i[{mem_q, 9'd0}+:512];
      last_q[wr_q] <= coming_last_q;
    end
    if (!rst_ni) begin
      beat_q <= '0;
      room_q <= 3'd4;
      coming_q <= 1'b0;
      wr_q <= '0;
      rd_q <= '0;
      count_q <= '0;
    end else begin
      if (grant_i) beat_q <= head_last ? 8'd0 : beat_q + 8'd1;
      room_q <= room_q - {2'd0, grant_i} + {2'd0, pop};
      coming_q <= grant_i;
      wr_q <= wr_q + {1'b0, coming_q};
      rd_q <= rd_q + {1'b0, pop};
      count_q <= count_q + {2'd0, coming_q} - {2'd0, pop};
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && grant_i) granted: assert (req_o && head_beats != 8'd0);
  end
  mr_stream_check #(.Width(512)) u_check (
      .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(1'b1), .last_i(last_o)
  );
endmodule
