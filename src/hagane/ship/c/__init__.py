"""The C interface of builds, and what runs them."""
