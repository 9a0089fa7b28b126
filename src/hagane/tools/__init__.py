"""Tools around the model; each stands on the shared cores and knows no other tool."""
"""Tools around the model; each stands on the shared cores and knows none of the others."""
