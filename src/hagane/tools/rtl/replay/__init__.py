"""Tests in simulators that hagane did not write, and test sets in their formats."""
