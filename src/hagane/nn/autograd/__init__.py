"""Variables, and what records and differentiates computations on them."""
