"""Passes that leave nodes out: equal ones, unread ones, and identities."""
