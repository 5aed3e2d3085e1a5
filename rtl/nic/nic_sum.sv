// Ones' complement sum of a frame's payload, beat by beat.
//
// Beats have byte 0 in [7:0] and zeroes beyond the payload's end; an odd byte counts as the upper half of
// its word. sum_o with done_o comes 3 cycles after the last beat, folded to 16 bits, in network order (byte
// 0 the more significant). One beat a cycle, frames back to back, no back pressure.
module nic_sum (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         valid_i,
    input  logic         last_i,
    input  logic [511:0] data_i,
    output logic         done_o,
    output logic [15:0]  sum_o
);
  logic         valid1_q, last1_q, first_q, last2_q;
  logic [143:0] part_q; // eight sums of four words
  logic [26:0]  beat, sum_q;  // a frame of 9,216 bytes has 4,608 words
  logic [17:0]  once;
  logic [16:0]  twice;
  logic [15:0]  folded;
  logic         done_q;
  logic [15:0]  out_q;

  always_comb begin
    beat = '0;
    if (valid1_q) for (int unsigned k = 0; k < 8; k++) beat = beat + {9'd0, part_q[18*k+:18]};
  end
  // carries come back in, twice at most and then once more
  assign once   = {2'b0, sum_q[15:0]} + {7'b0, sum_q[26:16]};
  assign twice  = {1'b0, once[15:0]} + {15'b0, once[17:16]};
  assign folded = twice[15:0] + {15'b0, twice[16]};

  always_ff @(posedge clk_i) begin
    if (valid_i)
      for (int unsigned k = 0; k < 8; k++)
        part_q[18*k+:18] <= {2'b0, data_i[64*k+:16]} + {2'b0, data_i[64*k+16+:16]} + {2'b0, data_i[64*k+32+:16]}
            + {2'b0, data_i[64*k+48+:16]};
    if (valid1_q) sum_q <= first_q ? beat : sum_q + beat;
    if (last2_q) out_q <= {folded[7:0], folded[15:8]};
    if (valid_i) last1_q <= last_i;
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      first_q  <= 1'b1;
      last2_q  <= 1'b0;
      done_q   <= 1'b0;
    end else begin
      valid1_q <= valid_i;
      if (valid1_q) first_q <= last1_q;
      last2_q <= valid1_q && last1_q;
      done_q  <= last2_q;
    end
  end
  assign done_o = done_q;
  assign sum_o  = out_q;
endmodule
