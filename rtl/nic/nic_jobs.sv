// Job table: who takes part in a job, and which member a rank is.
//
// 32 rows. A look-up by job number and rank answers in the next cycle and stays until the next one; so do
// reads of the rank of a row's member (0..2 the transmit ports). Whether the own rank is a
// member is found at the look-up, so it never disagrees with the options. A JOB descriptor writes a row in
// the cycle of upd_fire_i. After a reset no row is valid. Of several valid rows with one job number the
// lowest answers.
module nic_jobs (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  logic            upd_fire_i,
    /* verilator lint_off UNUSEDSIGNAL */ // other descriptors' bits
    input  logic [511:0]    upd_desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [7:0]      own_rank_i,
    input  logic            lk_en_i,
    input  logic [15:0]     lk_job_i,
    input  logic [7:0]      lk_shard_i,
    output logic            lk_hit_o,
    output logic [4:0]      lk_row_o,
    output nic_pkg::job_t   lk_job_o,
    output logic            lk_member_o, // the rank is a member
    output logic [4:0]      lk_index_o,  // which one
    input  logic [3*5-1:0]  tx_row_i,
    input  logic [3*5-1:0]  tx_index_i,
    output logic [3*8-1:0]  tx_rank_o
);
  localparam int unsigned JOBS = nic_pkg::JOBS;
  localparam int unsigned RowW = 6 + 256 + 5 + 32;

  logic [RowW-1:0] rows [0:JOBS-1]; // {count, ranks, root, port1}
  logic [15:0]     jobs [0:JOBS-1];
  logic [JOBS-1:0] valid_q;
  logic            write;
  logic [4:0]      row;

  assign write = upd_fire_i && upd_desc_i[7:0] == nic_desc_pkg::DESC_JOB;
  assign row   = upd_desc_i[nic_desc_pkg::D_JOB_ROW_LSB+:5];

  always_ff @(posedge clk_i) begin
    if (write) begin
      rows[row] <= {upd_desc_i[nic_desc_pkg::D_JOB_COUNT_LSB+:6], upd_desc_i[nic_desc_pkg::D_JOB_RANKS_LSB+:256],
                    upd_desc_i[nic_desc_pkg::D_JOB_ROOT_LSB+:5], upd_desc_i[nic_desc_pkg::D_JOB_PORT1_LSB+:32]};
      jobs[row] <= upd_desc_i[nic_desc_pkg::D_JOB_JOB_LSB+:16];
    end
    if (!rst_ni) valid_q <= '0;
    else if (write) valid_q[row] <= upd_desc_i[nic_desc_pkg::D_JOB_VALID_LSB];
  end

  // {found, index} of a rank among the first count ranks of a row
  function automatic logic [5:0] index_of(input logic [255:0] ranks, input logic [5:0] count, input logic [7:0] rank);
    index_of = '0;
    for (int unsigned m = 0; m < 32; m++)
      if (6'(m) < count && ranks[8*m+:8] == rank) index_of = {1'b1, 5'(m)};
  endfunction

  // ---- by job number ----
  logic            hit, hit_q;
  logic [4:0]      at, at_q;
  logic [RowW-1:0] found_q;
  logic [15:0]     job_q;
  logic [7:0]      shard_q;
  logic [5:0]      member, self, member_q, self_q;
  logic            fresh_q;

  always_comb begin
    hit = 1'b0;
    at  = '0;
    if (lk_en_i) for (int unsigned r = 0; r < JOBS; r++)
      if (valid_q[JOBS-1-r] && jobs[JOBS-1-r] == lk_job_i) begin
        hit = 1'b1;
        at  = 5'(JOBS - 1 - r);
      end
  end
  always_ff @(posedge clk_i) begin
    if (lk_en_i) begin
      hit_q   <= hit;
      at_q    <= at;
      found_q <= rows[at];
      job_q   <= lk_job_i;
      shard_q <= lk_shard_i;
    end
  end
  // in the cycle after the look-up, and kept
  always_comb begin
    member = member_q;
    self   = self_q;
    if (fresh_q) begin
      member = index_of(found_q[37+:256], found_q[293+:6], shard_q);
      self   = index_of(found_q[37+:256], found_q[293+:6], own_rank_i);
    end
  end
  always_ff @(posedge clk_i) begin
    member_q <= member;
    self_q   <= self;
    fresh_q  <= rst_ni && lk_en_i;
  end
  assign lk_hit_o    = hit_q;
  assign lk_row_o    = at_q;
  assign lk_member_o = hit_q && member[5];
  assign lk_index_o  = member[4:0];
  assign lk_job_o    = {hit_q, job_q, found_q[298:32], self, found_q[31:0]};

  // ---- ranks for the transmit ports: a memory of their own ----
  for (genvar k = 0; k < 3; k++) begin : gen_tx
    logic [255:0] ranks [0:JOBS-1];
    logic [255:0] read;
    logic [7:0]   rank_q;
    assign read = ranks[tx_row_i[5*k+:5]];
    always_ff @(posedge clk_i) begin
      if (write) ranks[row] <= upd_desc_i[nic_desc_pkg::D_JOB_RANKS_LSB+:256];
      rank_q <= read[8*tx_index_i[5*k+:5]+:8];
    end
    assign tx_rank_o[8*k+:8] = rank_q;
  end
endmodule
