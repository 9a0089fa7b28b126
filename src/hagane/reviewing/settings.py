"""The settings of a project, as its ``pyproject.toml`` has them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument
from hagane.reviewing.files import real

TABLE = "tool.hagane.check"


@dataclass(frozen=True, slots=True)
class Asked:
    """The request for one class or function of a file.

    Attributes:
        name: ``Class``, ``Class.method`` or a function's name; empty for all that is annotated.
        make: An expression that makes the object.
        inputs: The types of arguments by name.
        sizes: Numbers for named sizes.
    """

    name: str = ""
    make: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a project is checked.

    Attributes:
        root: The folder of ``pyproject.toml``; the working directory if there is none.
        paths: The files to check when none is named.
        exclude: Patterns of paths that folders leave out.
        ignore: Codes of findings that are not reported, such as ``raises``.
        baseline: The file of findings that are known already; empty for none.
        allow_unknown: Whether expressions that could not be typed leave the status at 0.
        no_import: Whether files are never imported.
        targets: The requests of files, by their path from the root.
    """

    root: Path
    paths: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: str = ""
    allow_unknown: bool = False
    no_import: bool = False
    targets: Mapping[str, tuple[Asked, ...]] = field(default_factory=dict)

    @property
    def known(self) -> Path | None:
        """The file of findings that are known already."""
        return self.root / self.baseline if self.baseline else None

    def asked_of(self, file: Path) -> tuple[Asked, ...]:
        """Return the settings' request of a file."""
        try:
            inside = real(file).relative_to(real(self.root)).as_posix()
        except ValueError:
            return ()
        return self.targets.get(inside, ())


def settings_from(folder: Path) -> Settings:
    """Return the settings of the nearest ``pyproject.toml`` at or above a folder.

    Raises:
        InvalidArgument: The table has a key that is not known, or a value of another type.
    """
    for place in (real(folder), *real(folder).parents):
        file = place / "pyproject.toml"
        if file.is_file():
            return _read(file)
    return Settings(folder)


def _read(file: Path) -> Settings:
    try:
        whole = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read: {error}") from None
    table = whole.get("tool", {}).get("hagane", {}).get("check", {})
    known: dict[str, Any] = {}
    lists, flags = ("paths", "exclude", "ignore"), ("allow-unknown", "no-import")
    for key, value in table.items():
        where = f"{file}: [{TABLE}] {key}"
        if key in lists:
            _expect(where, isinstance(value, list) and all(isinstance(v, str) for v in value),
                    "a list of texts", value)  # fmt: skip
            known[key] = tuple(value)
        elif key in flags:
            _expect(where, isinstance(value, bool), "true or false", value)
            known[key.replace("-", "_")] = value
        elif key == "baseline":
            _expect(where, isinstance(value, str), "a path", value)
            known[key] = value
        elif key == "targets":
            _expect(where, isinstance(value, dict), "a table of files", value)
            known[key] = {name: _asked(f"{where}.'{name}'", one) for name, one in value.items()}
        else:
            names = ", ".join([*lists, *flags, "baseline", "targets"])
            raise InvalidArgument(f"{where}: unknown; the table has: {names}")
    return Settings(file.parent, **known)


def _asked(where: str, value: Any) -> tuple[Asked, ...]:
    entries = value if isinstance(value, list) else [value]
    made = []
    for entry in entries:
        _expect(where, isinstance(entry, dict), "a table, or a list of tables", entry)
        unknown = [key for key in entry if key not in ("name", "make", "inputs", "sizes")]
        if unknown:
            raise InvalidArgument(
                f"{where}: unknown '{unknown[0]}'; a target has: name, make, inputs, sizes"
            )
        made.append(Asked(**entry))
    return tuple(made)


def _expect(where: str, fits: bool, expected: str, value: Any) -> None:
    if not fits:
        raise InvalidArgument(f"{where}: expected {expected}, got {value!r}")
