"""The tokens of a language model as byte strings."""
