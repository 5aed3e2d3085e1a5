// Stream width adapter with keep and last: In bytes a beat to Out bytes a beat, one a multiple of the
// other (equal widths give a register slice).
//
// Up: Out/In beats are gathered into one, a frame's last beat goes as far as it is filled; latency 1, takes
// a beat a cycle. Down: a beat leaves in In/Out pieces, null pieces after a frame's end are dropped; latency
// 1, gives a piece a cycle without a gap between beats. keep is contiguous from byte 0 and full except on
// last, on both sides; bytes outside it are 0 on the way up.
module mr_width #(
    parameter int unsigned In  = 4,
    parameter int unsigned Out = 16
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             valid_i,
    output logic             ready_o,
    input  logic [In*8-1:0]  data_i,
    input  logic [In-1:0]    keep_i,
    input  logic             last_i,
    output logic             valid_o,
    input  logic             ready_i,
    output logic [Out*8-1:0] data_o,
    output logic [Out-1:0]   keep_o,
    output logic             last_o
);
    if (In == Out) begin : gen_same
        mr_stream_reg #(.Width(In * 9 + 1)) u_reg (
            .clk_i, .rst_ni, .valid_i, .ready_o, .data_i({last_i, keep_i, data_i}),
            .valid_o, .ready_i, .data_o({last_o, keep_o, data_o})
        );
    end else if (In < Out) begin : gen_up
        localparam int unsigned Ratio      = Out / In;
        localparam int unsigned IndexWidth = $clog2(Ratio);
        if (Ratio * In != Out) begin : gen_bad_ratio
            mr_width_is_not_a_multiple u_error ();
        end
        logic                  full_q, last_q, push;
        logic [IndexWidth-1:0] index_q;
        logic [Out*8-1:0]      data_q;
        logic [Out-1:0]        keep_q;
        assign ready_o = !full_q || ready_i;
        assign push    = valid_i && ready_o;
        assign valid_o = full_q;
        assign {last_o, keep_o, data_o} = {last_q, keep_q, data_q};
        always_ff @(posedge clk_i) begin
            if (push) begin
                if (index_q == '0) begin
                    data_q <= {{(Out - In) * 8{1'b0}}, data_i};
                    keep_q <= {{(Out - In) {1'b0}}, keep_i};
                end else begin
                    data_q[index_q*In*8+:In*8] <= data_i;
                    keep_q[index_q*In+:In]     <= keep_i;
                end
                last_q <= last_i;
            end
            if (!rst_ni) begin
                full_q  <= 1'b0;
                index_q <= '0;
            end else if (push) begin
                full_q  <= last_i || index_q == IndexWidth'(Ratio - 1);
                index_q <= last_i || index_q == IndexWidth'(Ratio - 1) ? '0 : index_q + 1'b1;
            end else if (ready_i) full_q <= 1'b0;
        end
    end else begin : gen_down
        localparam int unsigned Ratio      = In / Out;
        localparam int unsigned IndexWidth = $clog2(Ratio);
        if (Ratio * Out != In) begin : gen_bad_ratio
            mr_width_is_not_a_multiple u_error ();
        end
        logic                  full_q, last_q, final_piece;
        logic [IndexWidth-1:0] index_q;
        logic [In*8-1:0]       data_q;
        logic [In-1:0]         keep_q;
        // the piece held in the low lanes is the last one when nothing is kept above it
        assign final_piece = index_q == IndexWidth'(Ratio - 1) || keep_q[Out] == 1'b0;
        assign ready_o     = !full_q || (ready_i && final_piece);
        assign valid_o     = full_q;
        assign data_o      = data_q[Out*8-1:0];
        assign keep_o      = keep_q[Out-1:0];
        assign last_o      = last_q && final_piece;
        always_ff @(posedge clk_i) begin
            if (valid_i && ready_o) begin
                data_q <= data_i;
                keep_q <= keep_i;
                last_q <= last_i;
            end else if (full_q && ready_i) begin
                data_q <= data_q >> Out * 8;
                keep_q <= keep_q >> Out;
            end
            if (!rst_ni) begin
                full_q  <= 1'b0;
                index_q <= '0;
            end else if (ready_o) begin
                full_q  <= valid_i;
                index_q <= '0;
            end else if (ready_i) index_q <= index_q + 1'b1;
        end
    end

    mr_stream_check #(.Width(In * 8), .Keep(In)) u_check_in (
        .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i, .keep_i, .last_i
    );
    mr_stream_check #(.Width(Out * 8), .Keep(Out)) u_check_out (
        .clk_i, .rst_ni, .valid_i(valid_o), .ready_i, .data_i(data_o), .keep_i(keep_o), .last_i(last_o)
    );
endmodule
