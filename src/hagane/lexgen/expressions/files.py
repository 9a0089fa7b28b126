"""Texts that expressions and rules are read from."""

from __future__ import annotations

from pathlib import Path

from hagane.errors import InvalidArgument, NoSuchFile


def text_of(path: Path, kind: str, wrong: type[InvalidArgument] = InvalidArgument) -> str:
    """Return the text of a file in UTF-8, without a byte order mark.

    Args:
        path: The file.
        kind: What it should be, for messages: ``"grammar"``.
        wrong: The error for a file that is no text.

    Raises:
        NoSuchFile: There is no such file.
        InvalidArgument: It is no text in UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NoSuchFile(f"there is no {kind} '{path}'") from None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        why = getattr(error, "strerror", None) or error
        raise wrong(f"{path}: expected a text file in UTF-8: {why}") from None
