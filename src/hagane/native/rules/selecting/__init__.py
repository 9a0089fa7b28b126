"""Elements of a size that the data decide: those that are not zero, distinct ones, boxes."""
