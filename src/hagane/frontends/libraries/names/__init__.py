"""Names of libraries: which are computed, typed alone, left out or refused, and why."""
