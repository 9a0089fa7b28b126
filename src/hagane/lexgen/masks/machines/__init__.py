"""Rules and expressions as states of an output, with the tokens that may follow in each."""
