"""Windows and positions of pictures and sequences."""
