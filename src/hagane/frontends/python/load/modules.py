"""Modules: names from source, from the running Python, or from a library's tables."""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hagane.frontends.python.interpret.reading.attributes import READ_INSTALLED
from hagane.frontends.python.interpret.reading.packages import (
    gives_up,
    imported,
    is_installed,
    lacks,
)
from hagane.frontends.python.interpret.running import Observer
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.lazily import (
    alone,
    imported_name,
    is_absolute,
    is_of_other,
    lazy_imports,
    may_define,
    source_of,
)
from hagane.frontends.python.load.places import folders_of_imports, source_at
from hagane.frontends.python.load.process import Process
from hagane.frontends.python.report.findings import CheckError, Note, Problem
from hagane.frontends.python.report.sources import NOTEBOOK, lines_of, read_source
from hagane.frontends.python.values.loggers import SILENT
from hagane.frontends.python.values.objects import (
    Class,
    Frame,
    Instance,
    ModuleRef,
)
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Host,
    Library,
    ListRef,
    Place,
    SetRef,
    Unknown,
    Value,
)

# Modules of the standard library are imported for real; their functions run only if pure.
_STANDARD = frozenset(sys.stdlib_module_names)
# With packages whose functions are called as the standard library's are: texts in, texts out.
STANDARD = _STANDARD | {"regex", "typing_extensions"}
# Statements at module level that define something; others would have effects.
_DEFINING = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign,
    ast.AnnAssign, ast.AugAssign, ast.If, ast.Try, ast.Pass,
)  # fmt: skip
# Methods that fill a container or a registry of the program's.
_FILLING = frozenset(
    ("add", "append", "extend", "insert", "register", "register_module", "setdefault", "update")
)


_OF_NOTEBOOKS = ("display", "get_ipython")  # names that IPython defines
_CONSTANTS = (bool, type(None), type(Ellipsis))


