"""Programs of a session for the shapes that it meets: one for all, some for single shapes."""
