"""The reader's view: findings, types of expressions, their form."""
