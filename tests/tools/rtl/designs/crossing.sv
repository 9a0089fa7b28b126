// A value that crosses from one clock to another behind a flag and two flip-flops.
module crossing (
  input  logic       clk_a,
  input  logic       clk_b,
  input  logic       rst_n,
  input  logic       go,
  input  logic [3:0] d,
  output logic       seen,
  output logic [3:0] q
);
  logic flag, first, second, third;
  logic [3:0] held;

  always_ff @(posedge clk_a or negedge rst_n)
    if (!rst_n) begin
      held <= '0;
      flag <= 1'b0;
    end else if (go) begin
      held <= d;
      flag <= ~flag;
    end

  always_ff @(posedge clk_b or negedge rst_n)
    if (!rst_n) begin
      {first, second, third} <= '0;
      q <= '0;
    end else begin
      first  <= flag;
      second <= first;
      third  <= second;
      if (seen) q <= held;
    end

  assign seen = second != third;
endmodule
