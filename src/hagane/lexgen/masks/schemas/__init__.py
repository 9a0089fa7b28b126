"""JSON schemas as cases of values, and these as rules."""
