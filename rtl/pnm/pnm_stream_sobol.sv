// A & B of one slice from two Sobol dimensions: A's place k against number k of dimension 2, B's against number j
// of dimension 1, the bit-reversed counter, where j counts the ones of A so far (conditional advance). B is thus
// sampled evenly just where it matters. Numbers have 8 bits and begin at zero.
//
// Combinational from codes, slice and the count; en_i adds the slice's ones of A to it, first_i begins at zero.
// The chain through the counts is what several stream bits a cycle cost here. Only the first L places count where
// L < StreamBits.
module pnm_stream_sobol #(
    parameter int unsigned StreamBits = 16
) (
    input  logic                  clk_i,
    input  logic                  en_i,
    input  logic                  first_i,
    input  logic [5:0]            slice_i,
    input  logic [3:0]            log_i,
    input  logic [7:0]            code_a_i,
    input  logic [7:0]            code_b_i,
    output logic [StreamBits-1:0] ones_o
);
    localparam int unsigned LOG = $clog2(StreamBits);

    function automatic logic [7:0] sobol2(input logic [7:0] k);
        sobol2 = 8'd0;
        for (int unsigned i = 0; i < 8; i++)
            if (k[i]) sobol2 = sobol2 ^ pnm_stream_pkg::SOBOL_DIRECTIONS[8*i +: 8];
    endfunction

    logic [8:0] at_q, at_d;
    always_comb begin : p_compare
        logic [7:0] k, reversed;
        logic a;
        at_d = first_i ? 9'd0 : at_q;
        for (int unsigned i = 0; i < StreamBits; i++) begin
            k = 8'({2'b0, slice_i} << LOG) | 8'(i);
            a = code_a_i > sobol2(k) && (9'(i) >> log_i) == 9'd0;
            for (int unsigned j = 0; j < 8; j++) reversed[j] = at_d[7-j];
            ones_o[i] = a && code_b_i > reversed;
            at_d = at_d + {8'd0, a};
        end
    end

    always_ff @(posedge clk_i) if (en_i) at_q <= at_d;
endmodule
