"""Functions over the builder, each written once for arrays, types, nodes and recorded values."""
