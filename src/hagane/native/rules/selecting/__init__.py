"""Elements of a number that the data decide: non-zero ones, distinct ones, boxes."""
