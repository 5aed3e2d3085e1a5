// The product of two 8-bit significands alone, between registers: what published energies of a multiplication mean.
module silicon_product (
    input  logic        clk_i,
    input  logic [7:0]  a_i,
    input  logic [7:0]  b_i,
    output logic [15:0] p_o
);
    logic [7:0] a_q, b_q;
    always_ff @(posedge clk_i) begin
        a_q <= a_i;
        b_q <= b_i;
        p_o <= 16'(a_q) * 16'(b_q);
    end
endmodule
