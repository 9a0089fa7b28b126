"""Automata: from syntax trees, deterministic, minimal, over bytes."""
