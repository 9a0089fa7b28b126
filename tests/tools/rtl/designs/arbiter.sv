// Four requesters served in turn.
module arbiter (
  input  logic       clk,
  input  logic       rst,
  input  logic [3:0] request,
  output logic [3:0] grant
);
  logic [1:0] last;
  logic [3:0] choice;
  logic [1:0] index;

  always_comb begin
    choice = '0;
    index  = last;
    for (int i = 1; i <= 4; i++) begin
      if (choice == '0 && request[2'(last + i)]) begin
        choice[2'(last + i)] = 1'b1;
        index = 2'(last + i);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      last  <= 2'd3;
      grant <= '0;
    end else begin
      grant <= choice;
      if (|request) last <= index;
    end
  end
endmodule
