"""Masks over the vocabulary of a language model: the tokens that may come next."""
