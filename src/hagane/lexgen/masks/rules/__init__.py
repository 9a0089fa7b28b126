"""Rules that call each other, as automata over bytes."""
