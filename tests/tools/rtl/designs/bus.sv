// A circuit whose port is an interface; the interface has ports of its own.
interface bus #(parameter int W = 8) (input logic clk, input logic rst_n);
  logic req;
  logic [W-1:0] data;
  logic gnt;
  logic [W-1:0] answer;
  modport slave(input clk, rst_n, req, data, output gnt, answer);
  modport master(output req, data, input gnt, answer);
endinterface
module box(bus.slave b, input logic open, output logic [7:0] count);
  always_ff @(posedge b.clk or negedge b.rst_n)
    if (!b.rst_n) begin
      b.gnt <= 1'b0;
      count <= 8'd0;
    end else if (b.req && open) begin
      b.gnt <= 1'b1;
      if (b.data == 8'hc3) count[1:0] <= count[1:0] + 2'd1;
    end else begin
      b.gnt <= 1'b0;
    end
  assign b.answer = b.data ^ count;
endmodule
