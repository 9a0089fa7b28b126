"""Why an agent acts as it does: maps of what it looked at, and whether to believe them."""
