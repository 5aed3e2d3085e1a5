// A board wrapper with nothing behind it, to test what is around the NIC: frames from the network go to
// the host, frames from the host to network port 0. A frame of EtherType 0xDEAD breaks an assertion, one of
// 0xBEEF silences the registers for good. Latency 0; the counter reads as its index, commands end at once.
/* verilator lint_off UNUSEDSIGNAL */ // most of a port is not looked at here
module nic_kernel (
    input  logic         ap_clk,
    input  logic         ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */
    output logic         interrupt,  // the name the board tools expect
    /* verilator lint_on SYMRSVDWORD */
    output logic         idle,
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
    output logic [3:0]   m_axi_gmem_awid,
    output logic [63:0]  m_axi_gmem_awaddr,
    output logic [7:0]   m_axi_gmem_awlen,
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
    output logic         m_axi_gmem_arvalid,
    input  logic         m_axi_gmem_arready,
    input  logic [3:0]   m_axi_gmem_rid,
    input  logic [511:0] m_axi_gmem_rdata,
    input  logic [1:0]   m_axi_gmem_rresp,
    input  logic         m_axi_gmem_rlast,
    input  logic         m_axi_gmem_rvalid,
    output logic         m_axi_gmem_rready,
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
  assign interrupt = 1'b0;
  assign idle = !s_axis_net0_tvalid && !s_axis_host_tvalid && !s_axis_net1_tvalid;

  assign m_axis_host_tdata = s_axis_net0_tdata;
  assign m_axis_host_tkeep = s_axis_net0_tkeep;
  assign m_axis_host_tlast = s_axis_net0_tlast;
  assign m_axis_host_tvalid = s_axis_net0_tvalid;
  assign s_axis_net0_tready = m_axis_host_tready;
  assign m_axis_net0_tdata = s_axis_host_tdata;
  assign m_axis_net0_tkeep = s_axis_host_tkeep;
  assign m_axis_net0_tlast = s_axis_host_tlast;
  assign m_axis_net0_tvalid = s_axis_host_tvalid;
  assign s_axis_host_tready = m_axis_net0_tready;
  assign m_axis_net1_tdata = s_axis_net1_tdata;
  assign m_axis_net1_tkeep = s_axis_net1_tkeep;
  assign m_axis_net1_tlast = s_axis_net1_tlast;
  assign m_axis_net1_tvalid = s_axis_net1_tvalid;
  assign s_axis_net1_tready = m_axis_net1_tready;
  assign m_axis_event_tdata = '0;
  assign m_axis_event_tkeep = '0;
  assign m_axis_event_tlast = 1'b0;
  assign m_axis_event_tvalid = 1'b0;

  assign {m_axi_gmem_awid, m_axi_gmem_awaddr, m_axi_gmem_awlen, m_axi_gmem_awvalid} = '0;
  assign {m_axi_gmem_wdata, m_axi_gmem_wstrb, m_axi_gmem_wlast, m_axi_gmem_wvalid} = '0;
  assign {m_axi_gmem_arid, m_axi_gmem_araddr, m_axi_gmem_arlen, m_axi_gmem_arvalid} = '0;
  assign m_axi_gmem_bready = 1'b1;
  assign m_axi_gmem_rready = 1'b1;

  // EtherType: bytes 12 and 13 of a frame's first beat
  logic        first_q, silent_q;
  logic [15:0] type_in;
  assign type_in = {s_axis_net0_tdata[103:96], s_axis_net0_tdata[111:104]};

  logic        bvalid_q, rvalid_q;
  logic [31:0] sel_q, rdata_q;
  assign s_axi_control_awready = !bvalid_q && s_axi_control_wvalid && !silent_q;
  assign s_axi_control_wready = !bvalid_q && s_axi_control_awvalid && !silent_q;
  assign s_axi_control_arready = !rvalid_q && !silent_q;
  assign s_axi_control_bvalid = bvalid_q;
  assign s_axi_control_rvalid = rvalid_q;
  assign s_axi_control_rdata = rdata_q;
  assign s_axi_control_bresp = 2'd0;
  assign s_axi_control_rresp = 2'd0;

  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) begin
      first_q <= 1'b1;
      silent_q <= 1'b0;
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
      sel_q <= '0;
      rdata_q <= '0;
    end else begin
      if (s_axis_net0_tvalid && s_axis_net0_tready) first_q <= s_axis_net0_tlast;
      if (s_axis_net0_tvalid && first_q && type_in == 16'hBEEF) silent_q <= 1'b1;
      if (s_axi_control_awvalid && s_axi_control_awready) begin
        bvalid_q <= 1'b1;
        if (s_axi_control_awaddr == 12'h0D0) sel_q <= s_axi_control_wdata;
      end else if (s_axi_control_bready) bvalid_q <= 1'b0;
      if (s_axi_control_arvalid && s_axi_control_arready) begin
        rvalid_q <= 1'b1;
        case (s_axi_control_araddr)
          12'h000: rdata_q <= 32'h6;       // a command has ended
          12'h0D8: rdata_q <= sel_q;       // the counter that was chosen
          default: rdata_q <= 32'd0;
        endcase
      end else if (s_axi_control_rready) rvalid_q <= 1'b0;
      assert (!(s_axis_net0_tvalid && first_q && type_in == 16'hDEAD));
    end
  end
endmodule
