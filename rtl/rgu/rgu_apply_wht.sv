// Walsh-Hadamard transform of a stream of groups of 2^LogMax or, with big_i low, 2^(LogMax-1)
// values: single-path delay-feedback stages, one register each, natural order in and out.
//
// One value a cycle under valid_i; nothing moves without it. cnt_i numbers the values of a run from
// 0, and cnt_o is the number of the value that leaves (2^k - 1 values later, so the first outputs
// carry negative numbers, and the last are pushed out by values that do not matter). Width must
// hold the sums.
module rgu_apply_wht #(
    parameter int unsigned Width  = 24,
    parameter int unsigned LogMax = 5
) (
    input  logic                    clk_i,
    input  logic                    rst_ni,
    input  logic                    big_i,
    input  logic                    valid_i,
    input  logic [11:0]             cnt_i,
    input  logic signed [Width-1:0] data_i,
    output logic                    valid_o,
    output logic [11:0]             cnt_o,
    output logic signed [Width-1:0] data_o
);
  logic [LogMax:0] v;  // between the stages
  logic [(LogMax+1)*12-1:0] cnt;
  logic [(LogMax+1)*Width-1:0] x;
  assign v[0] = valid_i;
  assign cnt[11:0] = cnt_i;
  assign x[Width-1:0] = data_i;
  assign valid_o = v[LogMax];
  assign cnt_o = cnt[LogMax*12+:12];
  assign data_o = x[LogMax*Width+:Width];

  for (genvar k = 0; k < LogMax; k++) begin : g_stage
    localparam int unsigned Bits = LogMax - 1 - k;  // the stage pairs values 2^Bits apart
    localparam int unsigned Half = 1 << Bits;
    localparam int unsigned AddrW = Bits == 0 ? 1 : Bits;
    logic signed [Width-1:0] dly[0:Half-1];
    logic signed [Width-1:0] old, now, x_q;
    logic [AddrW-1:0] at;
    logic [11:0] number, cnt_q;
    logic v_q, skip;

    assign skip = k == 0 && !big_i;
    assign number = cnt[k*12+:12];
    assign now = x[k*Width+:Width];
    assign at = number[AddrW-1:0] & AddrW'(Half - 1);
    assign old = dly[at];
    assign v[k+1] = v_q;
    assign x[(k+1)*Width+:Width] = x_q;
    assign cnt[(k+1)*12+:12] = cnt_q;

    always_ff @(posedge clk_i) begin
      v_q <= rst_ni && v[k];
      if (v[k]) begin
        if (skip) begin
          x_q <= now;
          cnt_q <= number;
        end else begin
          x_q <= number[Bits] ? old + now : old;
          dly[at] <= number[Bits] ? old - now : now;
          cnt_q <= number - 12'(Half);
        end
      end
    end
  end
endmodule
