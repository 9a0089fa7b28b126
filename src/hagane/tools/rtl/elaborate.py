"""From source files to an elaborated top module, by slang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, MissingExtra
from hagane.tools.rtl.errors import InvalidDesign


@dataclass(frozen=True, slots=True)
class Sources:
    """What is compiled: files in order, the top module, and the preprocessor's settings."""

    files: tuple[Path, ...]
    top: str
    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a source file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Elaborated:
    """An elaborated design; keeps slang's objects alive."""

    def __init__(self, driver: Any, compilation: Any, top: Any):
        self._driver = driver
        self._compilation = compilation
        self.top = top
        self._manager = driver.sourceManager
        self._paths: dict[Any, str] = {}

    def position(self, location: Any) -> Position:
        """Return where ``location`` is, outside of macros."""
        manager = self._manager
        location = manager.getFullyExpandedLoc(location)
        buffer = location.buffer
        if buffer not in self._paths:
            self._paths[buffer] = str(manager.getFullPath(buffer))
        return Position(
            self._paths[buffer],
            manager.getLineNumber(location),
            manager.getColumnNumber(location),
        )


def elaborate(sources: Sources) -> Elaborated:
    """Parse and elaborate ``sources``.

    Raises:
        MissingExtra: pyslang is not installed.
        InvalidArgument: A file, folder or the top module does not exist.
        InvalidDesign: The sources have errors; each is given with file, line and column.
    """
    try:
        import pyslang
        from pyslang import driver as slang
    except ImportError:
        raise MissingExtra("reading SystemVerilog", "rtl") from None
    for path in sources.files:
        if not path.is_file():
            raise InvalidArgument(f"there is no file '{path}'")
    for path in sources.include:
        if not path.is_dir():
            raise InvalidArgument(f"-I {path}: there is no such folder")
    driver = slang.Driver()
    driver.addStandardArgs()
    words = ["slang", "--single-unit", "-Wnone", "--allow-toplevel-iface-ports"]
    words += ["--top", sources.top]
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
    parsed = driver.parseAllSources()
    compilation = driver.createCompilation()
    diagnostics = [item for item in compilation.getAllDiagnostics() if item.isError()]
    if diagnostics or not parsed:
        report = pyslang.DiagnosticEngine.reportAll(driver.sourceManager, diagnostics)
        raise InvalidDesign(f"the sources have errors:\n{report.strip()}")
    found = [top for top in compilation.getRoot().topInstances if top.name == sources.top]
    if not found:
        raise InvalidArgument(
            f"--top {sources.top}: there is no such module in "
            f"{', '.join(str(path) for path in sources.files)}"
        )
    return Elaborated(driver, compilation, found[0])


def read_sources(
    files: Sequence[Path],
    top: str,
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
) -> Sources:
    """Return the sources with absolute paths, so that a simulator may run elsewhere."""
    return Sources(
        tuple(Path(path).resolve() for path in files),
        top,
        tuple(Path(path).resolve() for path in include),
        tuple(defines),
        dict(parameters or {}),
    )
