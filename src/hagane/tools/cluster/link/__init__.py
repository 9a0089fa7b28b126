"""Other processes: scheduler extenders, an API server, submitters over RPC."""
