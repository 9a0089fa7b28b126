// Uses most of the language that circuits are written in, for comparison with a simulator.
package language_pkg;
  typedef enum logic [2:0] {ADD = 3'd1, SUB, SHIFT, PICK, SUM} op_e;
  typedef struct packed {
    logic        flag;
    logic signed [6:0] small_;
    logic [7:0]  data;
  } word_t;
  typedef union packed {
    logic [15:0] raw;
    word_t       word;
  } both_t;
  parameter int LANES = 4;
  function automatic logic [7:0] reversed(input logic [7:0] a);
    for (int i = 0; i < 8; i++) reversed[i] = a[7 - i];
  endfunction
  function automatic int first_one(input logic [7:0] a);
    for (int i = 0; i < 8; i++) if (a[i]) return i;
    return 8;
  endfunction
endpackage

interface bus_if;
  logic [7:0] address;
  logic       ready;
  modport master (output address, input ready);
  modport slave (input address, output ready);
endinterface

module bus_master (input logic [7:0] a, output logic got, bus_if.master bus);
  assign bus.address = a + 8'd3;
  assign got = bus.ready;
endmodule

module bus_slave #(parameter logic [7:0] AT = 8'h40) (bus_if.slave bus);
  assign bus.ready = bus.address == AT;
endmodule

module language import language_pkg::*; (
  input  logic [2:0]         op,
  input  logic signed [7:0]  a,
  input  logic signed [7:0]  b,
  input  logic [15:0]        c,
  input  logic [3:0]         index,
  output logic signed [15:0] result,
  output logic [7:0]         lanes [LANES],
  output logic [7:0]         turned,
  output logic [3:0]         kind,
  output logic               hit,
  output logic [31:0]        mixed
);
  both_t u;
  word_t w;
  logic [3:0][7:0] table_;
  logic [0:7] up;
  logic [7:0] flipped;
  bus_if link ();

  bus_master master (.a(a), .got(hit), .bus(link));
  bus_slave #(.AT(8'h42)) slave (.bus(link));

  assign u.raw = c;
  assign up = c[7:0];

  for (genvar g = 0; g < LANES; g++) begin : gen_lane
    if (g % 2 == 0) begin : gen_even
      assign lanes[g] = a + 8'(g);
    end else begin : gen_odd
      assign lanes[g] = b >>> g;
    end
  end

  always_comb begin
    w = u.word;
    w.small_ = w.small_ - 7'sd1;
    table_ = {a, b, c};
    table_[index[1:0]] = 8'hA5;
    result = '0;
    unique case (op_e'(op))
      ADD:   result = a + b;
      SUB:   result = 16'(a) - w.small_;
      SHIFT: result = (a <<< index[2:0]) | (16'(signed'(c)) >>> index);
      PICK:  result = 16'(table_[index[1:0]][index[3:2] +: 3]);
      SUM: begin
        for (int i = 0; i < 8; i++) begin
          if (i == first_one(c[7:0])) continue;
          if (i > 6) break;
          result += a[i] ? 16'sd3 : -16'sd5;
        end
      end
      default: result = {~^a, |b, &c, 13'(a * b)};
    endcase
    flipped = {<<{b}};
    turned = reversed(c[7:0]) ^ flipped;
    casez (c[15:8])
      8'b1???_???1: kind = 4'd1;
      8'b01??_0???: kind = 4'd2;
      8'b00?1_????: kind = 4'd3;
      default:      kind = 4'(first_one(c[7:0]));
    endcase
    if (c inside {16'd5, [16'd100:16'd300], 16'hFF??}) kind = 4'd15;
    mixed = {up[2:5], c[(index | 4'd3) -: 4], {3{a[1:0]}}, b, 10'(a / (b == 0 ? 8'sd1 : b))};
    mixed[index +: 3] = c[2:0];
    if (a > b && !(op[0] || c[3])) mixed[31] = 1'b1;
  end
endmodule
