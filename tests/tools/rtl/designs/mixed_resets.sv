// Registers with an asynchronous reset beside registers and a memory without one.
module mixed_resets (
  input  logic       clk,
  input  logic       rst_n,
  input  logic [3:0] a,
  output logic [7:0] rounds,
  output logic [3:0] sum,
  output logic [3:0] late,
  output logic [7:0] seen
);
  initial rounds = 0;
  initial late = 0;
  initial seen = 0;
  always_ff @(posedge clk) rounds <= rounds + 1;
  always_ff @(posedge clk or negedge rst_n) if (!rst_n) sum <= 0; else sum <= sum + a;
  always_ff @(posedge clk) late <= sum;
  always_ff @(posedge clk) seen[sum[2:0]] <= 1;
endmodule
