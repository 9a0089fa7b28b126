"""Values of the interpreted program: what they are, contain, and how they are written."""
