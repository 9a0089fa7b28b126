// Sends a byte serially, two cycles a bit: start bit, eight data bits, stop bit.
module uart_tx (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       send,
  input  logic [7:0] data,
  output logic       line,
  output logic       ready
);
  typedef enum logic [1:0] {IDLE, START, DATA, STOP} state_e;
  state_e state;
  logic tick;
  logic [2:0] index;
  logic [7:0] held;

  assign ready = state == IDLE;

  always_comb begin
    case (state)
      START:   line = 1'b0;
      DATA:    line = held[index];
      default: line = 1'b1;
    endcase
  end

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      state <= IDLE; tick <= 1'b0; index <= '0; held <= '0;
    end else begin
      tick <= ~tick;
      if (state == IDLE) begin
        if (send) begin
          held <= data; state <= START; tick <= 1'b0;
        end
      end else if (tick) begin
        unique case (state)
          START: begin state <= DATA; index <= '0; end
          DATA:  begin
            index <= index + 1'b1;
            if (index == 3'd7) state <= STOP;
          end
          default: state <= IDLE;
        endcase
      end
    end
  end
endmodule
