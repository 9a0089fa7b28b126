// One lane of a vector unit, all combinational: about as long as the article's circuit.
// Chance alone meets few of the points that are marked rare.
module lane (
    input  logic        valid,
    input  logic [ 2:0] op,
    input  logic [ 1:0] format,
    input  logic [ 2:0] rounding,
    input  logic        saturate,
    input  logic [31:0] a,
    input  logic [31:0] b,
    input  logic [15:0] mask,
    input  logic [31:0] address,
    input  logic [31:0] base,
    input  logic [ 7:0] tag,
    output logic [31:0] result,
    output logic [ 3:0] flags,
    output logic [31:0] target,
    output logic [ 2:0] bank,
    output logic [ 4:0] leading,
    output logic [ 2:0] fault,
    output logic [ 1:0] route
);

  // Operands in the width of the format.
  logic [31:0] x;
  logic [31:0] y;
  logic        x_is_zero;
  logic        y_is_zero;

  always_comb begin
    x = a;
    y = b;
    case (format)
      2'b00: begin
        x = {{24{a[7]}}, a[7:0]};
        y = {{24{b[7]}}, b[7:0]};
      end
      2'b01: begin
        x = {{16{a[15]}}, a[15:0]};
        y = {{16{b[15]}}, b[15:0]};
      end
      2'b10: begin
        x = {24'b0, a[7:0]};
        y = {24'b0, b[7:0]};
      end
      default: begin
        x = a;
        y = b;
      end
    endcase
  end

  always_comb begin
    x_is_zero = 1'b0;
    y_is_zero = 1'b0;
    if (x == 32'd0) begin
      x_is_zero = 1'b1;
    end
    if (y == 32'd0) begin
      y_is_zero = 1'b1;
    end
  end

  // The operation.
  logic [32:0] wide;
  logic        overflow;

  always_comb begin
    wide = 33'd0;
    case (op)
      3'b000: begin
        wide = {x[31], x} + {y[31], y};
      end
      3'b001: begin
        wide = {x[31], x} - {y[31], y};
      end
      3'b010: begin
        wide = {1'b0, x & y};
      end
      3'b011: begin
        wide = {1'b0, x | y};
      end
      3'b100: begin
        wide = {1'b0, x ^ y};
      end
      3'b101: begin
        if ($signed(x) < $signed(y)) begin
          wide = {x[31], x};
        end else begin
          wide = {y[31], y};
        end
      end
      3'b110: begin
        if (y[31:5] != 27'd0) begin
          wide = 33'd0;
        end else begin
          wide = {1'b0, x >> y[4:0]};
        end
      end
      default: begin
        if (y[31:5] != 27'd0) begin
          wide = {33{x[31]}};
        end else begin
          wide = {x[31], $signed(x) >>> y[4:0]};
        end
      end
    endcase
  end

  always_comb begin
    overflow = 1'b0;
    if (op[2:1] == 2'b00) begin
      if (wide[32] != wide[31]) begin
        overflow = 1'b1;
      end
    end
  end

  // Rounding drops two bits; saturation clips to the largest value of the sign.
  logic [31:0] rounded;
  logic [ 1:0] dropped;

  always_comb begin
    dropped = wide[1:0];
    rounded = wide[31:0];
    case (rounding)
      3'b000: begin
        rounded = wide[31:0];
      end
      3'b001: begin
        rounded = {wide[31:2], 2'b00};
      end
      3'b010: begin
        if (dropped == 2'b10) begin
          if (wide[2]) begin
            rounded = wide[31:0] + 32'd2;
          end else begin
            rounded = wide[31:0] - 32'd2;
          end
        end else if (dropped == 2'b11) begin
          rounded = wide[31:0] + 32'd1;
        end else begin
          rounded = {wide[31:2], 2'b00};
        end
      end
      3'b011: begin
        if (dropped != 2'b00) begin
          rounded = {wide[31:2], 2'b00} + 32'd4;
        end
      end
      default: begin
        rounded = wide[31:0];
      end
    endcase
  end

  always_comb begin
    result = rounded;
    if (!valid) begin
      result = 32'd0;
    end else if (saturate) begin
      if (overflow) begin
        if (wide[32]) begin
          result = 32'h8000_0000;
        end else begin
          result = 32'h7fff_ffff;
        end
      end
    end
  end

  always_comb begin
    flags = 4'b0000;
    if (valid) begin
      if (overflow) begin
        flags[0] = 1'b1;
      end
      if (result == 32'd0) begin
        flags[1] = 1'b1;
      end
      if (result[31]) begin
        flags[2] = 1'b1;
      end
      // Rare: the article's example.
      if (a == b) begin
        if (a == 32'd10) begin
          flags[3] = 1'b1;
        end
      end
    end
  end

  // Leading zeros of the result, by halves.
  logic [15:0] half;
  logic [ 7:0] quarter;
  logic [ 3:0] nibble;

  always_comb begin
    leading = 5'd0;
    if (result[31:16] == 16'd0) begin
      leading[4] = 1'b1;
      half = result[15:0];
    end else begin
      half = result[31:16];
    end
    if (half[15:8] == 8'd0) begin
      leading[3] = 1'b1;
      quarter = half[7:0];
    end else begin
      quarter = half[15:8];
    end
    if (quarter[7:4] == 4'd0) begin
      leading[2] = 1'b1;
      nibble = quarter[3:0];
    end else begin
      nibble = quarter[7:4];
    end
    if (nibble[3:2] == 2'd0) begin
      leading[1] = 1'b1;
      leading[0] = !nibble[1];
    end else begin
      leading[0] = !nibble[3];
    end
  end

  // Where the result goes.
  logic [31:0] offset;

  always_comb begin
    offset = address - base;
    target = address;
    fault  = 3'd0;
    if (valid) begin
      if (address < base) begin
        fault = 3'd1;
      end else if (offset >= 32'h0001_0000) begin
        fault = 3'd2;
      end else begin
        target = offset;
        if (address[1:0] != 2'b00) begin
          fault = 3'd3;
        end
        // Rare: the last word of the window.
        if (offset == 32'h0000_fffc) begin
          fault = 3'd4;
        end
      end
      // Rare: a forbidden tag with a mask that excludes it.
      if (tag == 8'ha5) begin
        if (mask == 16'h5a5a) begin
          fault = 3'd5;
        end
      end
    end
  end

  always_comb begin
    bank = 3'd7;
    case (target[4:2])
      3'b000: begin
        bank = 3'd0;
      end
      3'b001: begin
        bank = 3'd4;
      end
      3'b010: begin
        bank = 3'd2;
      end
      3'b011: begin
        bank = 3'd6;
      end
      default: begin
        if (mask[target[3:0]]) begin
          bank = 3'd1;
        end else begin
          bank = 3'd5;
        end
      end
    endcase
  end

  always_comb begin
    route = 2'd0;
    if (fault != 3'd0) begin
      route = 2'd3;
    end else if (x_is_zero) begin
      if (y_is_zero) begin
        route = 2'd2;
      end
    end else if (y_is_zero) begin
      route = 2'd1;
    end
  end

endmodule
