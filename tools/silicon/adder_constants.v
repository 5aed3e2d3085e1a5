// A full adder with an input that is constant, or two that are one, is no full adder.
(* techmap_celltype = "$fa" *)
module silicon_less (A, B, C, X, Y);
  parameter WIDTH = 1;
  parameter _TECHMAP_CONSTMSK_A_ = 0;
  parameter _TECHMAP_CONSTMSK_B_ = 0;
  parameter _TECHMAP_CONSTMSK_C_ = 0;
  parameter _TECHMAP_BITS_CONNMAP_ = 1;
  parameter [_TECHMAP_BITS_CONNMAP_-1:0] _TECHMAP_CONNMAP_A_ = 0;
  parameter [_TECHMAP_BITS_CONNMAP_-1:0] _TECHMAP_CONNMAP_B_ = 0;
  parameter [_TECHMAP_BITS_CONNMAP_-1:0] _TECHMAP_CONNMAP_C_ = 0;
  input A, B, C;
  output X, Y;
  wire _TECHMAP_FAIL_ = !(_TECHMAP_CONSTMSK_A_ || _TECHMAP_CONSTMSK_B_ || _TECHMAP_CONSTMSK_C_
      || _TECHMAP_CONNMAP_A_ == _TECHMAP_CONNMAP_B_ || _TECHMAP_CONNMAP_B_ == _TECHMAP_CONNMAP_C_
      || _TECHMAP_CONNMAP_A_ == _TECHMAP_CONNMAP_C_);
  assign Y = A ^ B ^ C;
  assign X = (A & B) | (C & (A | B));
endmodule
