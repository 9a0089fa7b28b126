"""Claims about distributions: decided, proved from types, reported."""
