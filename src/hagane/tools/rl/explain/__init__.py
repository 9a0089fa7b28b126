"""Why an agent acts as it does: maps of the attended parts, and checks of their trust."""
