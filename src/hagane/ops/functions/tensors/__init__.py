"""Elements by their position: made, taken, put, put in order."""
