// Division of eight bits by repeated shift and subtraction, one bit a cycle.
module divider (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       start,
  input  logic [7:0] dividend,
  input  logic [7:0] divisor,
  output logic [7:0] quotient,
  output logic [7:0] remainder,
  output logic       busy,
  output logic       by_zero
);
  typedef enum logic [1:0] {IDLE, WORK, DONE} state_e;
  state_e state;
  logic [3:0] step;
  logic [7:0] rest, low, by;
  logic [8:0] difference;

  assign difference = {rest, low[7]} - {1'b0, by};
  assign busy = state != IDLE;

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      state <= IDLE; step <= '0; rest <= '0; low <= '0; by <= '0;
      quotient <= '0; remainder <= '0; by_zero <= 1'b0;
    end else begin
      unique case (state)
        IDLE: if (start) begin
          by_zero <= divisor == 0;
          if (divisor != 0) begin
            rest <= '0; low <= dividend; by <= divisor; step <= '0; state <= WORK;
          end
        end
        WORK: begin
          if (difference[8]) begin
            rest <= {rest[6:0], low[7]};
            low  <= {low[6:0], 1'b0};
          end else begin
            rest <= difference[7:0];
            low  <= {low[6:0], 1'b1};
          end
          step <= step + 1'b1;
          if (step == 4'd7) state <= DONE;
        end
        DONE: begin
          quotient <= low; remainder <= rest; state <= IDLE;
        end
        default: state <= IDLE;
      endcase
    end
  end
endmodule
