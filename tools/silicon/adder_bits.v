// A row of full adders as single ones.
(* techmap_celltype = "$fa" *)
module silicon_row (A, B, C, X, Y);
  parameter WIDTH = 1;
  input [WIDTH-1:0] A, B, C;
  output [WIDTH-1:0] X, Y;
  genvar i;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : gen_bit
      \$fa #(.WIDTH(1)) bit_i (.A(A[i]), .B(B[i]), .C(C[i]), .X(X[i]), .Y(Y[i]));
    end
  endgenerate
endmodule
