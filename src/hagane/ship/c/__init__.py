"""The C interface of builds, and the code behind it."""
