// Stream register slice: cuts every combinational path between its two sides.
//
// Two entries; latency 1, one transfer a cycle. Payload is opaque: pack keep and last into it.
module mr_stream_reg #(
    parameter int unsigned Width = 8
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             valid_i,
    output logic             ready_o,
    input  logic [Width-1:0] data_i,
    output logic             valid_o,
    input  logic             ready_i,
    output logic [Width-1:0] data_o
);
    logic             full_q, spill_q;
    logic [Width-1:0] data_q, spill_data_q;

    assign ready_o = !spill_q;
    assign valid_o = full_q;
    assign data_o  = data_q;

    always_ff @(posedge clk_i) begin
        // the output register moves on: refill it from the spill entry first
        if (!full_q || ready_i) begin
            if (spill_q) data_q <= spill_data_q;
            else if (valid_i) data_q <= data_i;
        end else if (valid_i && !spill_q) spill_data_q <= data_i;
        if (!rst_ni) begin
            full_q  <= 1'b0;
            spill_q <= 1'b0;
        end else if (!full_q || ready_i) begin
            full_q  <= spill_q || valid_i;
            spill_q <= 1'b0;
        end else spill_q <= spill_q || valid_i;
    end

    mr_stream_check #(.Width(Width)) u_check_in (
        .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i, .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(Width)) u_check_out (
        .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(1'b1), .last_i(1'b0)
    );
endmodule
