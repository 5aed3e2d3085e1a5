// A full adder of yosys's own library as one of the cell library.
(* techmap_celltype = "$fa" *)
module silicon_fa (A, B, C, X, Y);
  parameter WIDTH = 1;
  input A, B, C;
  output X, Y;
  FAX1 _TECHMAP_REPLACE_ (.A(A), .B(B), .C(C), .YC(X), .YS(Y));
endmodule
