"""What the reader sees: findings, types of expressions, their form."""
