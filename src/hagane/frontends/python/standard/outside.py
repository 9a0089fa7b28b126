"""The world outside of a program: files, the system, chance, other processes."""

from __future__ import annotations

import contextlib
import random
import types
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.standard.executing import Executing
from hagane.frontends.python.values.loggers import SILENT
from hagane.frontends.python.values.objects import (
    Bound,
    Function,
    Wrapped,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    ListRef,
    Many,
    Outside,
    Real,
    Truth,
    Unknown,
    Value,
    is_size,
)
from hagane.symbolic import minimum

# Modules of the standard library whose functions tell of the world, or change it.
_WORLD = frozenset(
    ("os", "posix", "nt", "shutil", "pathlib", "tempfile", "glob", "sys", "subprocess", "pickle",
     "_pickle", "csv", "_csv", "socket", "datetime", "io", "_io", "gzip", "bz2", "lzma", "zipfile",
     "tarfile", "urllib", "http", "signal", "atexit", "platform", "getpass", "configparser",
     "fnmatch", "stat", "posixpath", "genericpath", "json", "hashlib", "_hashlib", "uuid",
     "resource", "textwrap", "pprint", "collections", "string", "unicodedata", "re", "struct",
     "_struct", "traceback", "locale", "tokenize", "base64", "zlib")
)  # fmt: skip
_ASKED = frozenset(
    ("exists", "lexists", "isfile", "isdir", "is_file", "is_dir", "islink", "isatty")
)
_DONE = frozenset(
    ("makedirs", "mkdir", "remove", "unlink", "rmdir", "rmtree", "chdir", "putenv", "touch",
     "rename", "replace", "dump", "register", "signal", "write", "flush", "close", "write_text",
     "write_bytes", "copyfile", "copy2", "copytree", "move", "pprint", "print_exc", "kill",
     "symlink", "cleanup", "system")
)  # fmt: skip
_ENDS = frozenset(("exit", "_exit", "abort"))