class Modules(Process):
    """Loads modules and finds their names."""

    tables: Tables
    observer: Observer
    root: Path
    held: Mapping[str, str] = MappingProxyType({})  # texts that stand for files, by absolute path
    runs_modules = False  # whether statements with effects are followed too

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._met: set[ast.stmt] = set()  # imports that are asked for by now

    def run_script(self, path: Path) -> ModuleRef:
        """Interpret a file as ``python FILE`` runs it, and all that it imports.

        Raises:
            CheckError: The file cannot be read or is not Python.
        """
        self.runs_modules = True
        return self.load_source(path, "__main__")

    def load_source(self, path: Path, name: str, *, is_user: bool = True) -> ModuleRef:
        """Interpret a module's definitions from its source.

        Raises:
            CheckError: The file cannot be read or is not Python.
        """
        if str(path) in self.modules:
            return self.modules[str(path)]
        tree = parse_file(path, self.held.get(str(path.absolute())))
        module = ModuleRef(
            self.heap.new({"__name__": name, "__file__": str(path)}), name, str(path), {}, is_user
        )
        self.modules[str(path)] = module
        frame = _frame_of(module)
        outer, self.frame = self.frame, frame
        # Errors of another module are told where the checked one uses it.
        muted = outer is not None
        self.collector.muted += muted
        try:
            for statement in tree.body:
                lazy = lazy_imports(statement)
                if lazy is not None:
                    self._wait_for(module, lazy)
                elif self.runs_modules:
                    if not self.dead:
                        self._execute_one(statement)
                elif self._is_defining(statement):
                    self._execute_one(statement)
                    self.dead = False
                elif not _is_text(statement):
                    self.collector.nodes[frame.key] = statement
                    self.collector.notice(
                        self.here(),
                        f"not run: '{_first_line(statement)}' has effects at import",
                    )
        finally:
            self.frame = outer
            self.dead = False
            self.collector.muted -= muted
        return module

    def _is_defining(self, statement: ast.stmt) -> bool:
        """Whether a statement binds names, or fills a container of the module's, and no more."""
        if isinstance(statement, ast.For):
            return all(map(self._is_defining, [*statement.body, *statement.orelse]))
        call = statement.value if isinstance(statement, ast.Expr) else None
        method = call.func if isinstance(call, ast.Call) else None
        if not isinstance(method, ast.Attribute) or method.attr not in _FILLING:
            return isinstance(statement, _DEFINING)
        if not isinstance(method.value, ast.Name) or self.frame is None:
            return False
        held = self.heap[self.frame.key].get(method.value.id)
        own = isinstance(held, Instance) and isinstance(held.cls, Class)
        return own or isinstance(held, DictRef | ListRef | SetRef)

    def module_attribute(self, module: ModuleRef, name: str) -> Value:
        """Return a name of a module of the program."""
        found = self.heap[module].get(name, MISSING)
        if found is not MISSING:
            return found
        if name in module.host:
            self.observer.global_name(module, name)
            found = self.lift(module.host[name])
            self.heap[module][name] = found
            return found
        inner = Path(module.file).parent / f"{name}.py"
        if Path(module.file).name == "__init__.py" and inner.is_file():
            return self.load_source(inner, f"{module.name}.{name}")
        if module.file not in self.lazy:
            return MISSING
        package = Path(module.file).parent / name / "__init__.py"
        if Path(module.file).name == "__init__.py" and package.is_file():
            return self.load_source(package, f"{module.name}.{name}")
        return self._lazily(module, name)

    def _wait_for(self, module: ModuleRef, imports: Sequence[ast.Import | ast.ImportFrom]) -> None:
        """Let names be those that imports give at their first use."""
        self.lazy[module.file] = (*imports, *self.lazy.get(module.file, ()))
        for statement in imports:
            for alias in statement.names:
                self.heap[module].pop(imported_name(statement, alias), None)

    def _waits(self, statement: ast.Import | ast.ImportFrom) -> bool:
        """Whether an import of an installed package waits until one of its names is asked for."""
        frame = self.frame
        assert frame is not None
        if frame.key != frame.module.key or self.emit.builds or statement in self._met:
            return False
        if self.knowledge.path.decisions or not is_of_other(
            Path(frame.file), statement, STANDARD, self.tables.knows
        ):
            return False
        self._wait_for(frame.module, [statement])
        return True

    def _lazily(self, module: ModuleRef, name: str) -> Value:
        """Return a name that a module imports at its first use."""
        outer, self.frame = self.frame, _frame_of(module)
        try:
            for statement in self.lazy[module.file]:
                for alias in statement.names:
                    if alias.name == "*" and isinstance(statement, ast.ImportFrom):
                        source = source_of(module.file, statement)
                        if source is None or not may_define(source, name):
                            continue
                        inner = self._from_module(statement)
                        found = MISSING
                        if isinstance(inner, ModuleRef):
                            found = self.module_attribute(inner, name)
                        if found is MISSING:
                            continue
                        self.heap[module][name] = found
                    elif imported_name(statement, alias) == name:
                        self._met.add(one := alone(statement, alias))
                        self._execute_one(one)
                    else:
                        continue
                    return self.heap[module][name]
        finally:
            self.frame = outer
        return MISSING

    def global_name(self, module: ModuleRef, name: str) -> Value:
        """Return a name of a module, or a built-in one."""
        found = self.module_attribute(module, name)
        if found is not MISSING:
            return found
        self.observer.global_name(module, name)  # one of the module would come first
        built_in = getattr(builtins, name, MISSING)
        if built_in is MISSING and name in _OF_NOTEBOOKS and Path(module.file).suffix == NOTEBOOK:
            return Host(SILENT)
        if built_in is MISSING and module.file in self.from_outside.ran_texts:
            return Unknown("a name that a text may have set which 'exec' ran", told=True)
        if built_in is MISSING:
            raise CheckError("name", f"NameError: the name '{name}' is not defined")
        return built_in if isinstance(built_in, _CONSTANTS) else Host(built_in)

    # Import statements.

    def _do_Import(self, node: ast.Import) -> None:
        assert self.frame is not None
        if self._waits(node):
            return
        for alias in node.names:
            if alias.asname is None:
                top = alias.name.partition(".")[0]
                self.import_module(alias.name)
                self.heap[self.frame.key][top] = self.import_module(top)
            else:
                self.heap[self.frame.key][alias.asname] = self.import_module(alias.name)

    def _do_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert self.frame is not None
        if node.module == "__future__":
            for alias in node.names:
                feature = Host(getattr(__future__, alias.name, None))
                self.heap[self.frame.key][alias.asname or alias.name] = feature
            return
        if self._waits(node):
            return
        module = self._from_module(node)
        names = self.heap[self.frame.key]
        for alias in node.names:
            if alias.name == "*":
                self._import_all(module)
                continue
            found = self._imported(module, alias.name)
            names[alias.asname or alias.name] = found

    def _from_module(self, node: ast.ImportFrom) -> Value:
        assert self.frame is not None
        if not node.level:
            return self.import_module(node.module or "")
        package = self.frame.module.host.get("__package__") or ""
        above = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
        running = self._running(".".join(filter(None, (above, node.module))))
        if running is not None:
            return running
        folder = Path(self.frame.file).parent
        for _ in range(node.level - 1):
            folder = folder.parent
        parts = (node.module or "").split(".") if node.module else []
        return self._source_module(folder.joinpath(*parts), ".".join(parts) or folder.name)

    def _imported(self, module: Value, name: str) -> Value:
        if isinstance(module, Unknown):
            return module
        if isinstance(module, ModuleRef):
            found = self.module_attribute(module, name)
            if found is MISSING and module.host:
                running = getattr(sys.modules.get(module.name), name, MISSING)  # made at first use
                found = running if running is MISSING else self.lift(running)
            if found is MISSING:
                folder = Path(module.file).parent / name
                found = self._source_module(folder, f"{module.name}.{name}")
            return found
        if isinstance(module, Host):
            try:
                found = getattr(module.object, name, MISSING)
                if found is MISSING:
                    found = importlib.import_module(f"{module.object.__name__}.{name}")
            except ImportError:
                raise CheckError("import", f"ImportError: cannot import name '{name}'") from None
            return self.lift(found)
        found = self.find_attribute(module, name)
        if found is MISSING:
            raise CheckError("import", f"ImportError: cannot import name '{name}'")
        return found

    def _import_all(self, module: Value) -> None:
        assert self.frame is not None
        names = self.heap[self.frame.key]
        if isinstance(module, ModuleRef):
            found = {n: v for n, v in self.heap[module].items() if not n.startswith("_")}
            names.update(found)
            own = self.frame.module.file
            waiting = (one for one in self.lazy.get(module.file, ()) if is_absolute(one))
            self.lazy[own] = (*self.lazy.get(own, ()), *waiting)
        elif isinstance(module, Host):
            names.update({n: self.lift(v) for n, v in vars(module.object).items() if n[0] != "_"})
        else:
            self.from_outside.ran_texts.add(self.frame.module.file)
            self.lost("the names of 'import *'")

    def import_module(self, name: str) -> Value:
        """Return the result of ``import name``; only the standard library's code runs."""
        top = name.partition(".")[0]
        runs = self.emit.builds and self.frame is not None and bool(self.frame.module.host)
        # (Of Chainer the tables know what hagane has in its place.)
        if runs and not (self.tables.knows(name) and top not in sys.modules) and lacks(name):
            raise CheckError("import", f"ModuleNotFoundError: No module named '{name}'")
        if self.imports and name.startswith(READ_INSTALLED) and (real := imported(name)):
            return self.lift(real)
        if self.tables.knows(name):
            return Library(name)
        if top in _STANDARD or (top in STANDARD and importlib.util.find_spec(top)):
            return Host(importlib.import_module(name))
        assert self.frame is not None
        running = self._running(name)
        if running is not None:
            return running
        for folder in (
            *folders_of_imports(Path(self.frame.file), self.root),
            *self.added_folders(),
        ):
            found = source_at(folder.joinpath(*name.split(".")))
            if found is not None:
                return self.load_source(found, name)
        real = imported(name) if self.imports and not self.tables.describes(top) else None
        if real is not None:
            return self.lift(real)
        self._may_lack(top)
        return Library(name)

    def _may_lack(self, top: str) -> None:
        """Raise Python's error for a package that is not installed, where the program copes."""
        if self.emit.builds or self.tables.describes(top):
            return
        error = CheckError("import", f"ModuleNotFoundError: No module named '{top}'")
        around = next((h for h in reversed(self.handlers) if h.frame is self.frame), None)
        clause = None if around is None else self.clause_for(around, error)
        if clause is None or any(map(gives_up, clause.body)) or is_installed(top):
            return
        if self.catches(error):
            self.collector.notice(
                self.here(), f"'{top}' is not installed: the path without it is checked"
            )
            raise error

    def _running(self, name: str) -> Value | None:
        """Return a module that is imported already, where the code that imports it is too."""
        assert self.frame is not None
        found = sys.modules.get(name) if self.frame.module.host else None
        return None if found is None else self.lift(found)

    def _source_module(self, path: Path, name: str) -> Value:
        found = source_at(path)
        if found is None:
            return self.lost(f"the module '{name}', which is not beside this file")
        return self.load_source(found, name)


