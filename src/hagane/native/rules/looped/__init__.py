"""Products and convolutions of any type in plain loops, where no faster form serves."""
