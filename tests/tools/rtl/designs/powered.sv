// Registers with and without a value when the power comes on.
module powered (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       load,
  input  logic [1:0] addr,
  input  logic [3:0] d,
  output logic       turn,
  output logic [3:0] q,
  output logic       hit
);
  logic [2:0] lock;          // nothing ever writes it
  logic [3:0] mem [0:3];     // written before it is read, or not
  logic [1:0] count = 2'd1;  // begins with a value
  bit   [1:0] two;           // two states: begins with zeros

  always_ff @(posedge clk) begin
    turn <= ~turn;  // of which nobody knows the value, ever
    if (load) mem[addr] <= d;
    q <= mem[addr];
    count <= count + 2'd1;
    if (two == 2'd3) hit <= 1'b1;
    else if (lock == 3'd5) hit <= count[0];
    else hit <= 1'b0;
  end

  logic [1:0] state;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) state <= 2'd0;
    else if (state == 2'd2) state <= 2'd0;
    else state <= state + 2'd1;
endmodule
