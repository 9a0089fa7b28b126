"""Frontends: programs that become graphs, and are checked on the way."""
