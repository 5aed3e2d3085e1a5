// Multipliers of every generator side by side, some with other cuts and stream bits a cycle: the bench talks to
// one at a time, the others rest. Port k of a vector is instance k.
module mult_tb (
    input  logic              clk_i,
    input  logic              rst_ni,
    input  logic [11:0]       set_i,
    input  logic [1:0]        kind_i,
    input  logic [3:0]        log_i,
    input  logic [11:0]       seed_we_i,
    input  logic [23:0]       seed_a_i,
    input  logic [22:0]       seed_b_i,
    output logic [11:0]       busy_o,
    input  logic [11:0]       valid_i,
    output logic [11:0]       ready_o,
    input  logic [15:0]       a_i,
    input  logic [15:0]       b_i,
    output logic [11:0]       valid_o,
    input  logic              ready_i,
    output logic [12*32-1:0]  product_o,
    output logic [12*4-1:0]   flags_o
);
    for (genvar k = 0; k < 12; k++) begin : gen_mult
        // the same numbers stand in mult.cpp
        localparam int unsigned GEN  = k < 4 ? k : k == 4 || k == 5 ? 0 : k == 6 ? 1 : k == 7 ? 2 : k == 11 ? 1 : 3;
        localparam int unsigned CUT  = k < 4 ? 0 : k == 5 ? 2 : k == 6 ? 1 : k == 7 ? 3 : k == 8 ? 1 : k == 9 ? 6 : 0;
        localparam int unsigned BITS = k < 4 ? 16 : k == 4 || k == 6 || k == 8 ? 4 : k == 7 || k == 10 ? 8 :
            k == 5 ? 64 : 32;
        localparam int unsigned LANE = k == 6 ? 5 : k == 11 ? 255 : 0;
        pnm_mult #(.Gen(GEN), .Cut(CUT), .StreamBits(BITS), .Lane(LANE)) i_mult (
            .clk_i, .rst_ni, .set_i(set_i[k]), .kind_i, .log_i, .seed_we_i(seed_we_i[k]), .seed_a_i, .seed_b_i,
            .busy_o(busy_o[k]), .valid_i(valid_i[k]), .ready_o(ready_o[k]), .a_i, .b_i, .valid_o(valid_o[k]),
            .ready_i, .product_o(product_o[32*k +: 32]), .flags_o(flags_o[4*k +: 4])
        );
    end
endmodule
