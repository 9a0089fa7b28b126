"""Elements chosen, written or moved by indices that come with the data."""
