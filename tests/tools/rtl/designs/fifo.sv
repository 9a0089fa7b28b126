// A FIFO of four words with full and empty flags.
module fifo #(parameter int WIDTH = 8, parameter int DEPTH = 4) (
  input  logic             clk,
  input  logic             rst_n,
  input  logic             push,
  input  logic             pop,
  input  logic [WIDTH-1:0] in,
  output logic [WIDTH-1:0] out,
  output logic             full,
  output logic             empty
);
  localparam int BITS = $clog2(DEPTH);
  logic [WIDTH-1:0] memory [DEPTH];
  logic [BITS-1:0] head, tail;
  logic [BITS:0] count;

  assign full  = count == DEPTH;
  assign empty = count == '0;
  assign out   = memory[tail];

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      head <= '0; tail <= '0; count <= '0;
      for (int i = 0; i < DEPTH; i++) memory[i] <= '0;
    end else begin
      if (push && !full) begin
        memory[head] <= in;
        head <= head + 1'b1;
      end
      if (pop && !empty) tail <= tail + 1'b1;
      case ({push && !full, pop && !empty})
        2'b10: count <= count + 1'b1;
        2'b01: count <= count - 1'b1;
        default: ;
      endcase
    end
  end
endmodule
