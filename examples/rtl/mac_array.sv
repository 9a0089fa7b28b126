// Four int8 multiply-accumulate lanes with a 18-bit saturating sum.
module mac_array (
  input  logic               clk,
  input  logic               rst_n,
  input  logic               clear,
  input  logic               valid,
  input  logic signed [7:0]  weights [4],
  input  logic signed [7:0]  inputs  [4],
  output logic signed [17:0] sum,
  output logic               saturated
);
  localparam logic signed [18:0] MOST  = 19'sd131071;
  localparam logic signed [18:0] LEAST = -19'sd131072;
  logic signed [18:0] next;

  always_comb begin
    next = 19'(sum);
    for (int i = 0; i < 4; i++) next += 19'(weights[i] * inputs[i]);
  end

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      sum <= '0;
      saturated <= 1'b0;
    end else if (clear) begin
      sum <= '0;
      saturated <= 1'b0;
    end else if (valid) begin
      if (next > MOST) begin
        sum <= MOST[17:0];
        saturated <= 1'b1;
      end else if (next < LEAST) begin
        sum <= LEAST[17:0];
        saturated <= 1'b1;
      end else sum <= next[17:0];
    end
  end
endmodule
