"""``python -m hagane``."""

from hagane.cli import main

if __name__ == "__main__":
    main()
