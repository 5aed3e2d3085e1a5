// The completed keys: the exact set of the last 4,096 that were inserted.
//
// A ring of entries {key, chain, next}, and for each chain (hash of the key) the place of its newest
// entry. The ring overwrites its oldest entry and nothing else is ever removed: a link is followed only to
// an older entry of the same chain, which a link to an overwritten place never is. So neither memory needs
// a reset.
// A look-up answers 3 cycles after it was accepted, one more for each further entry of its chain (half an
// entry on average), in order, without back pressure; one a cycle while nothing is longer. An insert keeps
// look-ups out for 2 cycles; those accepted after it see it.
module nic_late #(
    parameter int unsigned Bits = 12 // log2 of the keys remembered
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         lk_valid_i,
    output logic         lk_ready_o,
    input  logic [111:0] lk_key_i, // {job, request, layer, head0, block}
    output logic         rsp_valid_o,
    output logic         rsp_seen_o,
    input  logic         ins_valid_i,
    output logic         ins_ready_o,
    input  logic [111:0] ins_key_i
);
  localparam int unsigned ChainW = nic_desc_pkg::LATE_HASH_W;
  localparam int unsigned KeyW   = 112;
  localparam int unsigned EntryW = KeyW + ChainW + Bits;

  logic [EntryW-1:0] entries [0:2**Bits-1];
  logic [Bits-1:0]   heads [0:2**ChainW-1];
  logic [Bits-1:0]   next_q;  // where the next key goes
  logic              full_q;

  // ---- accept: the chain's head is read ----
  logic              a_lookup, a_insert, b_lookup_q, b_insert_q, hold;
  logic [KeyW-1:0]   a_key, b_key_q;
  logic [ChainW-1:0] a_chain, b_chain_q;
  logic [Bits-1:0]   b_head_q;

  assign lk_ready_o  = !hold && !b_insert_q && !ins_valid_i;
  assign ins_ready_o = !hold && !b_insert_q;
  assign a_lookup    = lk_valid_i && lk_ready_o;
  assign a_insert    = ins_valid_i && ins_ready_o;
  assign a_key       = ins_valid_i ? ins_key_i : lk_key_i;
  always_comb begin
    a_chain = '0;
    if (lk_valid_i || ins_valid_i) a_chain = nic_desc_pkg::late_hash(a_key);
  end

  // ---- follow the chain ----
  logic              c_lookup_q, hop, known, match;
  logic [KeyW-1:0]   c_key_q, e_key;
  logic [ChainW-1:0] c_chain_q, e_chain;
  logic [Bits-1:0]   c_place_q, e_next, rd_place, age, next_age;
  logic [EntryW-1:0] entry_q;
  logic              rsp_valid_q, rsp_seen_q;

  assign {e_key, e_chain, e_next} = entry_q;
  assign age      = next_q - 1'b1 - c_place_q;
  assign next_age = next_q - 1'b1 - e_next;
  assign known    = full_q || c_place_q < next_q;
  assign match    = known && e_key == c_key_q;
  assign hop      = c_lookup_q && known && !match && e_chain == c_chain_q && next_age > age;
  assign hold     = hop && b_lookup_q; // the memory's port is the chain's
  assign rd_place = hop ? e_next : b_head_q;

  always_ff @(posedge clk_i) begin
    if (a_lookup || a_insert) begin
      b_key_q   <= a_key;
      b_chain_q <= a_chain;
      b_head_q  <= heads[a_chain];
    end
    if (b_insert_q) begin
      entries[next_q]  <= {b_key_q, b_chain_q, b_head_q};
      heads[b_chain_q] <= next_q;
    end
    if (hop || b_lookup_q) entry_q <= entries[rd_place];
    if (hop) c_place_q <= e_next;
    else if (b_lookup_q) begin
      c_key_q   <= b_key_q;
      c_chain_q <= b_chain_q;
      c_place_q <= b_head_q;
    end
    rsp_seen_q <= match;
    if (!rst_ni) begin
      b_lookup_q  <= 1'b0;
      b_insert_q  <= 1'b0;
      c_lookup_q  <= 1'b0;
      rsp_valid_q <= 1'b0;
      next_q      <= '0;
      full_q      <= 1'b0;
    end else begin
      b_lookup_q  <= a_lookup || hold;
      b_insert_q  <= a_insert;
      c_lookup_q  <= hop || b_lookup_q;
      rsp_valid_q <= c_lookup_q && !hop;
      if (b_insert_q) begin
        next_q <= next_q + 1'b1;
        full_q <= full_q || &next_q;
      end
    end
  end

  assign rsp_valid_o = rsp_valid_q;
  assign rsp_seen_o  = rsp_seen_q;

  mr_stream_check #(.Width(KeyW)) u_check_lookup (
    .clk_i, .rst_ni, .valid_i(lk_valid_i), .ready_i(lk_ready_o), .data_i(lk_key_i), .keep_i(1'b1), .last_i(1'b0)
  );
  mr_stream_check #(.Width(KeyW)) u_check_insert (
    .clk_i, .rst_ni, .valid_i(ins_valid_i), .ready_i(ins_ready_o), .data_i(ins_key_i), .keep_i(1'b1), .last_i(1'b0)
  );
endmodule
