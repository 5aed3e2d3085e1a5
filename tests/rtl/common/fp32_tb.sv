// The float32 cells side by side.
module fp32_tb (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic        [7:0]  en_i,
    input  logic        [31:0] a_i,
    input  logic        [31:0] b_i,
    input  logic        [26:0] w_i,
    input  logic signed [9:0]  shift_i,
    output logic        [31:0] sum_o,
    output logic        [31:0] scaled_o,
    output logic        [31:0] prod_o
);
    logic unused_rst;
    assign unused_rst = rst_ni;
    mr_fp32_add u_add (.clk_i, .en_i(en_i[2:0]), .a_i, .b_i, .sum_o);
    mr_fp32_scale u_scale (.clk_i, .en_i(en_i[4:3]), .x_i(a_i), .w_i, .shift_i, .y_o(scaled_o));
    mr_fp32_mul u_mul (.clk_i, .en_i(en_i[7:5]), .a_i, .b_i, .prod_o);
endmodule