def _frame_of(module: ModuleRef) -> Frame:
    return Frame(module.key, module.file, module, None, module.is_user, caller=None)


def parse_file(path: Path, held: str | None = None) -> ast.Module:
    """Return the syntax tree of a source file.

    Args:
        path: The file.
        held: Its text where that is not the one on the disk, as in an editor.

    Raises:
        SourceError: It cannot be read, or is not Python.
    """
    expected = "a notebook" if path.suffix == NOTEBOOK else "Python source"
    try:
        text = read_source(path) if held is None else held
    except FileNotFoundError:
        raise SourceError(None, f"there is no file '{path}'; expected {expected}") from None
    except (OSError, ValueError) as error:
        raise SourceError(None, f"'{path}' cannot be read: {error}; expected {expected}") from None
    try:
        with warnings.catch_warnings():  # Python's own, of strings and comparisons
            warnings.simplefilter("ignore")
            return ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        column = getattr(error, "offset", None) or 1
        lines = lines_of(text)
        place = Place(str(path), line, column, line, column + 1)
        source = lines[line - 1] if line <= len(lines) else ""
        message = getattr(error, "msg", str(error))
        raise SourceError(
            Problem(place, "syntax", f"SyntaxError: {message}", source), message
        ) from None
    except RecursionError:
        raise SourceError(None, f"'{path}' is nested too deeply to be parsed") from None


