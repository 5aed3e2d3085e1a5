// The near-memory unit behind its registers: four groups, the rows they send each other, one memory port.
//
// A job is a list of descriptors a group. prog_* are stable from ap_start_i to ap_ready_o, which comes with
// ap_done_o once every list has ended and every write has been answered. The first error stops all groups after
// what they have begun; a job that waits for ever is ended by reset.
module pnm_top #(
    parameter int unsigned Gen        = pnm_stream_pkg::GEN_CENTRED,
    parameter int unsigned Cut        = 0,
    parameter int unsigned StreamBits = 16
) (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          ap_start_i,
    output logic          ap_ready_o,
    output logic          ap_done_o,
    output logic          ap_idle_o,
    input  logic [255:0]  prog_addr_i,   // a group each
    input  logic [127:0]  prog_count_i,
    output logic [31:0]   error_o,
    output logic [31:0]   error_group_o,
    output logic [31:0]   error_index_o,
    output logic [2:0]    status_o,      // {refresh, nonfinite, range}
    output logic [447:0]  counters_o,    // seven of 64 bits, in the order of the registers
    output logic [2559:0] group_counters_o,
    // AXI4, 512 bits, INCR bursts of full width
    output logic [3:0]    awid_o,
    output logic [63:0]   awaddr_o,
    output logic [7:0]    awlen_o,
    output logic          awvalid_o,
    input  logic          awready_i,
    output logic [511:0]  wdata_o,
    output logic [63:0]   wstrb_o,
    output logic          wlast_o,
    output logic          wvalid_o,
    input  logic          wready_i,
    input  logic [3:0]    bid_i,
    input  logic [1:0]    bresp_i,
    input  logic          bvalid_i,
    output logic          bready_o,
    output logic [3:0]    arid_o,
    output logic [63:0]   araddr_o,
    output logic [7:0]    arlen_o,
    output logic          arvalid_o,
    input  logic          arready_i,
    input  logic [3:0]    rid_i,
    input  logic [511:0]  rdata_i,
    input  logic [1:0]    rresp_i,
    input  logic          rlast_i,
    input  logic          rvalid_i,
    output logic          rready_o
);
  localparam int unsigned G = pnm_desc_pkg::GROUPS;

  // ---- life of a job ---------------------------------------------------------------------------------
  typedef enum logic [1:0] {Idle, Start, Run, Done} state_e;
  state_e       state_q;
  logic         start, stop;
  logic [G-1:0] done, send_valid, send_ready, recv_ready, recv_full, at_barrier, go_on, range, nonfinite, late, busy, product;
  logic [G-1:0] out, stall_in, stall_out;
  logic [8*G-1:0]  error;
  logic [32*G-1:0] index;
  assign start      = state_q == Start;
  assign ap_idle_o  = state_q == Idle;
  assign ap_done_o  = state_q == Done;
  assign ap_ready_o = state_q == Done;
  assign stop       = error != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else
      unique case (state_q)
        Idle: if (ap_start_i) state_q <= Start;
        Start: state_q <= Run;
        Run: if (&done) state_q <= Done;
        default: state_q <= Idle;
      endcase
  end

  // ---- rows between groups: one a cycle --------------------------------------------------------------
  logic [2*G-1:0]   send_group;
  logic [529*G-1:0] send;
  logic [531*G-1:0] offers;
  logic             bus_valid, bus_ready, unused_last;
  logic [530:0]     bus;
  logic [1:0]       unused_index;
  for (genvar g = 0; g < G; g++) begin : g_offer
    assign offers[531*g+:531] = {send_group[2*g+:2], send[529*g+:529]};
  end
  mr_arb #(.Count(G), .Width(531)) u_bus (
      .clk_i, .rst_ni, .valid_i(send_valid), .ready_o(send_ready), .data_i(offers), .last_i('1),
      .valid_o(bus_valid), .ready_i(bus_ready), .data_o(bus), .last_o(unused_last), .index_o(unused_index));
  assign bus_ready = recv_ready[bus[530:529]];

  // ---- barriers --------------------------------------------------------------------------------------
  logic [4*G-1:0] barrier;
  always_comb begin
    for (int unsigned g = 0; g < G; g++) begin
      go_on[g] = at_barrier[g];
      for (int unsigned k = 0; k < G; k++)
        if (barrier[4*g+k] && (!at_barrier[k] || barrier[4*k+:4] != barrier[4*g+:4])) go_on[g] = 1'b0;
    end
  end

  // ---- groups ----------------------------------------------------------------------------------------
  logic [2*G-1:0]   in;
  logic [640*G-1:0] counters;
  logic [22*G-1:0]  dram_cmds;  // watched by the simulator
  logic [128*G-1:0] g_araddr;
  logic [16*G-1:0]  g_arlen;
  logic [2*G-1:0]   g_arvalid, g_arready, g_rvalid, g_rready;
  logic [511:0]     g_rdata;
  logic [1:0]       g_rresp, g_bresp;
  logic             g_rlast;
  logic [64*G-1:0]  g_awaddr, g_wstrb;
  logic [8*G-1:0]   g_awlen;
  logic [G-1:0]     g_awvalid, g_awready, g_wlast, g_wvalid, g_wready, g_bvalid, g_bready;
  logic [512*G-1:0] g_wdata;
  for (genvar g = 0; g < G; g++) begin : g_group
    pnm_group #(.Gen(Gen), .Cut(Cut), .StreamBits(StreamBits)) u_group (
        .clk_i, .rst_ni, .timing_i(pnm_dram_pkg::TIMING_M3D), .own_i(4'(1 << g)),
        .start_i(start), .base_i(prog_addr_i[64*g+:64]), .count_i(prog_count_i[32*g+:32]), .stop_i(stop),
        .done_o(done[g]), .error_o(error[8*g+:8]), .index_o(index[32*g+:32]),
        .send_valid_o(send_valid[g]), .send_ready_i(send_ready[g]), .send_full_i(recv_full[bus[530:529]]), .send_group_o(send_group[2*g+:2]),
        .send_o(send[529*g+:529]),
        .recv_valid_i(bus_valid && bus[530:529] == 2'(g)), .recv_ready_o(recv_ready[g]), .recv_full_o(recv_full[g]),
        .recv_i(bus[528:0]),
        .at_barrier_o(at_barrier[g]), .barrier_o(barrier[4*g+:4]), .release_i(go_on[g]),
        .range_o(range[g]), .nonfinite_o(nonfinite[g]), .late_o(late[g]), .busy_o(busy[g]), .product_o(product[g]),
        .in_o(in[2*g+:2]), .out_o(out[g]), .stall_in_o(stall_in[g]), .stall_out_o(stall_out[g]),
        .counters_o(counters[640*g+:640]), .cmd_o(dram_cmds[22*g+:22]),
        .araddr_o(g_araddr[128*g+:128]), .arlen_o(g_arlen[16*g+:16]), .arvalid_o(g_arvalid[2*g+:2]),
        .arready_i(g_arready[2*g+:2]), .rdata_i(g_rdata), .rresp_i(g_rresp), .rlast_i(g_rlast),
        .rvalid_i(g_rvalid[2*g+:2]), .rready_o(g_rready[2*g+:2]),
        .awaddr_o(g_awaddr[64*g+:64]), .awlen_o(g_awlen[8*g+:8]), .awvalid_o(g_awvalid[g]), .awready_i(g_awready[g]),
        .wdata_o(g_wdata[512*g+:512]), .wstrb_o(g_wstrb[64*g+:64]), .wlast_o(g_wlast[g]), .wvalid_o(g_wvalid[g]),
        .wready_i(g_wready[g]), .bresp_i(g_bresp), .bvalid_i(g_bvalid[g]), .bready_o(g_bready[g]));
  end
  logic unused_cmds;
  assign unused_cmds = ^dram_cmds;

  // ---- memory port -----------------------------------------------------------------------------------
  mr_axi_rd_arb #(.Count(2 * G)) u_rd_arb (
      .clk_i, .rst_ni, .araddr_i(g_araddr), .arlen_i(g_arlen), .arvalid_i(g_arvalid), .arready_o(g_arready),
      .rdata_o(g_rdata), .rresp_o(g_rresp), .rlast_o(g_rlast), .rvalid_o(g_rvalid), .rready_i(g_rready),
      .arid_o, .araddr_o, .arlen_o, .arvalid_o, .arready_i, .rid_i, .rdata_i, .rresp_i, .rlast_i, .rvalid_i, .rready_o);
  mr_axi_wr_arb #(.Count(G)) u_wr_arb (
      .clk_i, .rst_ni, .awaddr_i(g_awaddr), .awlen_i(g_awlen), .awvalid_i(g_awvalid), .awready_o(g_awready),
      .wdata_i(g_wdata), .wstrb_i(g_wstrb), .wlast_i(g_wlast), .wvalid_i(g_wvalid), .wready_o(g_wready),
      .bresp_o(g_bresp), .bvalid_o(g_bvalid), .bready_i(g_bready),
      .awid_o, .awaddr_o, .awlen_o, .awvalid_o, .awready_i, .wdata_o, .wstrb_o, .wlast_o, .wvalid_o, .wready_i,
      .bid_i, .bresp_i, .bvalid_i, .bready_o);

  // ---- how it ended, and counters --------------------------------------------------------------------
  logic [31:0] error_q, error_group_q, error_index_q;
  logic [2:0]  status_q;
  logic [63:0] cycles_q, busy_q, stall_in_q, stall_out_q, in_q, out_q, products_q;
  logic [2:0]  outs, products;
  logic [3:0]  ins;
  always_comb begin
    ins = '0;
    outs = '0;
    products = '0;
    for (int unsigned g = 0; g < G; g++) begin
      ins = ins + {2'd0, in[2*g+:2]};
      outs = outs + {2'd0, out[g]};
      products = products + {2'd0, product[g]};
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || start) begin
      error_q       <= '0;
      error_group_q <= '0;
      error_index_q <= '0;
      status_q      <= '0;
      cycles_q      <= '0;
      busy_q        <= '0;
      stall_in_q    <= '0;
      stall_out_q   <= '0;
      in_q          <= '0;
      out_q         <= '0;
      products_q    <= '0;
    end else if (state_q == Run) begin
      cycles_q <= cycles_q + 64'd1;
      if (|busy) busy_q <= busy_q + 64'd1;
      if (|stall_in) stall_in_q <= stall_in_q + 64'd1;
      if (|stall_out) stall_out_q <= stall_out_q + 64'd1;
      if (ins != 4'd0) in_q <= in_q + {54'd0, ins, 6'd0};
      if (outs != 3'd0) out_q <= out_q + {55'd0, outs, 6'd0};
      if (products != 3'd0) products_q <= products_q + {55'd0, products, 6'd0};
      status_q <= status_q | {|late, |nonfinite, |range};
      if (stop && error_q == '0)
        for (int unsigned g = 0; g < G; g++)
          if (error[8*(G-1-g)+:8] != '0) begin // the lowest group where more than one failed at once
            error_q       <= {24'd0, error[8*(G-1-g)+:8]};
            error_group_q <= 32'(G - 1 - g);
            error_index_q <= index[32*(G-1-g)+:32];
          end
    end
  end
  assign error_o          = error_q;
  assign error_group_o    = error_group_q;
  assign error_index_o    = error_index_q;
  assign status_o         = status_q;
  assign counters_o       = {products_q, out_q, in_q, stall_out_q, stall_in_q, busy_q, cycles_q};
  assign group_counters_o = counters;
endmodule
