"""From source files to an elaborated top module, by slang."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, MissingExtra
from hagane.tools.rtl.errors import InvalidDesign


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a circuit: files in order, the top module, and the preprocessor's settings."""

    files: tuple[Path, ...]
    top: str
    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a source file; line and column count from 1.

    ``macro`` is the place in the text of a macro, which tells apart the points of one use of it.
    """

    file: str
    line: int
    column: int
    macro: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Elaborated:
    """An elaborated design; keeps slang's objects alive."""

    def __init__(self, driver: Any, compilation: Any, top: Any):
        self._driver = driver
        self.compilation = compilation
        self.top = top
        self._manager = driver.sourceManager
        self._paths: dict[Any, str] = {}
        self._positions: dict[Any, Position] = {}

    def position(self, location: Any) -> Position:
        """Return where ``location`` is, outside of macros."""
        found = self._positions.get(location)
        if found is None:
            found = self._positions[location] = self._find(location)
        return found

    def _find(self, location: Any) -> Position:
        manager = self._manager
        macro = (0, 0)
        if manager.isMacroLoc(location):
            written = manager.getFullyOriginalLoc(location)
            macro = (manager.getLineNumber(written), manager.getColumnNumber(written))
        location = manager.getFullyExpandedLoc(location)
        buffer = location.buffer
        if buffer not in self._paths:
            self._paths[buffer] = str(manager.getFullPath(buffer))
        return Position(
            self._paths[buffer],
            manager.getLineNumber(location),
            manager.getColumnNumber(location),
            macro,
        )


def _driver(sources: Sources, top: str | None) -> Any:
    """Return slang with the sources and options of a circuit."""
    try:
        from pyslang import driver as slang
    except ImportError:
        raise MissingExtra("reading SystemVerilog", "rtl") from None
    for path in sources.files:
        _check_text(path)
    for path in sources.include:
        if not path.is_dir():
            raise InvalidArgument(f"-I {path}: there is no such folder")
    driver = slang.Driver()
    driver.addStandardArgs()
    words = ["slang", "--single-unit", "-Wnone", "--allow-toplevel-iface-ports"]
    words += [] if top is None else ["--top", top]
    for path in sources.include:
        words += ["-I", str(path)]
    words += [word for define in sources.defines for word in ("-D", define)]
    words += [
        word for name, value in sources.parameters.items() for word in ("-G", f"{name}={value}")
    ]
    words += [str(path) for path in sources.files]
    quoted = " ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words)
    if not (driver.parseCommandLine(quoted) and driver.processOptions()):
        raise InvalidDesign(f"the options could not be read: {quoted}")
    return driver


def parse(sources: Sources) -> tuple[Any, Any]:
    """Return slang with the syntax of some sources, and its manager of places in them."""
    driver = _driver(sources, sources.top)
    driver.parseAllSources()
    return driver, driver.sourceManager


def find_top(sources: Sources) -> str:
    """Return the only module of some sources that no other instantiates.

    Raises:
        MissingExtra: pyslang is not installed.
        InvalidArgument: There are several, or none; or a file or folder does not exist.
    """
    driver = _driver(sources, None)
    driver.parseAllSources()
    compilation = driver.createCompilation()
    tops = sorted(str(top.name) for top in compilation.getRoot().topInstances)
    if len(tops) != 1:
        known = (
            f"one of {', '.join(tops[:20])}" if tops else _none_stands_alone(compilation, driver)
        )
        raise InvalidArgument(f"--top: expected the module to test, {known}")
    return tops[0]


def _none_stands_alone(compilation: Any, driver: Any) -> str:
    """Return what the sources define in the place of a module that no other instantiates."""
    places, manager = [], driver.sourceManager
    for item in compilation.getDefinitions():
        kind = getattr(item, "definitionKind", None)
        if kind is not None and kind.name in ("Module", "Program"):
            place = f"{manager.getFileName(item.location)}:{manager.getLineNumber(item.location)}"
            places.append(f"the {kind.name.lower()} {item.name} ({place})")
    if not places:
        return "but the sources define none"
    return (
        f"but none of the sources stands alone: they define {', '.join(sorted(places)[:20])}; name "
        "a module with --top, and give parameters without a value one with -G NAME=VALUE"
    )


def elaborate(sources: Sources) -> Elaborated:
    """Parse and elaborate ``sources``.

    Raises:
        MissingExtra: pyslang is not installed.
        InvalidArgument: A file, folder or the top module does not exist.
        InvalidDesign: The sources have errors; each is given with file, line and column.
    """
    driver = _driver(sources, sources.top)
    import pyslang

    parsed = driver.parseAllSources()
    compilation = driver.createCompilation()
    diagnostics = [item for item in compilation.getAllDiagnostics() if item.isError()]
    modules = sorted(
        str(item.name)
        for item in compilation.getDefinitions()
        if getattr(getattr(item, "definitionKind", None), "name", "") == "Module"
    )
    if parsed and sources.top not in modules and (modules or len(diagnostics) < 2):
        known = f"expected one of {', '.join(modules[:20])}" if modules else "they define none"
        raise InvalidArgument(
            f"--top {sources.top}: there is no such module in "
            f"{', '.join(str(path) for path in sources.files)} ({known})"
        )
    if diagnostics or not parsed:
        report = pyslang.DiagnosticEngine.reportAll(driver.sourceManager, diagnostics)
        raise InvalidDesign(f"the sources have errors:\n{report.strip()}{_remedy(report)}")
    (found,) = (top for top in compilation.getRoot().topInstances if top.name == sources.top)
    parameters = [str(item.name) for item in found.body.parameters]
    for name in sources.parameters:
        if name not in parameters:
            raise InvalidArgument(
                f"-G {name}: module '{sources.top}' has no such parameter "
                f"(expected one of {', '.join(parameters) or 'none'})"
            )
    return Elaborated(driver, compilation, found)


def _check_text(path: Path) -> None:
    if path.is_dir():
        raise InvalidArgument(f"'{path}' is a folder (expected a source file; -I takes folders)")
    if not path.is_file():
        raise InvalidArgument(f"there is no file '{path}'")
    try:
        with path.open("rb") as file:
            at = file.read(1 << 16).find(0)
    except OSError as error:
        raise InvalidArgument(f"'{path}' cannot be read: {error.strerror}") from None
    if at >= 0:
        raise InvalidArgument(f"'{path}' is no SystemVerilog source: byte {at} is zero")


def _remedy(report: str) -> str:
    """Return the remedy for the errors of a report, on a line of its own."""
    if "No such file" in report:
        return "\nName the folder of an included file with -I."
    if "unknown module" in report or "unknown package" in report or "unknown interface" in report:
        return "\nName every file that defines what is unknown, packages first."
    return ""


def read_sources(
    files: Sequence[Path],
    top: str,
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
) -> Sources:
    """Return the sources with absolute paths, so that a simulator may run elsewhere."""
    return Sources(
        tuple(Path(os.path.realpath(path)) for path in files),
        top,
        tuple(Path(os.path.realpath(path)) for path in include),
        tuple(defines),
        dict(parameters or {}),
    )