class SourceError(CheckError):
    """A file that cannot be checked at all; ``problem`` says where it is wrong, if it is."""

    def __init__(self, problem: Problem | None, message: str):
        super().__init__("source", message)
        self.problem = problem


def is_script(path: Path, held: str | None = None) -> bool:
    """Whether a file that can be read does more than define something when it is run."""
    try:
        body = parse_file(path, held).body
    except SourceError:
        return False
    quiet = _quiet_names(body)
    return any(_is_main_guard(s) or _has_effects(s) or _computes(s, quiet) for s in body)


def _quiet_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Return names whose calls make nothing to check: Python's own, and its library's."""
    names = set(dir(builtins))
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name.partition(".")[0] in _STANDARD:
                    names.add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(statement, ast.ImportFrom):
            top = (statement.module or "").partition(".")[0]
            if not statement.level and top in _STANDARD:
                names.update(alias.asname or alias.name for alias in statement.names)
    return frozenset(names)


def _computes(statement: ast.stmt, quiet: frozenset[str]) -> bool:
    """Whether a statement of a module sets a name to what a call of other code gives."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            called: ast.expr = node.func
            while isinstance(called, ast.Attribute):
                called = called.value
            if not isinstance(called, ast.Name) or called.id not in quiet:
                return True
    return False


def effects_at_import(path: Path) -> list[Note]:
    """Return the statements of a module that do more than define something."""
    notes = []
    for statement in parse_file(path).body:
        if _has_effects(statement) and not _is_main_guard(statement):
            place = Place(
                str(path), statement.lineno, statement.col_offset + 1, statement.lineno, 0
            )
            notes.append(Note(place, _first_line(statement)))
    return notes


def _has_effects(statement: ast.stmt) -> bool:
    if _is_text(statement):
        return False
    return not isinstance(statement, _DEFINING)


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _first_line(statement: ast.stmt) -> str:
    return ast.unparse(statement).partition("\n")[0]


__all__ = [
    "Any",
    "Modules",
    "Sequence",
    "SourceError",
    "effects_at_import",
    "is_script",
    "parse_file",
]
