// Stream cells side by side under one bench: port k of the vectors is cell k, its payload in the low bytes.
module stream_tb (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic [9:0]       valid_i,
    output logic [9:0]       ready_o,
    input  logic [10*64-1:0] data_i,
    input  logic [10*8-1:0]  keep_i,
    input  logic [9:0]       last_i,
    output logic [9:0]       valid_o,
    input  logic [9:0]       ready_i,
    output logic [10*64-1:0] data_o,
    output logic [10*8-1:0]  keep_o,
    output logic [9:0]       last_o,
    output logic [4:0]       fill_o,
    // aligner, 8 bytes wide
    input  logic             a_cmd_valid_i,
    output logic             a_cmd_ready_o,
    input  logic [2:0]       a_src_off_i,
    input  logic [2:0]       a_dst_off_i,
    input  logic [15:0]      a_len_i,
    input  logic             a_valid_i,
    output logic             a_ready_o,
    input  logic [63:0]      a_data_i,
    output logic             a_valid_o,
    input  logic             a_ready_i,
    output logic [63:0]      a_data_o,
    output logic [7:0]       a_strb_o,
    output logic             a_last_o,
    output logic             a_busy_o,
    // arbiter of five
    input  logic [4:0]       r_valid_i,
    output logic [4:0]       r_ready_o,
    input  logic [5*32-1:0]  r_data_i,
    input  logic [4:0]       r_last_i,
    output logic             r_valid_o,
    input  logic             r_ready_i,
    output logic [31:0]      r_data_o,
    output logic             r_last_o,
    output logic [2:0]       r_index_o,
    // burst splitter of a 512 bit port
    input  logic             s_cmd_valid_i,
    output logic             s_cmd_ready_o,
    input  logic [63:0]      s_addr_i,
    input  logic [31:0]      s_len_i,
    output logic             s_valid_o,
    input  logic             s_ready_i,
    output logic [63:0]      s_addr_o,
    output logic [7:0]       s_len_o,
    output logic             s_busy_o,
    // a counter whose reset is forgotten, and its sound twin
    output logic [15:0]      planted_o,
    output logic [15:0]      sound_o
);
    logic [1:0] unused_fill1, unused_fill3;
    logic       unused_fill;
    assign unused_fill = ^{unused_fill1, unused_fill3};

    mr_stream_reg #(.Width(73)) u_reg (
        .clk_i, .rst_ni, .valid_i(valid_i[0]), .ready_o(ready_o[0]),
        .data_i({last_i[0], keep_i[7:0], data_i[63:0]}), .valid_o(valid_o[0]), .ready_i(ready_i[0]),
        .data_o({last_o[0], keep_o[7:0], data_o[63:0]})
    );
    assign unused_fill1[1] = 1'b0;
    mr_fifo #(.Width(73), .Depth(1)) u_fifo1 (
        .clk_i, .rst_ni, .valid_i(valid_i[1]), .ready_o(ready_o[1]),
        .data_i({last_i[1], keep_i[15:8], data_i[127:64]}), .valid_o(valid_o[1]), .ready_i(ready_i[1]),
        .data_o({last_o[1], keep_o[15:8], data_o[127:64]}), .count_o(unused_fill1[0])
    );
    mr_fifo #(.Width(73), .Depth(3)) u_fifo3 (
        .clk_i, .rst_ni, .valid_i(valid_i[2]), .ready_o(ready_o[2]),
        .data_i({last_i[2], keep_i[23:16], data_i[191:128]}), .valid_o(valid_o[2]), .ready_i(ready_i[2]),
        .data_o({last_o[2], keep_o[23:16], data_o[191:128]}), .count_o(unused_fill3)
    );
    mr_fifo #(.Width(73), .Depth(16)) u_fifo16 (
        .clk_i, .rst_ni, .valid_i(valid_i[3]), .ready_o(ready_o[3]),
        .data_i({last_i[3], keep_i[31:24], data_i[255:192]}), .valid_o(valid_o[3]), .ready_i(ready_i[3]),
        .data_o({last_o[3], keep_o[31:24], data_o[255:192]}), .count_o(fill_o)
    );

    // width adapters: cell 4 8->8, 5 2->8, 6 8->2, 7 1->8, 8 8->1, 9 4->8
    for (genvar k = 4; k < 10; k++) begin : gen_width
        localparam int unsigned In  = k == 5 ? 2 : k == 7 ? 1 : k == 9 ? 4 : 8;
        localparam int unsigned Out = k == 6 ? 2 : k == 8 ? 1 : 8;
        mr_width #(.In(In), .Out(Out)) u_width (
            .clk_i, .rst_ni, .valid_i(valid_i[k]), .ready_o(ready_o[k]), .data_i(data_i[k*64+:In*8]),
            .keep_i(keep_i[k*8+:In]), .last_i(last_i[k]), .valid_o(valid_o[k]), .ready_i(ready_i[k]),
            .data_o(data_o[k*64+:Out*8]), .keep_o(keep_o[k*8+:Out]), .last_o(last_o[k])
        );
        if (In < 8) begin : gen_unused
            logic unused_in;
            assign unused_in = ^{data_i[k*64+63:k*64+In*8], keep_i[k*8+7:k*8+In]};
        end
        if (Out < 8) begin : gen_zero
            assign data_o[k*64+63:k*64+Out*8] = '0;
            assign keep_o[k*8+7:k*8+Out]      = '0;
        end
    end

    mr_align #(.DataWidth(64), .LenWidth(16)) u_align (
        .clk_i, .rst_ni, .cmd_valid_i(a_cmd_valid_i), .cmd_ready_o(a_cmd_ready_o),
        .cmd_src_off_i(a_src_off_i), .cmd_dst_off_i(a_dst_off_i), .cmd_len_i(a_len_i),
        .valid_i(a_valid_i), .ready_o(a_ready_o), .data_i(a_data_i), .valid_o(a_valid_o),
        .ready_i(a_ready_i), .data_o(a_data_o), .strb_o(a_strb_o), .last_o(a_last_o), .busy_o(a_busy_o)
    );

    mr_arb #(.Count(5), .Width(32)) u_arb (
        .clk_i, .rst_ni, .valid_i(r_valid_i), .ready_o(r_ready_o), .data_i(r_data_i), .last_i(r_last_i),
        .valid_o(r_valid_o), .ready_i(r_ready_i), .data_o(r_data_o), .last_o(r_last_o), .index_o(r_index_o)
    );

    mr_axi_split u_split (
        .clk_i, .rst_ni, .cmd_valid_i(s_cmd_valid_i), .cmd_ready_o(s_cmd_ready_o), .cmd_addr_i(s_addr_i),
        .cmd_len_i(s_len_i), .burst_valid_o(s_valid_o), .burst_ready_i(s_ready_i), .burst_addr_o(s_addr_o),
        .burst_len_o(s_len_o), .busy_o(s_busy_o)
    );

    logic [15:0] planted_q, sound_q;
    assign planted_o = planted_q;
    assign sound_o   = sound_q;
    always_ff @(posedge clk_i) begin
        planted_q <= planted_q + 16'd1;
        sound_q   <= rst_ni ? sound_q + 16'd1 : '0;
    end
endmodule
