// A & B of one slice from two shift registers of different lengths: a place has a 1 where both codes are above
// their numbers. Fractions of 256 whose low Drop bits are zero; the numbers lose as many.
//
// Combinational from codes and state; en_i moves the registers on, first_i begins at the seeds. Only the first L
// places count where L < StreamBits. Period 2^24-1 and 2^23-1: the pair never falls into step.
module pnm_stream_lfsr #(
    parameter int unsigned Lane       = 0,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  seed_we_i,
    input  logic [23:0]           seed_a_i,
    input  logic [22:0]           seed_b_i,
    input  logic                  en_i,
    input  logic                  first_i,
    input  logic                  full_i,
    input  logic [3:0]            log_i,
    input  logic [7:0]            code_a_i,
    input  logic [7:0]            code_b_i,
    output logic [StreamBits-1:0] ones_o,
    output logic                  fault_o
);
    logic [8*StreamBits-1:0] numbers_a, numbers_b;
    logic fault_a, fault_b;
    pnm_lfsr #(.Which(0), .Lane(Lane), .Numbers(StreamBits)) i_a (
        .clk_i, .rst_ni, .seed_we_i, .seed_i(seed_a_i), .en_i, .restart_i(first_i),
        .numbers_o(numbers_a), .fault_o(fault_a)
    );
    pnm_lfsr #(.Which(1), .Lane(Lane), .Numbers(StreamBits)) i_b (
        .clk_i, .rst_ni, .seed_we_i, .seed_i({1'b0, seed_b_i}), .en_i, .restart_i(first_i),
        .numbers_o(numbers_b), .fault_o(fault_b)
    );
    assign fault_o = fault_a || fault_b;

    always_comb begin : p_compare
        logic [7:0] keep;
        keep = full_i ? 8'hFF : 8'hFE << Cut;
        for (int unsigned i = 0; i < StreamBits; i++)
            ones_o[i] = code_a_i > (numbers_a[8*i +: 8] & keep) && code_b_i > (numbers_b[8*i +: 8] & keep)
                && (9'(i) >> log_i) == 9'd0;
    end
endmodule