class World(Executing):
    """Calls functions that reach outside of the program."""

    def outside(self, what: str) -> Unknown:
        """Return a value from outside; it counts as unknown where a shape or a branch needs it."""
        if not self.emit.builds:
            return Outside(what, told=True)
        return Unknown(what, told=True) if "text" in what else self.lost(what)

    def loaded(self, what: str) -> Unknown:
        """Return the content of a file."""
        return self.outside(f"the content of {what}")

    def call_world(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a real function that reaches outside; ``MISSING`` where it does not."""
        owner = getattr(found, "__self__", None)
        of = owner if isinstance(owner, type | types.ModuleType) else type(owner)
        name = getattr(found, "__name__", "")
        module = (getattr(found, "__module__", None) or "").partition(".")[0]
        root = getattr(of, "__module__", "").partition(".")[0] if owner is not None else module
        if isinstance(owner, types.ModuleType):
            root = owner.__name__
        if name == "open" and found is open:
            return self.open_file(arguments[0] if arguments else keywords.get("file"))
        if name == "input" and found is input:
            return self.outside("a line that is typed")
        if root not in _WORLD and module not in _WORLD:
            return MISSING
        if self.emit.builds or any(_runs(value) for value in (*arguments, *keywords.values())):
            return MISSING
        if name in _ENDS and root in ("sys", "os", "posix"):
            self.dead = True
            return None
        if name in _ASKED:
            return Truth(self.unknown_truth())
        if name in _DONE:
            return None
        return self.outside(f"what '{module or root}.{name}' gives")

    # Chance.

    def call_chance(self, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function of ``random``."""
        if arguments and isinstance(getattr(arguments[0], "object", None), random.Random):
            arguments = arguments[1:]
        if name in ("seed", "setstate", "shuffle"):
            if name == "shuffle" and self.emit.builds:
                raise CheckError(
                    "capture",
                    "random.shuffle draws random numbers, of which a graph has none; draw an order "
                    "outside, and pass it in as an index",
                )
            if name == "shuffle" and isinstance(arguments[0], ListRef):
                content = self.heap[arguments[0]]
                if isinstance(content, tuple) and len(content) > 1:
                    items = self.many_items(list(content))
                    self.heap[arguments[0]] = Many(items.element, items.length)
                    if isinstance(items.element, int):
                        self.heap[arguments[0]] = Many(self.some_of(list(content)), len(content))
            return None
        if name in ("randint", "randrange", "getrandbits"):
            return self._drawn_whole(name, arguments)
        if name in ("choice", "sample", "choices"):
            found = self.sequence(arguments[0])
            one = found.element if isinstance(found, Many) else self.some_of(found)
            if name == "choice":
                return one
            count: Value = arguments[1] if len(arguments) > 1 else 1
            return self.new_list(Many(one, count if is_size(count) else self.emit.fresh("count")))
        if name == "getstate":
            return self.outside("the state of random numbers")
        return Real()

    def _drawn_whole(self, name: str, bounds: Sequence[Value]) -> Value:
        drawn = self.emit.fresh("drawn")
        if name == "randint" and len(bounds) == 2 and all(map(is_size, bounds)):
            low, high = bounds
        elif name == "randrange" and len(bounds) == 1 and is_size(bounds[0]):
            low, high = 0, bounds[0] - 1
        else:
            return drawn
        if low == high:
            return low
        return low + minimum(drawn, high - low)

    def some_of(self, items: list[Value]) -> Value:
        """Return an item of a list of which only the run knows the place."""
        if items and all(isinstance(item, int) for item in items) and len(set(items)) > 1:
            return self.emit.fresh("drawn")
        if items and all(isinstance(item, str) for item in items) and len(set(items)) > 1:
            return self.outside("one of several texts")
        lengths = {len(item) if type(item) in (tuple, Size) else -1 for item in items}
        if len(lengths) == 1 and min(lengths) > 0 and not self.emit.builds:
            return tuple(self.some_of(list(parts)) for parts in zip(*items, strict=True))
        return self.as_many(tuple(items))[0]

    # Records of a run.

    def _call_getLogger(self, *_: Value, **__: Value) -> Value:
        return Host(SILENT)

    def call_silent(self, found: Any, module: str, arguments: Sequence[Value]) -> Value:
        """Call a function that tells of a run: of the time, or to a person."""
        if isinstance(found, type) and module == "logging":
            return Host(SILENT)
        if isinstance(found, type) and module == "warnings":
            return Host(contextlib.nullcontext())
        name = getattr(found, "__name__", "")
        given = [self.real_of(value) for value in arguments] if name in _ASKS else [MISSING]
        if self.emit.builds and all(value is not MISSING for value in given):
            question = partial(found, *given)
            answer = question()
            self.observer.asked(found, question, answer)
            return self.lift(answer)
        if module == "gc" and name not in ("enable", "disable", "freeze", "unfreeze"):
            return self.outside(f"what 'gc.{name}' gives")
        if module != "time" or name == "sleep":
            return None
        if name.endswith("_ns"):
            return self.emit.fresh("time")
        if name.endswith("time") and name not in _TIMES:
            return self.outside(f"what 'time.{name}' gives")
        return Real()

    def _call_suppress(self, *_: Value) -> Value:
        return Host(contextlib.nullcontext())

    def _call_redirect_stdout(self, *_: Value) -> Value:
        return Host(contextlib.nullcontext())


# Questions about settings of a process.
_ASKS = ("isEnabledFor", "getEffectiveLevel", "hasHandlers", "getLevelName", "isenabled")
# Functions of ``time`` that give numbers; others give texts and parts of a date.
_TIMES = ("time", "process_time", "monotonic_time", "thread_time", "mktime")


def _runs(value: Value) -> bool:
    """Whether a function outside may run a value of the program."""
    return isinstance(value, Function | Bound | Wrapped)


__all__ = ["World"]
