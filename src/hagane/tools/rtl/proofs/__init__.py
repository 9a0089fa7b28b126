"""Questions to a SAT solver about circuits: what is reachable from a state, what from none."""
