"""Values of the interpreted program: their kinds, contents and notation."""
