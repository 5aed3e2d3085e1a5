// A memory of single bits, Group of them at an address, that is cleared by a reset.
//
// Block memory cannot be reset; this one is walked in words of Width bits, 2^AddrBits * Group / Width
// cycles after a reset, while ready_o is low and accesses have no effect. A read is there in the next
// cycle and stays until the next read. A write changes the group that was read last, so a change is a
// read and then a write; the next read of the same word comes after the write.
module nic_bits #(
    parameter int unsigned AddrBits = 8,
    parameter int unsigned Group    = 1, // bits an address, a power of two
    parameter int unsigned Width    = 64 // bits a memory word, a power of two, fewer than there are in all
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    output logic                ready_o,
    input  logic                rd_en_i,
    input  logic [AddrBits-1:0] rd_addr_i,
    output logic [Group-1:0]    rd_data_o,
    input  logic                wr_en_i,
    input  logic [Group-1:0]    wr_data_i
);
  localparam int unsigned SelBits = $clog2(Width / Group);
  localparam int unsigned WordBits = AddrBits - SelBits;

  logic [Width-1:0]    mem [0:2**WordBits-1];
  logic [Width-1:0]    word_q;
  logic [WordBits-1:0] addr_q;
  logic [SelBits-1:0]  sel_q;
  logic [WordBits:0]   clear_q;

  assign ready_o   = clear_q[WordBits];
  assign rd_data_o = word_q[sel_q*Group+:Group];

  function automatic logic [Width-1:0] changed(input logic [Width-1:0] word, input logic [SelBits-1:0] sel,
                                               input logic [Group-1:0] data);
    changed = word;
    changed[sel*Group+:Group] = data;
  endfunction

  always_ff @(posedge clk_i) begin
    if (rd_en_i) begin
      word_q <= mem[rd_addr_i[AddrBits-1:SelBits]];
      addr_q <= rd_addr_i[AddrBits-1:SelBits];
      sel_q  <= rd_addr_i[SelBits-1:0];
    end
    if (!ready_o) mem[clear_q[WordBits-1:0]] <= '0;
    else if (wr_en_i) mem[addr_q] <= changed(word_q, sel_q, wr_data_i);
    if (!rst_ni) clear_q <= '0;
    else if (!ready_o) clear_q <= clear_q + 1'b1;
  end
endmodule
