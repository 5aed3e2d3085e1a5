// Random numbers of 8 bits from a shift register: x^24+x^23+x^22+x^17+1 (Which = 0) or x^23+x^18+1 (Which = 1).
//
// Numbers of them a cycle, combinational from the state: one number is one leap of eight steps, so that no two
// share bits, and both periods stay 2^n - 1. restart_i: the numbers begin at the seed again; else they follow on
// those of the last cycle with en_i. A lane's seed is the user's, moved on by Lane * 2^12 numbers, so that equal
// seeds at different positions do not give the same numbers near to each other.
//
// A seed of all zeros or all ones becomes the default one and raises fault_o until a good seed is written; so does
// an all-zero state met at any time, for whatever reason. seed_we_i wins over the shift: the cycle after, the
// numbers begin at the new seed.
module pnm_lfsr #(
    parameter int unsigned Which   = 0,
    parameter int unsigned Lane    = 0,
    parameter int unsigned Numbers = 16
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic                   seed_we_i,
    input  logic [23:0]            seed_i,
    input  logic                   en_i,
    input  logic                   restart_i,
    output logic [8*Numbers-1:0]   numbers_o,
    output logic                   fault_o
);
    localparam logic [23:0] MASK = Which == 0 ? 24'hFFFFFF : 24'h7FFFFF;
    localparam logic [23:0] DEFAULT = Which == 0 ? pnm_stream_pkg::LFSR_A_SEED : pnm_stream_pkg::LFSR_B_SEED;
    localparam logic [24*24*8-1:0] JUMP =
        Which == 0 ? pnm_stream_pkg::LFSR_A_JUMP : pnm_stream_pkg::LFSR_B_JUMP;

    // the state Lane * 2^12 numbers on
    function automatic logic [23:0] jump(input logic [23:0] from);
        logic [23:0] to;
        jump = from;
        for (int unsigned i = 0; i < 8; i++) begin
            to = 24'd0;
            for (int unsigned j = 0; j < 24; j++) if (jump[j]) to = to ^ JUMP[24*(24*i+j) +: 24];
            if (Lane[i]) jump = to;
        end
    endfunction

    function automatic logic [23:0] leap(input logic [23:0] s);
        logic [7:0] bits;
        bits = Which == 0 ? s[23:16] ^ s[22:15] ^ s[21:14] ^ s[16:9] : s[22:15] ^ s[17:10];
        leap = {s[15:0], bits} & MASK;
    endfunction

    logic [23:0] seed_q, state_q, state_d;
    logic        bad_seed_q, lost_q, lost;
    always_comb begin : p_numbers
        logic [23:0] s;
        s = restart_i ? seed_q : state_q;
        lost = s == 24'd0;
        if (lost) s = jump(DEFAULT);
        numbers_o = '0;
        for (int unsigned i = 0; i < Numbers; i++) begin
            s = leap(s);
            numbers_o[8*i +: 8] = s[7:0];
        end
        state_d = s;
    end

    always_ff @(posedge clk_i) begin : p_seed
        logic [23:0] s;
        logic bad;
        if (!rst_ni) begin
            seed_q <= jump(DEFAULT);
            state_q <= jump(DEFAULT);
            bad_seed_q <= 1'b0;
            lost_q <= 1'b0;
        end else if (seed_we_i) begin
            bad = (seed_i & MASK) == 24'd0 || (seed_i & MASK) == MASK;
            s = jump(bad ? DEFAULT : seed_i & MASK);
            seed_q <= s;
            state_q <= s;
            bad_seed_q <= bad;
            lost_q <= 1'b0;
        end else if (en_i) begin
            state_q <= state_d;
            lost_q <= lost_q || lost;
        end
    end
    assign fault_o = bad_seed_q || lost_q;
endmodule
