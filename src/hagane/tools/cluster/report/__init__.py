"""What a run leaves behind: metrics lines, tables over time and by pod, a page to look at."""
