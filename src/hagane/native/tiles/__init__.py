"""The innermost products, on registers and on matrix tiles, and the loops around them."""
