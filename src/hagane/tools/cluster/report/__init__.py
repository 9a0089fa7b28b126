"""Results of a run: metrics lines, tables over time and by pod, a page to look at."""
