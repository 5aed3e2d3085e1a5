// What a mode means to the lanes of one PE: one of these, fanned out to all of them.
//
// cfg_o one cycle after kind_i and log_i: {bias (10, signed, 2^-10), round (9, signed: 255 - 256 o), log2 L (4),
// kind (2)}. kind 0 split, 1 full, 2 exact; log2 L 2..8, anything else counts as 2. Gen and Cut choose the
// constants of pnm_stream_pkg and must be the lanes' own.
module pnm_mult_set #(
    parameter int unsigned Gen = pnm_stream_pkg::GEN_UNARY,
    parameter int unsigned Cut = 0
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        en_i,
    input  logic [1:0]  kind_i,
    input  logic [3:0]  log_i,
    output logic [24:0] cfg_o
);
    localparam logic [27:0] OFFSETS =
        Gen == pnm_stream_pkg::GEN_CENTRED ? pnm_stream_pkg::CENTRED_OFFSET[28*Cut +: 28] :
        Gen == pnm_stream_pkg::GEN_SOBOL   ? pnm_stream_pkg::SOBOL_OFFSET[28*Cut +: 28] :
        Gen == pnm_stream_pkg::GEN_LFSR    ? pnm_stream_pkg::LFSR_OFFSET[28*Cut +: 28] :
                                             pnm_stream_pkg::UNARY_OFFSET[28*Cut +: 28];
    localparam logic [69:0] BIASES =
        Gen == pnm_stream_pkg::GEN_CENTRED ? pnm_stream_pkg::CENTRED_BIAS[70*Cut +: 70] :
        Gen == pnm_stream_pkg::GEN_SOBOL   ? pnm_stream_pkg::SOBOL_BIAS[70*Cut +: 70] :
        Gen == pnm_stream_pkg::GEN_LFSR    ? pnm_stream_pkg::LFSR_BIAS[70*Cut +: 70] :
                                             pnm_stream_pkg::UNARY_BIAS[70*Cut +: 70];
    localparam logic [27:0] FULL_OFFSETS =
        Gen == pnm_stream_pkg::GEN_SOBOL   ? pnm_stream_pkg::SOBOL_FULL_OFFSET :
        Gen == pnm_stream_pkg::GEN_LFSR    ? pnm_stream_pkg::LFSR_FULL_OFFSET :
                                             pnm_stream_pkg::UNARY_FULL_OFFSET;
    localparam logic [69:0] FULL_BIASES =
        Gen == pnm_stream_pkg::GEN_SOBOL   ? pnm_stream_pkg::SOBOL_FULL_BIAS :
        Gen == pnm_stream_pkg::GEN_LFSR    ? pnm_stream_pkg::LFSR_FULL_BIAS :
                                             pnm_stream_pkg::UNARY_FULL_BIAS;

    logic [24:0] cfg_q;
    assign cfg_o = cfg_q;

    always_ff @(posedge clk_i) begin : p_look_up
        logic [3:0] log, offset;
        logic [2:0] at;
        logic [9:0] bias;
        if (!rst_ni) begin
            cfg_q <= {10'd0, 9'd0, 4'd2, 2'd2};
        end else if (en_i) begin
            log = log_i < 4'd2 || log_i > 4'd8 ? 4'd2 : log_i;
            at = log[2:0] - 3'd2;
            offset = kind_i == 2'd1 ? FULL_OFFSETS[4*at +: 4] : OFFSETS[4*at +: 4];
            bias = kind_i == 2'd1 ? FULL_BIASES[10*at +: 10] : BIASES[10*at +: 10];
            cfg_q <= {bias, 9'd255 - {offset, 5'd0}, log, kind_i};
        end
    end
endmodule
