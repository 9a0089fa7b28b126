// Scales a 24-bit accumulator down to int8: divide by 2**shift, round half to even, saturate.
// The meaning is ONNX QuantizeLinear with a scale of 2**shift and a zero point of 0, then ReLU if
// asked for. With PLANTED_BUG, ties round up instead of to even.
module requant (
  input  logic signed [23:0] acc,
  input  logic        [3:0]  shift,
  input  logic               relu,
  output logic signed [7:0]  out
);
  logic signed [24:0] whole, rounded;
  logic [23:0] mask, rest, half;
  logic up;

  always_comb begin
    mask  = (24'd1 << shift) - 24'd1;
    half  = (24'd1 << shift) >> 1;
    rest  = acc & mask;
    whole = acc >>> shift;
    if (shift == 0)       up = 1'b0;
    else if (rest > half) up = 1'b1;
`ifdef PLANTED_BUG
    else if (rest == half) up = 1'b1;
`else
    else if (rest == half) up = whole[0];
`endif
    else                  up = 1'b0;
    rounded = whole + 25'(up);
    if (relu && rounded < 0)    out = 8'sd0;
    else if (rounded > 25'sd127)  out = 8'sd127;
    else if (rounded < -25'sd128) out = -8'sd128;
    else                          out = rounded[7:0];
  end
endmodule
