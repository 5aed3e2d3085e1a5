// Stream FIFO of any depth, with its fill count.
//
// Latency 1 from input to output, one transfer a cycle; ready_o does not depend on ready_i, so a full
// FIFO takes its next entry one cycle after it gave one. The memory is read combinationally (lookup
// table memory); it is not reset. Payload is opaque: pack keep and last into it.
module mr_fifo #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 2,
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  valid_i,
    output logic                  ready_o,
    input  logic [Width-1:0]      data_i,
    output logic                  valid_o,
    input  logic                  ready_i,
    output logic [Width-1:0]      data_o,
    output logic [CountWidth-1:0] count_o
);
    localparam int unsigned PtrWidth = Depth > 1 ? $clog2(Depth) : 1;
    localparam logic [PtrWidth-1:0] LastPtr = PtrWidth'(Depth - 1);

    logic [Width-1:0]      mem [0:Depth-1];
    logic [PtrWidth-1:0]   wr_q, rd_q;
    logic [CountWidth-1:0] count_q;
    logic                  push, pop;

    assign ready_o = count_q != CountWidth'(Depth);
    assign valid_o = count_q != '0;
    assign data_o  = mem[rd_q];
    assign count_o = count_q;
    assign push    = valid_i && ready_o;
    assign pop     = valid_o && ready_i;

    always_ff @(posedge clk_i) begin
        if (push) mem[wr_q] <= data_i;
        if (!rst_ni) begin
            wr_q    <= '0;
            rd_q    <= '0;
            count_q <= '0;
        end else begin
            if (push) wr_q <= wr_q == LastPtr ? '0 : wr_q + 1'b1;
            if (pop) rd_q <= rd_q == LastPtr ? '0 : rd_q + 1'b1;
            if (push && !pop) count_q <= count_q + 1'b1;
            if (pop && !push) count_q <= count_q - 1'b1;
        end
    end

    mr_stream_check #(.Width(Width)) u_check_in (
        .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i, .keep_i(1'b1), .last_i(1'b0)
    );
    mr_stream_check #(.Width(Width)) u_check_out (
        .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(1'b1), .last_i(1'b0)
    );
endmodule
