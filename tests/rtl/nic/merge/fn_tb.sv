// The three function units side by side, eight arguments a cycle: 8 x_i .. 8 x_i + 7.
module fn_tb (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic [3:0]   en_i,
    input  logic [20:0]  x_i,
    output logic [215:0] exp2_o,
    output logic [215:0] recip_o,
    output logic [215:0] log2_o
);
    logic unused_rst;
    assign unused_rst = rst_ni;
    for (genvar k = 0; k < 8; k++) begin : g_lane
        mr_fn #(.Function(0)) u_exp2 (.clk_i, .en_i, .x_i({x_i, 3'(k)}), .y_o(exp2_o[27*k+:27]));
        mr_fn #(.Function(1)) u_recip (.clk_i, .en_i, .x_i({x_i, 3'(k)}), .y_o(recip_o[27*k+:27]));
        mr_fn #(.Function(2)) u_log2 (.clk_i, .en_i, .x_i({x_i, 3'(k)}), .y_o(log2_o[27*k+:27]));
    end
endmodule
