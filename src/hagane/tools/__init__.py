"""Tools around the model; each stands on the shared cores and knows no other tool."""
"""Tools around the model; each stands on the shared cores and knows none of the others."""
"""Tools built on the shared cores; independent of each other."""
