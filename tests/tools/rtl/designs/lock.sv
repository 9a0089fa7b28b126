// Opens after the code 7, 2, 9, 4; a wrong key starts again.
module lock (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       valid,
  input  logic [3:0] key,
  output logic       open
);
  typedef enum logic [2:0] {S0, S1, S2, S3, OPEN} state_e;
  state_e state, following;

  always_comb begin
    following = state;
    if (valid) begin
      case (state)
        S0: if (key == 4'd7) following = S1;
        S1: if (key == 4'd2) following = S2; else following = S0;
        S2: if (key == 4'd9) following = S3; else following = S0;
        S3: if (key == 4'd4) following = OPEN; else following = S0;
        OPEN: if (key == 4'd0) following = S0;
        default: following = S0;
      endcase
    end
  end

  assign open = state == OPEN;

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) state <= S0;
    else state <= following;
endmodule
