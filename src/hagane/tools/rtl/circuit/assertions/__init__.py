"""Cover and assert statements: points, sequences, and monitors beside the design."""
