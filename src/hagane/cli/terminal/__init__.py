"""Output for people at a terminal: lines that fit it, tables, progress."""
