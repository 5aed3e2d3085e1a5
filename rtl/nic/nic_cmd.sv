// Executes table descriptors: one from the register window, or a list from memory.
//
// A command begins with ap_start_i; ap_ready_o and ap_done_o pulse together when its last descriptor has
// been taken by the tables, or at the first one that cannot be executed: error_o says why and error_index_o
// which (nic_desc_pkg's CMD_*); those before it have taken effect. upd_valid_o offers a descriptor that is
// known to fit its table, upd_ready_i takes it between two frames. The OPTIONS descriptor's fields are kept
// here and change in the cycle after it was taken. A descriptor a cycle, memory and tables permitting.
module nic_cmd #(
    parameter int unsigned DirSlotBits = 19,
    parameter int unsigned PageBits    = 20
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         ap_start_i,
    output logic         ap_ready_o,
    output logic         ap_done_o,
    output logic         ap_idle_o,
    input  logic         mode_memory_i,
    input  logic [31:0]  count_i,
    input  logic [63:0]  addr_i,
    input  logic [511:0] desc_i,
    output logic [7:0]   error_o,
    output logic [31:0]  error_index_o,
    output logic         upd_valid_o,
    input  logic         upd_ready_i,
    output logic [511:0] upd_desc_o,
    output logic [63:0]  araddr_o,
    output logic [7:0]   arlen_o,
    output logic         arvalid_o,
    input  logic         arready_i,
    input  logic [511:0] rdata_i,
    input  logic [1:0]   rresp_i,
    input  logic         rlast_i,
    input  logic         rvalid_i,
    output logic         rready_o,
    output logic [7:0]   opt_rank_o,
    output logic         opt_chain_o,
    output logic [31:0]  opt_rto_o,
    output logic [31:0]  opt_slot_timeout_o,
    output logic [63:0]  opt_kv_base_o
);
  typedef enum logic [2:0] {Idle, Window, Ask, List, Drain, Done} state_e;
  state_e state_q, state_d;

  logic [31:0]  index_q, index_d, error_index_q, error_index_d;
  logic [7:0]   error_q, error_d, problem;
  logic         rd_valid, rd_ready, m_valid, m_ready, m_last, m_err, clear, take, offered_q, unused_idle;
  logic [511:0] m_data, desc;
  logic [63:0]  unused_keep;

  // between commands there is no clock
  logic clk;
  mr_clk_gate u_gate (.clk_i, .en_i(!rst_ni || ap_start_i || !ap_idle_o), .clk_o(clk));

  mr_axi_rd #(.LenWidth(38), .MaxBurst(16), .MaxOutstanding(2), .Buffer(32)) u_rd (
    .clk_i(clk), .rst_ni, .clear_i(clear), .idle_o(unused_idle), .err_o(m_err), .cmd_valid_i(rd_valid),
    .cmd_ready_o(rd_ready), .cmd_addr_i(addr_i), .cmd_len_i({count_i, 6'd0}), .valid_o(m_valid), .ready_i(m_ready),
    .data_o(m_data), .keep_o(unused_keep), .last_o(m_last), .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rdata_i,
    .rresp_i, .rlast_i, .rvalid_i, .rready_o
  );

  // ---- does a descriptor fit its table? ----
  /* verilator lint_off UNUSEDSIGNAL */ // bits that no check looks at
  function automatic logic [7:0] problem_of(input logic [511:0] d);
    logic        bad;
    logic [33:0] pages;
    logic [7:0]  count;
    count = d[nic_desc_pkg::D_JOB_COUNT_LSB+:8];
    pages = '0;
    bad   = 1'b0;
    case (d[7:0])
      nic_desc_pkg::DESC_NODE: bad = 1'b0;
      nic_desc_pkg::DESC_JOB:
      bad = d[nic_desc_pkg::D_JOB_ROW_LSB+:8] >= 8'(nic_pkg::JOBS)
          || (d[nic_desc_pkg::D_JOB_VALID_LSB] && (count == 8'd0 || count > 8'd32 || d[nic_desc_pkg::D_JOB_ROOT_LSB+:8] >= count));
      nic_desc_pkg::DESC_DIR: begin
        pages = {2'b0, d[nic_desc_pkg::D_DIR_PAGE_LSB+:32]}
            + 34'(({2'b0, d[nic_desc_pkg::D_DIR_BYTES_LSB+:32]} + 34'd4095) >> 12);
        bad = d[nic_desc_pkg::D_DIR_SLOT_LSB+:32] >> DirSlotBits != '0
            || (d[nic_desc_pkg::D_DIR_VALID_LSB] && (d[nic_desc_pkg::D_DIR_OWNER_LSB+:8] >= 8'd32 || pages > 34'(1 << PageBits)));
      end
      nic_desc_pkg::DESC_VALID: begin
        pages = {2'b0, d[nic_desc_pkg::D_VALID_PAGE_LSB+:32]} + {2'b0, d[nic_desc_pkg::D_VALID_COUNT_LSB+:32]};
        bad = pages > 34'(1 << PageBits);
      end
      nic_desc_pkg::DESC_OPTIONS: bad = d[nic_desc_pkg::D_OPTIONS_KV_BASE_LSB+:12] != '0;
      default: bad = 1'b1;
    endcase
    problem_of = !bad ? nic_desc_pkg::CMD_OK
        : d[7:0] == 8'd0 || d[7:0] > nic_desc_pkg::DESC_OPTIONS ? nic_desc_pkg::CMD_TYPE : nic_desc_pkg::CMD_FIELD;
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  assign desc       = state_q == Window ? desc_i : m_data;
  // an error is known before its own word is here; what has been offered was good
  always_comb begin
    problem = nic_desc_pkg::CMD_OK;
    if (state_q == List && m_err && !offered_q) problem = nic_desc_pkg::CMD_MEMORY;
    else if (state_q == Window || (state_q == List && m_valid)) problem = problem_of(desc);
  end
  assign upd_desc_o = desc;
  assign upd_valid_o = (state_q == Window || (state_q == List && m_valid)) && problem == nic_desc_pkg::CMD_OK;
  assign take       = upd_valid_o && upd_ready_i;
  assign rd_valid   = state_q == Ask;
  assign m_ready    = state_q == Drain || (state_q == List && take);

  always_comb begin
    state_d       = state_q;
    index_d       = index_q;
    error_d       = error_q;
    error_index_d = error_index_q;
    clear         = 1'b0;
    case (state_q)
      Idle:
      if (ap_start_i) begin
        index_d       = '0;
        error_d       = nic_desc_pkg::CMD_OK;
        error_index_d = '0;
        clear         = 1'b1;
        state_d       = !mode_memory_i ? Window : count_i == '0 ? Done : Ask;
      end
      Window:
      if (problem != nic_desc_pkg::CMD_OK) begin
        error_d = problem;
        state_d = Done;
      end else if (take) state_d = Done;
      Ask: if (rd_ready) state_d = List;
      List:
      if (m_valid) begin
        if (problem != nic_desc_pkg::CMD_OK) begin
          error_d       = problem;
          error_index_d = index_q;
          state_d       = Drain;
        end else if (take) begin
          index_d = index_q + 1'b1;
          if (m_last) state_d = Done;
        end
      end
      Drain: if (m_valid && m_last) state_d = Done;
      Done: state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  assign ap_ready_o    = state_q == Done;
  assign ap_done_o     = state_q == Done;
  assign ap_idle_o     = state_q == Idle;
  assign error_o       = error_q;
  assign error_index_o = error_index_q;

  logic options;
  assign options = take && desc[7:0] == nic_desc_pkg::DESC_OPTIONS;
  always_ff @(posedge clk) begin
    index_q   <= index_d;
    offered_q <= rst_ni && upd_valid_o && !upd_ready_i;
    if (!rst_ni) begin
      state_q            <= Idle;
      error_q            <= nic_desc_pkg::CMD_OK;
      error_index_q      <= '0;
      opt_rank_o         <= '0;
      opt_chain_o        <= 1'b0;
      opt_rto_o          <= 32'd8192;
      opt_slot_timeout_o <= '0;
      opt_kv_base_o      <= '0;
    end else begin
      state_q       <= state_d;
      error_q       <= error_d;
      error_index_q <= error_index_d;
      if (options) begin
        opt_rank_o         <= desc[nic_desc_pkg::D_OPTIONS_RANK_LSB+:8];
        opt_chain_o        <= desc[nic_desc_pkg::D_OPTIONS_CHAIN_LSB];
        opt_rto_o          <= desc[nic_desc_pkg::D_OPTIONS_RTO_LSB+:32];
        opt_slot_timeout_o <= desc[nic_desc_pkg::D_OPTIONS_SLOT_TIMEOUT_LSB+:32];
        opt_kv_base_o      <= desc[nic_desc_pkg::D_OPTIONS_KV_BASE_LSB+:64];
      end
    end
  end

  mr_stream_check #(.Width(512)) u_check_update (
    .clk_i(clk), .rst_ni, .valid_i(upd_valid_o), .ready_i(upd_ready_i), .data_i(upd_desc_o), .keep_i(1'b1), .last_i(1'b0)
  );
endmodule
