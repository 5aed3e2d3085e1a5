// float32 addition after IEEE 754: to nearest, ties to even, subnormals kept, overflow to infinity; an exact
// zero sum is +0 unless both operands are -0; NaN operands and infinity minus infinity give 7FC00000.
//
// Three stages, each under its own enable: sum_o three enabled cycles after a_i and b_i, one sum a cycle.
// All logic stands inside the enabled registers: a cell at rest costs nothing in simulation.
module mr_fp32_add (
    input  logic        clk_i,
    input  logic [2:0]  en_i,
    input  logic [31:0] a_i,
    input  logic [31:0] b_i,
    output logic [31:0] sum_o
);
    // significands with three bits below them: guard, round and sticky
    logic [26:0] large_q, small_q;
    logic [27:0] total_q;
    logic [7:0]  exp1_q, exp2_q;
    logic        minus_q, sign1_q, sign2_q, inf1_q, inf2_q, nan1_q, nan2_q, zero1_q, zero2_q;
    logic [31:0] sum_q;
    assign sum_o = sum_q;

    always_ff @(posedge clk_i) begin : p_align
        logic [31:0] a, b; // |a| >= |b|
        logic [7:0]  ea, eb, by;
        logic [26:0] sig, shifted;
        if (en_i[0]) begin
            a = a_i;
            b = b_i;
            if (a_i[30:0] < b_i[30:0]) begin
                a = b_i;
                b = a_i;
            end
            ea = a[30:23] == 8'd0 ? 8'd1 : a[30:23];
            eb = b[30:23] == 8'd0 ? 8'd1 : b[30:23];
            by = ea - eb;
            sig = {b[30:23] != 8'd0, b[22:0], 3'b0};
            shifted = by > 8'd27 ? 27'd0 : sig >> by[4:0];
            large_q <= {a[30:23] != 8'd0, a[22:0], 3'b0};
            small_q <= shifted | {26'b0, sig != '0 && (by > 8'd27 || shifted << by[4:0] != sig)};
            exp1_q  <= ea;
            minus_q <= a[31] ^ b[31];
            sign1_q <= a[31];
            zero1_q <= a[31] && b[31]; // sign of an exact zero
            inf1_q  <= a[30:0] == 31'h7F80_0000;
            nan1_q  <= a[30:0] > 31'h7F80_0000 || (b[30:0] == 31'h7F80_0000 && (a[31] ^ b[31]));
        end
    end

    always_ff @(posedge clk_i) begin
        if (en_i[1]) begin
            total_q <= minus_q ? {1'b0, large_q} - {1'b0, small_q} : {1'b0, large_q} + {1'b0, small_q};
            exp2_q  <= exp1_q;
            sign2_q <= sign1_q;
            zero2_q <= zero1_q;
            inf2_q  <= inf1_q;
            nan2_q  <= nan1_q;
        end
    end

    always_ff @(posedge clk_i) begin : p_round
        logic [27:0] s;
        logic [8:0]  exp, room; // room: how far the exponent can go down
        logic [31:0] mag;
        if (en_i[2]) begin
            s = total_q;
            exp = {1'b0, exp2_q};
            if (s[27]) begin
                s = {1'b0, s[27:2], s[1] | s[0]};
                exp = exp + 9'd1;
            end else begin
                room = exp - 9'd1;
                if (s[26:11] == '0 && room >= 9'd16) begin s = s << 16; room = room - 9'd16; end
                if (s[26:19] == '0 && room >= 9'd8) begin s = s << 8; room = room - 9'd8; end
                if (s[26:23] == '0 && room >= 9'd4) begin s = s << 4; room = room - 9'd4; end
                if (s[26:25] == '0 && room >= 9'd2) begin s = s << 2; room = room - 9'd2; end
                if (!s[26] && room >= 9'd1) begin s = s << 1; room = room - 9'd1; end
                exp = room + 9'd1;
            end
            // the hidden bit adds the one by which a normal number's exponent field differs; bit 26 is free
            // of it in a subnormal, whose exp is 1
            mag = {8'b0, s[26:3]} + {exp - 9'd1, 23'b0} + {31'b0, s[2] && (s[1:0] != 2'd0 || s[3])};
            if (mag[31:23] >= 9'h0FF || inf2_q) mag = 32'h7F80_0000;
            if (nan2_q) sum_q <= 32'h7FC0_0000;
            else if (total_q == '0) sum_q <= {zero2_q, 31'b0};
            else sum_q <= {sign2_q, mag[30:0]};
        end
    end
endmodule
