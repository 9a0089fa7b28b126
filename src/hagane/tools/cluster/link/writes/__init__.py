"""Writes of the API server's clients: bodies, patches, server-side apply, and what follows."""
