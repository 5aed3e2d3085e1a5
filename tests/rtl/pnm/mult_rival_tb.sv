// Binary lanes and lean hybrid ones side by side, all fed alike. Port k of a vector is lane k.
module mult_rival_tb (
    input  logic             clk_i,
    /* verilator lint_off UNUSEDSIGNAL */ // lanes have no reset
    input  logic             rst_ni,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic             load_i,
    input  logic [15:0]      act_i,
    input  logic [2:0]       en_i,
    input  logic [15:0]      weight_i,
    output logic [22*32-1:0] out_o // {0, nan, inf, zero, sign, exp, p} of each lane
);
    logic [28:0] out [22];
    for (genvar k = 0; k < 22; k++) begin : gen_out
        assign out_o[32*k +: 32] = {3'd0, out[k]};
    end
    // the same numbers stand in mult_rival.cpp
    for (genvar k = 0; k < 9; k++) begin : gen_bin
        localparam int unsigned STAGES = k < 3 ? k + 1 : k == 4 ? 2 : 1;
        localparam int unsigned KEEP = k < 3 ? 7 : k < 9 ? 9 - k : 1;
        pnm_mult_bin #(.Stages(STAGES), .Keep(KEEP)) i_bin (
            .clk_i, .load_i, .act_i, .en_i, .weight_i, .sign_o(out[k][25]), .exp_o(out[k][24:16]),
            .p_o(out[k][15:0]), .zero_o(out[k][26]), .inf_o(out[k][27]), .nan_o(out[k][28])
        );
    end
    for (genvar k = 9; k < 22; k++) begin : gen_short
        localparam int unsigned I = k - 9;
        localparam int unsigned GEN = I < 4 ? 3 : I < 8 ? 0 : I < 11 ? 3 : I == 11 ? 3 : 0;
        localparam int unsigned LOG = I < 8 ? 2 + I % 4 : I < 11 ? I - 6 : I == 11 ? 5 : 3;
        localparam int unsigned CUT = I < 8 ? 0 : I < 11 ? I - 7 : I == 11 ? 3 : 2;
        localparam int unsigned STAGES = 1 + I % 3;
        pnm_mult_short #(.Gen(GEN), .Log(LOG), .Cut(CUT), .Stages(STAGES)) i_short (
            .clk_i, .load_i, .act_i, .en_i, .weight_i, .sign_o(out[k][25]), .exp_o(out[k][24:16]),
            .p_o(out[k][15:0]), .zero_o(out[k][26]), .inf_o(out[k][27]), .nan_o(out[k][28])
        );
    end
endmodule
