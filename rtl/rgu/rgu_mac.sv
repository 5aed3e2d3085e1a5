// Products of the tile generator: 32 lanes of sign * RNH(r * s, 14), added over the terms of a word.
//
// One multiplier a lane. Latency 3 enabled cycles from the table data to acc_o; throughput one term
// of one word a cycle. Lanes are kept sign-extended on a stride of 32 bits, which costs no gates and
// makes a lane one machine word in simulation.
module rgu_mac (
    input  logic             clk_i,
    input  logic             en1_i,    // table data are valid
    input  logic             en2_i,    // one and two enabled cycles later
    input  logic             en3_i,
    input  logic [32*22-1:0] r_data_i, // 20 fraction bits
    input  logic [32*20-1:0] s_data_i, // 18 fraction bits
    input  logic             first_i,  // with en3_i: start a sum
    input  logic             zero_i,   // with en3_i: the sum is zero
    input  logic [31:0]      neg_i,    // with en3_i: subtract
    output logic [32*32-1:0] acc_o     // 24 fraction bits
);
  localparam int RW = 22;
  localparam int SW = 20;

  logic [32*32-1:0] r_q, s_q, p_q, acc_q;
  assign acc_o = acc_q;

  always_ff @(posedge clk_i) begin
    if (en1_i) begin
      for (int l = 0; l < 32; l++) begin
        r_q[l*32+:32] <= 32'($signed(r_data_i[l*RW+:RW]));
        s_q[l*32+:32] <= 32'($signed(s_data_i[l*SW+:SW]));
      end
    end
  end

  // RNH: add half a unit, shift; |product| <= 2^38 and the result fits 26 bits.
  function automatic logic [31:0] rounded(input logic signed [RW-1:0] r,
                                          input logic signed [SW-1:0] s);
    logic signed [63:0] wide;
    wide = 64'(r) * 64'(s) + (64'sd1 << (rgu_pkg::PROD_SHIFT - 1));
    rounded = 32'(wide >>> rgu_pkg::PROD_SHIFT);
  endfunction

  always_ff @(posedge clk_i) begin
    if (en2_i) begin
      for (int l = 0; l < 32; l++) p_q[l*32+:32] <= rounded(r_q[l*32+:RW], s_q[l*32+:SW]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (en3_i) begin
      for (int l = 0; l < 32; l++) begin
        if (zero_i) acc_q[l*32+:32] <= '0;
        else begin
          acc_q[l*32+:32] <= (first_i ? 32'd0 : acc_q[l*32+:32]) +
              (p_q[l*32+:32] ^ {32{neg_i[l]}}) + 32'(neg_i[l]);
        end
      end
    end
  end
endmodule
