// Board wrapper of the compute-NIC: a standard RTL kernel (ap_ctrl_hs).
//
// s_axi_control holds the registers of docs/nic-registers.md; a command executes table descriptors, frames
// need none. m_axi_gmem is the KV memory and holds lists of descriptors. net0 and net1 are the network
// ports, host the own host's; a frame is a packet on a stream. s_axis_net0 and s_axis_net1 are always
// ready. m_axis_event carries 64 bytes an event. idle: no frame is on its way through. Every byte kept on
// an output stream is data: there are no null beats. ap_rst_n is synchronous.
module nic_kernel #(
    parameter int unsigned NetBufs    = nic_pkg::NET_BUFS,
    parameter int unsigned HostBufs   = nic_pkg::HOST_BUFS,
    parameter int unsigned BucketBits = 17, // of the directory: 2^(bits + 2) places
    parameter int unsigned PageBits   = 20  // of the KV memory: 2^bits pages of 4,096 bytes
) (
    input  logic         ap_clk,
    input  logic         ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */
    output logic         interrupt,  // the name the board tools expect
    /* verilator lint_on SYMRSVDWORD */
    output logic         idle,
    // control
    input  logic [11:0]  s_axi_control_awaddr,
    input  logic         s_axi_control_awvalid,
    output logic         s_axi_control_awready,
    input  logic [31:0]  s_axi_control_wdata,
    input  logic [3:0]   s_axi_control_wstrb,
    input  logic         s_axi_control_wvalid,
    output logic         s_axi_control_wready,
    output logic [1:0]   s_axi_control_bresp,
    output logic         s_axi_control_bvalid,
    input  logic         s_axi_control_bready,
    input  logic [11:0]  s_axi_control_araddr,
    input  logic         s_axi_control_arvalid,
    output logic         s_axi_control_arready,
    output logic [31:0]  s_axi_control_rdata,
    output logic [1:0]   s_axi_control_rresp,
    output logic         s_axi_control_rvalid,
    input  logic         s_axi_control_rready,
    // memory
    output logic [3:0]   m_axi_gmem_awid,
    output logic [63:0]  m_axi_gmem_awaddr,
    output logic [7:0]   m_axi_gmem_awlen,
    output logic [2:0]   m_axi_gmem_awsize,
    output logic [1:0]   m_axi_gmem_awburst,
    output logic         m_axi_gmem_awlock,
    output logic [3:0]   m_axi_gmem_awcache,
    output logic [2:0]   m_axi_gmem_awprot,
    output logic [3:0]   m_axi_gmem_awqos,
    output logic         m_axi_gmem_awvalid,
    input  logic         m_axi_gmem_awready,
    output logic [511:0] m_axi_gmem_wdata,
    output logic [63:0]  m_axi_gmem_wstrb,
    output logic         m_axi_gmem_wlast,
    output logic         m_axi_gmem_wvalid,
    input  logic         m_axi_gmem_wready,
    input  logic [3:0]   m_axi_gmem_bid,
    input  logic [1:0]   m_axi_gmem_bresp,
    input  logic         m_axi_gmem_bvalid,
    output logic         m_axi_gmem_bready,
    output logic [3:0]   m_axi_gmem_arid,
    output logic [63:0]  m_axi_gmem_araddr,
    output logic [7:0]   m_axi_gmem_arlen,
    output logic [2:0]   m_axi_gmem_arsize,
    output logic [1:0]   m_axi_gmem_arburst,
    output logic         m_axi_gmem_arlock,
    output logic [3:0]   m_axi_gmem_arcache,
    output logic [2:0]   m_axi_gmem_arprot,
    output logic [3:0]   m_axi_gmem_arqos,
    output logic         m_axi_gmem_arvalid,
    input  logic         m_axi_gmem_arready,
    input  logic [3:0]   m_axi_gmem_rid,
    input  logic [511:0] m_axi_gmem_rdata,
    input  logic [1:0]   m_axi_gmem_rresp,
    input  logic         m_axi_gmem_rlast,
    input  logic         m_axi_gmem_rvalid,
    output logic         m_axi_gmem_rready,
    // streams
    input  logic [511:0] s_axis_net0_tdata,
    input  logic [63:0]  s_axis_net0_tkeep,
    input  logic         s_axis_net0_tlast,
    input  logic         s_axis_net0_tvalid,
    output logic         s_axis_net0_tready,
    output logic [511:0] m_axis_net0_tdata,
    output logic [63:0]  m_axis_net0_tkeep,
    output logic         m_axis_net0_tlast,
    output logic         m_axis_net0_tvalid,
    input  logic         m_axis_net0_tready,
    input  logic [511:0] s_axis_net1_tdata,
    input  logic [63:0]  s_axis_net1_tkeep,
    input  logic         s_axis_net1_tlast,
    input  logic         s_axis_net1_tvalid,
    output logic         s_axis_net1_tready,
    output logic [511:0] m_axis_net1_tdata,
    output logic [63:0]  m_axis_net1_tkeep,
    output logic         m_axis_net1_tlast,
    output logic         m_axis_net1_tvalid,
    input  logic         m_axis_net1_tready,
    input  logic [511:0] s_axis_host_tdata,
    input  logic [63:0]  s_axis_host_tkeep,
    input  logic         s_axis_host_tlast,
    input  logic         s_axis_host_tvalid,
    output logic         s_axis_host_tready,
    output logic [511:0] m_axis_host_tdata,
    output logic [63:0]  m_axis_host_tkeep,
    output logic         m_axis_host_tlast,
    output logic         m_axis_host_tvalid,
    input  logic         m_axis_host_tready,
    output logic [511:0] m_axis_event_tdata,
    output logic [63:0]  m_axis_event_tkeep,
    output logic         m_axis_event_tlast,
    output logic         m_axis_event_tvalid,
    input  logic         m_axis_event_tready
);
  // full-width incrementing bursts, normal memory, no locks
  assign m_axi_gmem_awsize  = 3'd6;
  assign m_axi_gmem_awburst = 2'b01;
  assign m_axi_gmem_awlock  = 1'b0;
  assign m_axi_gmem_awcache = 4'b0011;
  assign m_axi_gmem_awprot  = 3'b000;
  assign m_axi_gmem_awqos   = 4'd0;
  assign m_axi_gmem_arsize  = 3'd6;
  assign m_axi_gmem_arburst = 2'b01;
  assign m_axi_gmem_arlock  = 1'b0;
  assign m_axi_gmem_arcache = 4'b0011;
  assign m_axi_gmem_arprot  = 3'b000;
  assign m_axi_gmem_arqos   = 4'd0;

  assign m_axi_gmem_awid    = 4'd0;
  assign m_axis_event_tkeep = '1;
  assign m_axis_event_tlast = 1'b1;

  logic         ap_start, ap_ready, ap_done, ap_idle, mode_memory, chain, present, counter_take;
  logic [31:0]  count, counter_sel, error_index, rto, slot_timeout, write_errors, read_errors;
  logic [63:0]  addr, kv_base, cycles, busy, stall_in, stall_out, items_in, items_out, counter;
  logic [511:0] desc;
  logic [7:0]   rank, error;
  logic [25:0]  unused_sel;
  assign unused_sel = counter_sel[31:6];

  nic_regs u_regs (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .awaddr_i(s_axi_control_awaddr),
      .awvalid_i(s_axi_control_awvalid),
      .awready_o(s_axi_control_awready),
      .wdata_i(s_axi_control_wdata),
      .wstrb_i(s_axi_control_wstrb),
      .wvalid_i(s_axi_control_wvalid),
      .wready_o(s_axi_control_wready),
      .bresp_o(s_axi_control_bresp),
      .bvalid_o(s_axi_control_bvalid),
      .bready_i(s_axi_control_bready),
      .araddr_i(s_axi_control_araddr),
      .arvalid_i(s_axi_control_arvalid),
      .arready_o(s_axi_control_arready),
      .rdata_o(s_axi_control_rdata),
      .rresp_o(s_axi_control_rresp),
      .rvalid_o(s_axi_control_rvalid),
      .rready_i(s_axi_control_rready),
      .ap_start_o(ap_start),
      .ap_ready_i(ap_ready),
      .ap_done_i(ap_done),
      .ap_idle_i(ap_idle),
      .interrupt_o(interrupt),
      .mode_memory_o(mode_memory),
      .count_o(count),
      .addr_o(addr),
      .desc0_o(desc[63:0]),
      .desc1_o(desc[127:64]),
      .desc2_o(desc[191:128]),
      .desc3_o(desc[255:192]),
      .desc4_o(desc[319:256]),
      .desc5_o(desc[383:320]),
      .desc6_o(desc[447:384]),
      .desc7_o(desc[511:448]),
      .counter_sel_o(counter_sel),
      .counter_sel_swmod_o(counter_take),
      .error_i({24'd0, error}),
      .error_index_i(error_index),
      .options_rank_i(rank),
      .options_chain_i(chain),
      .options_present_i(present),
      .rto_i(rto),
      .slot_timeout_i(slot_timeout),
      .state_idle_i(idle),
      .kv_base_i(kv_base),
      .cycles_i(cycles),
      .busy_i(busy),
      .stall_in_i(stall_in),
      .stall_out_i(stall_out),
      .items_in_i(items_in),
      .items_out_i(items_out),
      .write_errors_i(write_errors),
      .read_errors_i(read_errors),
      .id_i(32'h3143_494E),
      .map_version_i(32'd1),
      .params_slots_i(8'(nic_pkg::SLOTS)),
      .params_bucket_bits_i(8'(BucketBits)),
      .params_page_bits_i(8'(PageBits)),
      .params_jobs_i(8'(nic_pkg::JOBS)),
      .counter_i(counter)
  );

  logic [2:0] in_ready, out_valid, out_last;
  logic [1535:0] out_data;
  logic [191:0]  out_keep;
  assign s_axis_net0_tready = in_ready[0];
  assign m_axis_net0_tvalid = out_valid[0];
  assign m_axis_net0_tdata = out_data[511:0];
  assign m_axis_net0_tkeep = out_keep[63:0];
  assign m_axis_net0_tlast = out_last[0];
  assign s_axis_net1_tready = in_ready[1];
  assign m_axis_net1_tvalid = out_valid[1];
  assign m_axis_net1_tdata = out_data[1023:512];
  assign m_axis_net1_tkeep = out_keep[127:64];
  assign m_axis_net1_tlast = out_last[1];
  assign s_axis_host_tready = in_ready[2];
  assign m_axis_host_tvalid = out_valid[2];
  assign m_axis_host_tdata = out_data[1535:1024];
  assign m_axis_host_tkeep = out_keep[191:128];
  assign m_axis_host_tlast = out_last[2];

  nic_top #(.NetBufs(NetBufs), .HostBufs(HostBufs), .BucketBits(BucketBits), .PageBits(PageBits)) u_top (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .ap_start_i(ap_start),
      .ap_ready_o(ap_ready),
      .ap_done_o(ap_done),
      .ap_idle_o(ap_idle),
      .mode_memory_i(mode_memory),
      .count_i(count),
      .addr_i(addr),
      .desc_i(desc),
      .error_o(error),
      .error_index_o(error_index),
      .rank_o(rank),
      .chain_o(chain),
      .present_o(present),
      .rto_o(rto),
      .slot_timeout_o(slot_timeout),
      .kv_base_o(kv_base),
      .idle_o(idle),
      .cycles_o(cycles),
      .busy_o(busy),
      .stall_in_o(stall_in),
      .stall_out_o(stall_out),
      .items_in_o(items_in),
      .items_out_o(items_out),
      .write_errors_o(write_errors),
      .read_errors_o(read_errors),
      .counter_sel_i(counter_sel[5:0]),
      .counter_take_i(counter_take),
      .counter_o(counter),
      .in_valid_i({s_axis_host_tvalid, s_axis_net1_tvalid, s_axis_net0_tvalid}),
      .in_ready_o(in_ready),
      .in_data_i({s_axis_host_tdata, s_axis_net1_tdata, s_axis_net0_tdata}),
      .in_keep_i({s_axis_host_tkeep, s_axis_net1_tkeep, s_axis_net0_tkeep}),
      .in_last_i({s_axis_host_tlast, s_axis_net1_tlast, s_axis_net0_tlast}),
      .out_valid_o(out_valid),
      .out_ready_i({m_axis_host_tready, m_axis_net1_tready, m_axis_net0_tready}),
      .out_data_o(out_data),
      .out_keep_o(out_keep),
      .out_last_o(out_last),
      .event_valid_o(m_axis_event_tvalid),
      .event_ready_i(m_axis_event_tready),
      .event_data_o(m_axis_event_tdata),
      .awaddr_o(m_axi_gmem_awaddr),
      .awlen_o(m_axi_gmem_awlen),
      .awvalid_o(m_axi_gmem_awvalid),
      .awready_i(m_axi_gmem_awready),
      .wdata_o(m_axi_gmem_wdata),
      .wstrb_o(m_axi_gmem_wstrb),
      .wlast_o(m_axi_gmem_wlast),
      .wvalid_o(m_axi_gmem_wvalid),
      .wready_i(m_axi_gmem_wready),
      .bresp_i(m_axi_gmem_bresp),
      .bvalid_i(m_axi_gmem_bvalid),
      .bready_o(m_axi_gmem_bready),
      .arid_o(m_axi_gmem_arid),
      .araddr_o(m_axi_gmem_araddr),
      .arlen_o(m_axi_gmem_arlen),
      .arvalid_o(m_axi_gmem_arvalid),
      .arready_i(m_axi_gmem_arready),
      .rid_i(m_axi_gmem_rid),
      .rdata_i(m_axi_gmem_rdata),
      .rresp_i(m_axi_gmem_rresp),
      .rlast_i(m_axi_gmem_rlast),
      .rvalid_i(m_axi_gmem_rvalid),
      .rready_o(m_axi_gmem_rready)
  );

  mr_axi_check u_check_gmem (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .awid_i(m_axi_gmem_awid),
      .awaddr_i(m_axi_gmem_awaddr),
      .awlen_i(m_axi_gmem_awlen),
      .awvalid_i(m_axi_gmem_awvalid),
      .awready_i(m_axi_gmem_awready),
      .wdata_i(m_axi_gmem_wdata),
      .wstrb_i(m_axi_gmem_wstrb),
      .wlast_i(m_axi_gmem_wlast),
      .wvalid_i(m_axi_gmem_wvalid),
      .wready_i(m_axi_gmem_wready),
      .bid_i(m_axi_gmem_bid),
      .bresp_i(m_axi_gmem_bresp),
      .bvalid_i(m_axi_gmem_bvalid),
      .bready_i(m_axi_gmem_bready),
      .arid_i(m_axi_gmem_arid),
      .araddr_i(m_axi_gmem_araddr),
      .arlen_i(m_axi_gmem_arlen),
      .arvalid_i(m_axi_gmem_arvalid),
      .arready_i(m_axi_gmem_arready),
      .rid_i(m_axi_gmem_rid),
      .rdata_i(m_axi_gmem_rdata),
      .rresp_i(m_axi_gmem_rresp),
      .rlast_i(m_axi_gmem_rlast),
      .rvalid_i(m_axi_gmem_rvalid),
      .rready_i(m_axi_gmem_rready)
  );
endmodule
