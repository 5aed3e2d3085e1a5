// Assembles the beats of a result as they stand in a frame, keeps them for the transmit ports, and sums
// them for the UDP checksum.
//
// In: what stage 24 of the engine holds (stat_i, vec_i: a beat of a slot's last contribution). The result
// lies in beats slot * 144 + 0.. of the result memory, read like nic_ram. done_o, ready_o and sum_o say three
// cycles after its last beat was in stage 24 that all of it is there; clear_i takes ready back. Bytes beyond
// the last value and lses beyond the last head are zero.
module nic_merge_out (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 stat_i,
    input  logic                 vec_i,
    /* verilator lint_off UNUSEDSIGNAL */ // a stage needs only some fields
    input  nic_merge_pkg::beat_t beat_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [255:0]         lse_i,
    input  logic [1023:0]        code_i,
    output logic                 done_o,
    output logic [5:0]           done_slot_o,
    output logic [63:0]          ready_o,
    input  logic                 clear_i,
    input  logic [5:0]           clear_slot_i,
    output logic [1023:0]        sum_o,        // 16 bits a slot
    input  logic                 rd_en_i,
    input  logic [5:0]           rd_slot_i,
    input  logic [7:0]           rd_beat_i,
    output logic [511:0]         rd_data_o
);
  localparam int unsigned Words = nic_pkg::SLOTS * nic_pkg::BUF_BEATS;

  function automatic logic [13:0] address(input logic [5:0] slot, input logic [7:0] index);
    address = {1'b0, slot, 7'b0} + {4'b0, slot, 4'b0} + {6'b0, index}; // 144 beats a slot
  endfunction

  // ---- 24: bytes of the frame; an lse beat is made of two beats of statistics ----
  logic [511:0] data_q;
  logic [255:0] half_q;
  logic         wide, beat_q, write_q, sof_q, eof_q;
  logic [5:0]   slot_q;
  logic [7:0]   index_q;
  assign wide = beat_i.dtype == nic_merge_pkg::DT_FP32 || beat_i.dtype == nic_merge_pkg::DT_INT32;

  always_ff @(posedge clk_i) begin : p_assemble
    logic [255:0] lse;
    if (stat_i) begin
      for (int unsigned h = 0; h < 8; h++) begin
        lse[32*h+:32] = {lse_i[32*h+:8], lse_i[32*h+8+:8], lse_i[32*h+16+:8], lse_i[32*h+24+:8]};
        if (6'(h) >= beat_i.count) lse[32*h+:32] = 32'd0;
      end
      half_q <= lse;
      data_q <= beat_i.index[0] ? {lse, half_q} : {256'd0, lse};
    end else if (vec_i && wide) begin
      for (int unsigned i = 0; i < 16; i++)
        data_q[32*i+:32] <= 6'(i) >= beat_i.count ? 32'd0
            : {code_i[32*i+:8], code_i[32*i+8+:8], code_i[32*i+16+:8], code_i[32*i+24+:8]};
    end else if (vec_i) begin
      for (int unsigned i = 0; i < 32; i++)
        data_q[16*i+:16] <= 6'(i) >= beat_i.count ? 16'd0 : {code_i[32*i+:8], code_i[32*i+8+:8]};
    end
    if (stat_i || vec_i) begin
      slot_q  <= beat_i.slot;
      index_q <= beat_i.res_beat;
      sof_q   <= beat_i.sof;
      eof_q   <= beat_i.eof;
    end
    beat_q  <= rst_ni && (stat_i || vec_i);
    write_q <= rst_ni && (stat_i || vec_i) && beat_i.res_write;
  end

  nic_ram #(.Words(Words)) u_results (
      .clk_i, .wr_en_i(write_q), .wr_addr_i(address(slot_q, index_q)), .wr_data_i(data_q), .rd_en_i,
      .rd_addr_i(address(rd_slot_i, rd_beat_i)), .rd_data_o
  );

  // ---- 25: the beat's sum in 32-bit words, 26: the result's; ones' complement does not mind byte order ----
  logic [35:0]   words_q;
  logic [15:0]   total_q, total;
  logic          beat2_q, sof2_q, eof2_q, done_q;
  logic [5:0]    slot2_q, done_slot_q;
  logic [63:0]   ready_q;
  logic [1023:0] sums_q;
  always_comb begin : p_total
    logic [17:0] wide_sum;
    logic [16:0] folded;
    wide_sum = {2'b0, words_q[15:0]} + {2'b0, words_q[31:16]} + {14'b0, words_q[35:32]}
             + {2'b0, sof2_q ? 16'd0 : total_q};
    folded = {1'b0, wide_sum[15:0]} + {15'b0, wide_sum[17:16]};
    total = folded[15:0] + {15'b0, folded[16]};
  end
  always_ff @(posedge clk_i) begin : p_sum
    logic [35:0] words;
    if (beat_q) begin
      words = 36'd0;
      if (write_q) for (int unsigned i = 0; i < 16; i++) words = words + {4'b0, data_q[32*i+:32]};
      words_q <= words;
      slot2_q <= slot_q;
      sof2_q  <= sof_q;
      eof2_q  <= eof_q;
    end
    if (beat2_q) begin
      total_q <= total;
      if (eof2_q) sums_q[16*slot2_q+:16] <= {total[7:0], total[15:8]};
      done_slot_q <= slot2_q;
    end
    beat2_q <= rst_ni && beat_q;
    done_q  <= rst_ni && beat2_q && eof2_q;
    if (!rst_ni) begin
      ready_q <= '0;
    end else begin
      if (clear_i) ready_q[clear_slot_i] <= 1'b0;
      if (beat2_q && eof2_q) ready_q[slot2_q] <= 1'b1;
    end
  end
  assign done_o = done_q;
  assign done_slot_o = done_slot_q;
  assign ready_o = ready_q;
  assign sum_o = sums_q;
endmodule
