"""One C function: its operands and body, expressions, loops over elements, control around it."""
