"""Updates of parameters in one pass, in C: NumPy's results to the bit, which serves until then."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from importlib import resources
from itertools import pairwise
from operator import is_
from pathlib import Path
from typing import Any

from hagane.machine import CodeCache, Lock, NoCompiler, best_level, find_compiler, usable_cores
from hagane.native.ready.extension import load_extension
from hagane.native.run.engine import load_engine
from hagane.nn.eager.programs import WORKSHOP

_FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-w", "-fno-math-errno", "-ffp-contract=off")
# As in updates.c: kinds of updates, those of float64 behind those of float32; a job.
_KINDS = {"descend": 0, "momentum": 1, "adam": 2}
_TYPES = {"f": 0, "d": len(_KINDS)}
_JOB = struct.Struct("=qq4Q6d")
_NUMBERS = struct.Struct("=6d")
_ADDRESS = struct.Struct("=Q")
_FIRST_ADDRESS, _FIRST_NUMBER = 16, 48


class Pass:
    """The update of one parameter, whose arrays stay where they are from call to call.

    Args:
        name: ``descend``, ``momentum`` or ``adam``.
        arrays: The parameter and its states.

    Attributes:
        bytes: The last job.
        start: The address of the parameter.
        read: That of the gradient of the last job.
    """

    __slots__ = ("_arrays", "_dtype", "_place", "_shape", "bytes", "read", "start")

    def __init__(self, name: str, arrays: tuple[Any, ...]):
        first = arrays[0]
        self._arrays = arrays  # which keeps their memory
        self._dtype, self._shape = first.dtype, first.shape
        addresses = [UPDATES.address(x) for x in arrays]
        self.start = addresses[0]
        self.read = 0
        addresses += [0] * (4 - len(addresses))
        kind = _KINDS[name] + _TYPES[first.dtype.char]
        self.bytes = bytearray(_JOB.pack(kind, first.size, *addresses, *[0.0] * 6))
        self._place = _FIRST_ADDRESS + _ADDRESS.size * len(arrays)

    @classmethod
    def of(cls, name: str, arrays: tuple[Any, ...]) -> Pass | None:
        """Return the update of some arrays, None if they do not lie as C wants them."""
        first = arrays[0]
        if first.dtype.char not in _TYPES:
            return None
        for x in arrays:
            if x.dtype != first.dtype or x.shape != first.shape or not _lies_plain(x):
                return None
        starts = sorted(map(UPDATES.address, arrays))
        if any(b - a < first.nbytes for a, b in pairwise(starts)):
            return None
        return cls(name, arrays)

    def is_for(self, arrays: tuple[Any, ...]) -> bool:
        """Whether it updates these arrays, and no others."""
        return all(map(is_, self._arrays, arrays))

    def job(self, grad: Any, numbers: Sequence[float]) -> bytearray | None:
        """Return the update as C reads it, None where the gradient does not fit.

        Args:
            grad: The gradient.
            numbers: The hyperparameters, six.
        """
        if grad.dtype != self._dtype or grad.shape != self._shape or not _lies_plain(grad):
            return None
        address = UPDATES.address(grad)
        if abs(address - self.start) < grad.nbytes:
            return None
        self.read = address
        _ADDRESS.pack_into(self.bytes, self._place, address)
        _NUMBERS.pack_into(self.bytes, _FIRST_NUMBER, *numbers)
        return self.bytes


class Updates:
    """The compiled updates, asked for by the first use, on the threads of the engine.

    Attributes:
        address: Returns where the first element of an array lies.
    """

    def __init__(self) -> None:
        self.address: Callable[[Any], int] = _address
        self._function: Any = None
        self._engine: tuple[Any, ...] = ()
        self._asked = False
        self._lock = Lock()

    def is_there(self) -> bool:
        """Whether updates can be run."""
        if WORKSHOP.mode == "off":
            return False
        if self._function is None and not self._asked:
            self._ask()
        return self._function is not None

    def run(self, jobs: Sequence[bytearray]) -> None:
        """Update parameters in place."""
        with self._lock:
            self._function(len(jobs), b"".join(jobs), *self._engine)

    def _ask(self) -> None:
        self._asked = True
        if WORKSHOP.mode == "wait":
            self._load()
        else:
            threading.Thread(target=self._load, daemon=True).start()

    def _load(self) -> None:
        try:
            function, engine = _compiled().hg_updates, load_engine()
        except (NoCompiler, OSError):
            return  # NumPy serves
        program = engine.create(1, usable_cores(), 0)
        if not program:
            return
        function.argtypes = [ctypes.c_int64, ctypes.c_char_p, *[ctypes.c_void_p] * 3]
        function.restype = None
        extension = load_extension()
        if extension is not None:
            self.address = extension.address
        self._engine = program, engine.address("hg_set_phase"), engine.address("hg_run")
        self._function = function


def _address(x: Any) -> int:
    found: int = x.__array_interface__["data"][0]
    return found


def _lies_plain(x: Any) -> bool:
    flags = x.flags
    return bool(flags.c_contiguous and flags.aligned)


def _compiled() -> ctypes.CDLL:
    source = (resources.files("hagane.nn.eager") / "updates.c").read_text(encoding="utf-8")
    compiler = find_compiler()
    flags = (*_FLAGS, *best_level().flags)
    key = "\0".join((source, *flags, *compiler.command, compiler.version))

    def make(folder: Path) -> Path:
        written = folder / "updates.c"
        written.write_text(source, encoding="utf-8")
        library = folder / "updates.so"
        compiler.build([written], library, flags, libraries=("-lm",))
        return library

    return CodeCache("native").load(key, make, lambda path: ctypes.CDLL(str(path)))


UPDATES = Updates()
