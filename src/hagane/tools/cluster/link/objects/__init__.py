"""What the API server holds: objects by resource, and what belongs to which."""
