"""``hagane`` and ``python -m hagane``."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it with status 130, while its modules load too.

    A standard stream that the caller has closed leads nowhere; characters that one lacks are
    written as escapes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        from hagane.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
