"""Python source, interpreted over the values of a domain: types and findings, or nodes."""
