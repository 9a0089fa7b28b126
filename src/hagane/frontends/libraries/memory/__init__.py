"""Memory of tensors: views that share it, copies, and functions that write into it."""
