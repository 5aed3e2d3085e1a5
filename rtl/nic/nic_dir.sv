// KV directory: which members hold the bytes of a (job, layer, block), where, and at which epoch.
//
// Two tables of 2^BucketBits buckets of two places; a key stands in one of four places (nic_desc_pkg's
// hash functions), which the host chooses (host/nic/tables.h). Both tables are read in step, first the
// places 0, then the places 1: a look-up every 2 cycles, rsp_valid_o exactly 3 cycles after the look-up
// was accepted, in order, without back pressure.
// A DIR descriptor writes one place. upd_ready_o is high when no look-up is under way; the update occupies
// the tables for 2 more cycles, in which no look-up is accepted, so each look-up sees all of it or nothing.
// After a reset every place is empty; that takes 2^(BucketBits + 1) / 512 cycles without look-ups.
// With 17 bucket bits there are 524,288 places: 262,144 entries are half of them.
module nic_dir #(
    parameter int unsigned BucketBits = 8 // 17 in nic_top
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                upd_fire_i,
    output logic                upd_ready_o,
    /* verilator lint_off UNUSEDSIGNAL */ // other descriptors' bits, and slots beyond small tables
    input  logic [511:0]        upd_desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic                lk_valid_i,
    output logic                lk_ready_o,
    input  logic [63:0]         lk_key_i, // {job, layer, block}
    output logic                rsp_valid_o,
    output nic_pkg::dir_t       rsp_o
);
  localparam int unsigned KeyW   = 64;
  localparam int unsigned ValueW = nic_pkg::DIR_W - 1; // dir_t without hit
  localparam int unsigned EntryW = KeyW + ValueW;
  localparam int unsigned BitsW  = BucketBits >= 10 ? 512 : 64;

  if (BucketBits > nic_desc_pkg::DIR_HASH_W) begin : gen_too_large
    nic_dir_has_more_bucket_bits_than_its_hash u_error ();
  end

  logic                  busy1_q, busy2_q, rsp_valid_q, found_q, rsp_hit_q;
  logic [KeyW-1:0]       key_q;
  logic [ValueW-1:0]     value_q, rsp_value_q;
  logic [2*BucketBits-1:0] bucket, bucket_q;
  logic [1:0]            ready, match;
  logic [2*ValueW-1:0]   value;
  logic                  accept, upd1_q, upd2_q;
  /* verilator lint_off UNUSEDSIGNAL */ // a small table uses the lower bits
  logic [nic_desc_pkg::DIR_HASH_W-1:0] hash0, hash1;
  /* verilator lint_on UNUSEDSIGNAL */

  always_comb begin
    {hash1, hash0} = '0;
    if (lk_valid_i) {hash1, hash0} = {nic_desc_pkg::dir_hash1(lk_key_i), nic_desc_pkg::dir_hash0(lk_key_i)};
  end
  assign bucket = {hash1[BucketBits-1:0], hash0[BucketBits-1:0]};

  assign lk_ready_o = !busy1_q && !upd1_q && !upd2_q && ready == 2'b11;
  assign accept     = lk_valid_i && lk_ready_o;

  // ---- the update: the entry is written at once, its valid bit read and then written ----
  logic                  upd_valid_q, upd_table_q, upd_place_q;
  logic [BucketBits-1:0] upd_bucket_q;
  logic [EntryW-1:0]     upd_entry_q;
  logic                  is_dir;
  assign is_dir      = upd_fire_i && upd_desc_i[7:0] == nic_desc_pkg::DESC_DIR;
  assign upd_ready_o = lk_ready_o && !busy2_q && !lk_valid_i;

  always_ff @(posedge clk_i) begin
    if (is_dir) begin
      upd_valid_q <= upd_desc_i[nic_desc_pkg::D_DIR_VALID_LSB];
      {upd_table_q, upd_bucket_q, upd_place_q} <= upd_desc_i[nic_desc_pkg::D_DIR_SLOT_LSB+:BucketBits+2];
      upd_entry_q <= {
        upd_desc_i[nic_desc_pkg::D_DIR_JOB_LSB+:16], upd_desc_i[nic_desc_pkg::D_DIR_LAYER_LSB+:16],
        upd_desc_i[nic_desc_pkg::D_DIR_BLOCK_LSB+:32], upd_desc_i[nic_desc_pkg::D_DIR_OWNER_LSB+:5],
        upd_desc_i[nic_desc_pkg::D_DIR_NAMED_LSB+:32], upd_desc_i[nic_desc_pkg::D_DIR_EPOCH_LSB+:32],
        upd_desc_i[nic_desc_pkg::D_DIR_BYTES_LSB+:32], upd_desc_i[nic_desc_pkg::D_DIR_PAGE_LSB+:24]
      };
    end
    upd1_q <= rst_ni && is_dir;
    upd2_q <= rst_ni && upd1_q;
  end

  // ---- the tables ----
  for (genvar t = 0; t < 2; t++) begin : gen_table
    logic [EntryW-1:0]     mem [0:2**(BucketBits+1)-1];
    logic [EntryW-1:0]     entry_q;
    logic [1:0]            valid, valid_d;
    logic [BucketBits-1:0] rd_bucket;
    logic                  mine;

    assign mine      = upd_table_q == 1'(t);
    assign rd_bucket = busy1_q ? bucket_q[t*BucketBits+:BucketBits] : bucket[t*BucketBits+:BucketBits];
    always_comb begin
      valid_d = valid;
      valid_d[upd_place_q] = upd_valid_q;
    end
    nic_bits #(.AddrBits(BucketBits), .Group(2), .Width(BitsW)) u_valid (
      .clk_i, .rst_ni, .ready_o(ready[t]), .rd_en_i(accept || upd1_q),
      .rd_addr_i(upd1_q ? upd_bucket_q : bucket[t*BucketBits+:BucketBits]), .rd_data_o(valid),
      .wr_en_i(upd2_q && mine), .wr_data_i(valid_d)
    );
    always_ff @(posedge clk_i) begin
      if (accept || busy1_q) entry_q <= mem[{rd_bucket, busy1_q}];
      if (upd1_q && mine) mem[{upd_bucket_q, upd_place_q}] <= upd_entry_q;
    end
    // place 0 in the cycle after the look-up was accepted, place 1 in the one after that
    assign match[t] = entry_q[EntryW-1-:KeyW] == key_q && valid[busy2_q];
    assign value[t*ValueW+:ValueW] = entry_q[ValueW-1:0];
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      key_q    <= lk_key_i;
      bucket_q <= bucket;
    end
    if (busy1_q) begin
      found_q <= match != 2'b00;
      value_q <= match[1] ? value[2*ValueW-1:ValueW] : value[ValueW-1:0];
    end
    if (busy2_q) begin
      rsp_hit_q   <= match != 2'b00 || found_q;
      rsp_value_q <= match[1] ? value[2*ValueW-1:ValueW] : match[0] ? value[ValueW-1:0] : value_q;
    end
    busy1_q     <= rst_ni && accept;
    busy2_q     <= rst_ni && busy1_q;
    rsp_valid_q <= rst_ni && busy2_q;
    if (rst_ni) update_between_look_ups: assert (!upd_fire_i || upd_ready_o);
  end

  assign rsp_valid_o = rsp_valid_q;
  assign rsp_o       = {rsp_hit_q, rsp_value_q};
endmodule
