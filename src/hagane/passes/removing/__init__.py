"""Passes that leave nodes out: equal ones, unread ones, and those that return their input."""
