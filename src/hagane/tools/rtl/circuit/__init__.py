"""A circuit: SystemVerilog elaborated, its processes executed symbolically, one cycle as terms."""
