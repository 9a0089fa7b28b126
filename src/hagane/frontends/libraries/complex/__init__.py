"""Complex tensors as two real ones: their parts, their functions, their transforms."""
