// Round-robin stream arbiter: Count streams into one, frame by frame.
//
// Combinational in data (latency 0), one transfer a cycle. The grant moves on after a transfer with last
// and never while an offered transfer waits, so frames are not interleaved and the payload is stable; tie
// last_i to all ones to arbitrate each transfer. Every stream that keeps asking is served within Count
// frames. valid_o does not depend on ready_i; ready_o is ready_i for the granted stream.
module mr_arb #(
    parameter int unsigned Count = 2,
    parameter int unsigned Width = 8,
    localparam int unsigned IndexWidth = Count > 1 ? $clog2(Count) : 1
) (
    input  logic                   clk_i,
    input  logic                   rst_ni,
    input  logic [Count-1:0]       valid_i,
    output logic [Count-1:0]       ready_o,
    input  logic [Count*Width-1:0] data_i, // stream k in bits k*Width and up
    input  logic [Count-1:0]       last_i,
    output logic                   valid_o,
    input  logic                   ready_i,
    output logic [Width-1:0]       data_o,
    output logic                   last_o,
    output logic [IndexWidth-1:0]  index_o // which stream is granted
);
    logic                  locked_q;
    logic [IndexWidth-1:0] grant, grant_q, next_q;

    // first asking stream at or after next_q
    always_comb begin
        grant = grant_q;
        if (!locked_q) begin
            grant = next_q;
            for (int unsigned k = 0; k < Count; k++)
                if (valid_i[Count-1-k] && IndexWidth'(Count - 1 - k) < next_q) grant = IndexWidth'(Count - 1 - k);
            for (int unsigned k = 0; k < Count; k++)
                if (valid_i[Count-1-k] && IndexWidth'(Count - 1 - k) >= next_q) grant = IndexWidth'(Count - 1 - k);
        end
    end

    assign index_o = grant;
    assign valid_o = valid_i[grant];
    assign last_o  = last_i[grant];
    assign data_o  = data_i[grant*Width+:Width];

    always_comb begin
        ready_o        = '0;
        ready_o[grant] = ready_i && valid_i[grant];
    end

    always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
            locked_q <= 1'b0;
            grant_q  <= '0;
            next_q   <= '0;
        end else if (valid_o) begin
            grant_q  <= grant;
            locked_q <= !(ready_i && last_o);
            if (ready_i && last_o) next_q <= grant == IndexWidth'(Count - 1) ? '0 : grant + 1'b1;
        end
    end

    mr_stream_check #(.Width(Width)) u_check_out (
        .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(1'b1), .last_i(last_o)
    );
endmodule
