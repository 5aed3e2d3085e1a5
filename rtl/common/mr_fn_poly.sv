// Evaluates a segment's quadratic: (c0 + floor((c1 + floor(c2 u / 2^17)) u / 2^17) + 32) >> 6.
//
// Three stages, each under its own enable; y_o three enabled cycles after the coefficients, one value a
// cycle. The same formula as mr_fn_poly in models/golden/fn.h. All logic stands inside the
// enabled registers.
module mr_fn_poly (
    input  logic               clk_i,
    input  logic        [2:0]  en_i,
    input  logic        [32:0] c0_i,
    input  logic signed [26:0] c1_i,
    input  logic signed [19:0] c2_i,
    input  logic        [16:0] u_i,
    output logic        [26:0] y_o
);
    logic        [32:0] c0_q;
    logic signed [33:0] sum_q;
    logic signed [27:0] p1_q;
    logic        [16:0] u_q;
    logic        [26:0] y_q;
    assign y_o = y_q;

    /* verilator lint_off UNUSEDSIGNAL */ // the bits rounded away
    always_ff @(posedge clk_i) begin : p_poly
        logic signed [37:0] square;
        logic signed [45:0] slope;
        logic        [33:0] total;
        if (en_i[0]) begin
            square = 38'(c2_i) * $signed({21'b0, u_i});
            p1_q <= 28'(c1_i) + 28'(square >>> 17);
            c0_q <= c0_i;
            u_q  <= u_i;
        end
        if (en_i[1]) begin
            slope = 46'(p1_q) * $signed({29'b0, u_q});
            sum_q <= $signed({1'b0, c0_q}) + 34'(slope >>> 17);
        end
        if (en_i[2]) begin
            total = $unsigned(sum_q) + 34'd32;
            y_q <= total[32:6];
        end
    end
    /* verilator lint_on UNUSEDSIGNAL */
endmodule
