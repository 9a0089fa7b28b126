"""``python -m hagane``."""

from hagane.cli import main

main()
