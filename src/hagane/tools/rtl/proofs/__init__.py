"""Questions to a SAT solver about circuits: reachability from a state, and from any."""
