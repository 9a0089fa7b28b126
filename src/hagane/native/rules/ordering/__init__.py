"""Elements in order: sums along an axis, the largest, sorted and distinct ones."""
