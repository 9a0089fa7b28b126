"""The server on 127.0.0.1 and its page."""
