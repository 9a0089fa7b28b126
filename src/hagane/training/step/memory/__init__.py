"""Memory of compiled steps: budgets, plans, values that are computed again."""
