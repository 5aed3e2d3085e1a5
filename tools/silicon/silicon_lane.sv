// Lanes as they are measured: the hybrid lane with the generator that otherwise stands outside of it.
module silicon_lane #(
    parameter int unsigned Gen = 3,
    parameter int unsigned Cut = 0,
    parameter int unsigned StreamBits = 16,
    parameter bit Exact = 1'b0,
    parameter bit Full = 1'b0
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [24:0] cfg_i,
    input  logic        load_i,
    input  logic [15:0] act_i,
    input  logic [2:0]  en_i,
    input  logic        first_i,
    input  logic [5:0]  slice_i,
    input  logic [15:0] weight_i,
    output logic        sign_o,
    output logic [8:0]  exp_o,
    output logic [15:0] p_o,
    output logic        zero_o,
    output logic        inf_o,
    output logic        nan_o
);
    logic [StreamBits-1:0] ones;
    logic [7:0] code_a, code_b;
    logic       fault;
    pnm_mult_lane #(.Gen(Gen), .Cut(Cut), .StreamBits(StreamBits), .Exact(Exact), .Full(Full)) i_lane (
        .clk_i, .cfg_i, .load_i, .act_i, .en_i, .first_i, .slice_i, .weight_i, .ones_i(ones), .code_a_o(code_a),
        .code_b_o(code_b), .sign_o, .exp_o, .p_o, .zero_o, .inf_o, .nan_o
    );
    if (Gen == pnm_stream_pkg::GEN_LFSR) begin : gen_lfsr
        pnm_stream_lfsr #(.Lane(0), .Cut(Cut), .StreamBits(StreamBits)) i_streams (
            .clk_i, .rst_ni, .seed_we_i(1'b0), .seed_a_i(24'd0), .seed_b_i(23'd0), .en_i(en_i[1]), .first_i,
            .full_i(1'b0), .log_i(cfg_i[5:2]), .code_a_i(code_a), .code_b_i(code_b), .ones_o(ones), .fault_o(fault)
        );
    end else if (Gen == pnm_stream_pkg::GEN_SOBOL) begin : gen_sobol
        pnm_stream_sobol #(.StreamBits(StreamBits)) i_streams (
            .clk_i, .en_i(en_i[1]), .first_i, .slice_i, .log_i(cfg_i[5:2]), .code_a_i(code_a), .code_b_i(code_b),
            .ones_o(ones)
        );
        assign fault = rst_ni;
    end else begin : gen_inside
        assign ones = '0;
        assign fault = rst_ni;
    end
endmodule
