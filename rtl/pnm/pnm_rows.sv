// Row registers beside the banks: two DRAM rows of each of the four, read once and then multiplied as often as
// there are vectors. So a row is open only while it is copied, and the next one is opened and copied while the
// multipliers are at work on this one: they wait for the banks only where a row's visit is shorter than its cycle
// of activation, 16 reads and precharge.
//
// start_i, a pulse, begins at col_i; length_i columns are gone through again and again up to column upto_i, counted
// from the start. upto_i may grow. Columns are asked for as long as there is a free register; release_i gives the
// older one back. there_o: column at_i of register slot_i has come; data_o one cycle after read_i.
module pnm_rows (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          start_i,
    input  logic [13:0]   col_i,
    input  logic [14:0]   length_i,
    input  logic [15:0]   upto_i,
    input  logic          release_i,
    // banks
    output logic          req_valid_o,
    input  logic          req_ready_i,
    output logic [13:0]   req_col_o,
    output logic          req_last_o,  // of its row
    input  logic          rvalid_i,
    input  logic [1023:0] rdata_i,
    // multipliers
    input  logic          slot_i,
    input  logic [3:0]    at_i,
    output logic          there_o,
    input  logic          read_i,
    output logic [1023:0] data_o
);
  logic [14:0] end_col;
  assign end_col = {1'b0, col_i} + length_i;

  // ---- asking ------------------------------------------------------------------------------------------
  logic        run_q, fresh_q, ask, asked;
  logic [13:0] ask_col_q;
  logic [15:0] ask_at_q;
  logic [1:0]  taken_q;  // registers
  logic        ask_end;
  assign ask_end     = {1'b0, ask_col_q} + 15'd1 == end_col;
  assign ask         = run_q && ask_at_q != upto_i && (!fresh_q || taken_q != 2'd2);
  assign asked       = ask && req_ready_i;
  assign req_valid_o = ask;
  assign req_col_o   = ask_col_q;
  assign req_last_o  = ask_end || ask_col_q[3:0] == 4'hF;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) run_q <= 1'b0;
    else if (start_i) run_q <= 1'b1;
    if (start_i) begin
      ask_col_q <= col_i;
      ask_at_q  <= '0;
      fresh_q   <= 1'b1;
      taken_q   <= '0;
    end else if (run_q) begin
      if (asked) begin
        ask_col_q <= ask_end ? col_i : ask_col_q + 14'd1;
        ask_at_q  <= ask_at_q + 16'd1;
        fresh_q   <= req_last_o;
      end
      taken_q <= taken_q + {1'b0, asked && fresh_q} - {1'b0, release_i};
    end
  end

  // ---- what comes back ---------------------------------------------------------------------------------
  logic [13:0]   put_col_q;
  logic          put_slot_q, put_end, put_last;
  logic [1:0]    full_q;
  logic [1023:0] mem [32];
  logic [1023:0] read_q;
  assign put_end  = {1'b0, put_col_q} + 15'd1 == end_col;
  assign put_last = put_end || put_col_q[3:0] == 4'hF;
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      put_col_q  <= col_i;
      put_slot_q <= 1'b0;
      full_q     <= '0;
    end else begin
      if (release_i) full_q[slot_i] <= 1'b0;
      if (rvalid_i) begin
        put_col_q <= put_end ? col_i : put_col_q + 14'd1;
        if (put_last) begin
          full_q[put_slot_q] <= 1'b1;
          put_slot_q         <= !put_slot_q;
        end
      end
    end
    if (rvalid_i) mem[{put_slot_q, put_col_q[3:0]}] <= rdata_i;
    if (read_i) read_q <= mem[{slot_i, at_i}];
  end
  assign there_o = full_q[slot_i] || (put_slot_q == slot_i && at_i < put_col_q[3:0]);
  assign data_o  = read_q;

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!rvalid_i || run_q);
      assert (!rvalid_i || !full_q[put_slot_q] || (release_i && slot_i == put_slot_q));
      assert (!(release_i && taken_q == 2'd0));
    end
  end
endmodule
