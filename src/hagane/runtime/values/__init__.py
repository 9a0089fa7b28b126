"""Values of a session: described, given, bound, shared with other libraries."""
