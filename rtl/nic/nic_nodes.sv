// Node table: where each rank is found, and which port leads to a MAC address.
//
// 256 rows. Reads of a row and the search for a MAC address answer in the next cycle and stay until the
// next question; own_o is the row of the own rank, one cycle after a change. A NODE descriptor writes a row
// in the cycle of upd_fire_i. After a reset no row is valid. The search compares all rows at once; of
// several valid rows with one address the lowest answers.
module nic_nodes (
    input  logic                       clk_i,
    input  logic                       rst_ni,
    input  logic                       upd_fire_i,
    /* verilator lint_off UNUSEDSIGNAL */ // other descriptors' bits
    input  logic [511:0]               upd_desc_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [7:0]                 own_rank_i,
    output nic_pkg::node_t             own_o,
    input  logic [4*8-1:0]             rd_rank_i, // 0..2 the transmit ports, 3 the dispatcher
    output logic [4*nic_pkg::NODE_W-1:0] rd_node_o,
    input  logic                       mac_en_i,
    input  logic [47:0]                mac_i,
    output logic                       mac_hit_o,
    output logic                       mac_netport_o,
    output logic [7:0]                 mac_rank_o
);
  localparam int unsigned NODES = nic_pkg::NODES;
  localparam int unsigned RowW  = nic_pkg::NODE_W - 1; // without valid

  logic [RowW-1:0]            rows [0:NODES-1];
  logic [47:0]                macs [0:NODES-1];
  logic [NODES-1:0]           valid_q, netport_q;
  logic [5*nic_pkg::NODE_W-1:0] read_q;
  logic                       hit_q, found_port_q, write;
  logic [7:0]                 found_q, rank;
  logic [47:0]                mac;

  assign write = upd_fire_i && upd_desc_i[7:0] == nic_desc_pkg::DESC_NODE;
  assign rank  = upd_desc_i[nic_desc_pkg::D_NODE_RANK_LSB+:8];
  assign mac   = upd_desc_i[nic_desc_pkg::D_NODE_MAC_LSB+:48];

  always_ff @(posedge clk_i) begin
    if (write) begin
      rows[rank] <= {mac, upd_desc_i[nic_desc_pkg::D_NODE_IP_LSB+:32], upd_desc_i[nic_desc_pkg::D_NODE_PORT_LSB+:16],
                     upd_desc_i[nic_desc_pkg::D_NODE_NETPORT_LSB]};
      macs[rank]      <= mac;
      netport_q[rank] <= upd_desc_i[nic_desc_pkg::D_NODE_NETPORT_LSB];
    end
    if (!rst_ni) valid_q <= '0;
    else if (write) valid_q[rank] <= upd_desc_i[nic_desc_pkg::D_NODE_VALID_LSB];
  end

  // ---- rows by rank: the readers', and the own one ----
  for (genvar k = 0; k < 5; k++) begin : gen_read
    logic [7:0] at;
    if (k == 4) begin : gen_own
      assign at = own_rank_i;
    end else begin : gen_reader
      assign at = rd_rank_i[8*k+:8];
    end
    always_ff @(posedge clk_i) begin
      read_q[nic_pkg::NODE_W*k+:nic_pkg::NODE_W] <= {valid_q[at] && rst_ni, rows[at]};
    end
  end
  assign rd_node_o = read_q[4*nic_pkg::NODE_W-1:0];
  assign own_o     = read_q[4*nic_pkg::NODE_W+:nic_pkg::NODE_W];

  // ---- the row of a MAC address ----
  logic [NODES-1:0] same;
  always_comb begin
    same = '0;
    if (mac_en_i) for (int unsigned r = 0; r < NODES; r++) same[r] = valid_q[r] && macs[r] == mac_i;
  end
  always_ff @(posedge clk_i) begin
    if (mac_en_i) begin
      hit_q        <= same != '0;
      found_q      <= '0;
      found_port_q <= 1'b0;
      for (int unsigned r = 0; r < NODES; r++)
        if (same[NODES-1-r]) begin
          found_q      <= 8'(NODES - 1 - r);
          found_port_q <= netport_q[NODES-1-r];
        end
    end
  end
  assign mac_hit_o     = hit_q;
  assign mac_rank_o    = found_q;
  assign mac_netport_o = found_port_q;
endmodule
