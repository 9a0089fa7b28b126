"""``hagane`` and ``python -m hagane``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it with status 130, while its modules load too."""
    try:
        from hagane.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
