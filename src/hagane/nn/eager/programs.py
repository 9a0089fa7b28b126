"""Programs of orders: found in the cache, else compiled beside by a process of their own.

``HAGANE_EAGER`` says how: ``off`` computes with NumPy alone; ``wait`` compiles a program when it is
first needed, in this process; otherwise a program is asked for once NumPy's calls in its place have
taken so long together that it pays, and NumPy serves until it is there.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hagane.errors import InvalidArgument
from hagane.machine import CodeCache, NoCompiler
from hagane.nn.eager.order import Order
from hagane.nn.eager.way import Way
from hagane.runtime.kept import find, key_of, source_state
from hagane.runtime.options import SessionOptions

if TYPE_CHECKING:
    from hagane.runtime.session import InferenceSession

# NumPy alone; a program when it is first needed; NumPy until there is a program.
Mode = Literal["off", "wait", "beside"]
# Seconds that NumPy's calls take together before a program is asked for.
_PATIENCE = 0.02
_CACHE = "eager"
_MODEL = "model.onnx"
_REFUSED = "refused"
_CHILD = "import sys; sys.path[:] = {!r}; from hagane.nn.eager.making import main; main()"


class Program:
    """A program, or the wish for one.

    Attributes:
        order: Its computation.
        names: Its inputs, once it is there; None before.
        run: From a feed by name to outputs.
        refused: Whether there can be none.
    """

    __slots__ = ("_asked", "_spent", "names", "order", "refused", "run")

    def __init__(self, order: Order | Way):
        self.order = order
        self.names: tuple[str, ...] | None = None
        self.run: Any = None
        self.refused = False
        self._asked = False
        self._spent = 0.0

    def spend(self, seconds: float) -> None:
        """Note the time of a call that the program would have served."""
        if self._asked or self.refused:
            return
        self._spent += seconds
        if self._spent > _PATIENCE:
            self._asked = True
            WORKSHOP.ask(self)

    def take(self, session: InferenceSession | None) -> None:
        """Become ready by a session; without one there is no program."""
        if session is None:
            self.refused = True
            return
        self.run = session.run
        self.names = tuple(item.name for item in session.get_inputs())


def options() -> SessionOptions:
    """Return the options of a program's session: one program for all sizes."""
    return SessionOptions(specialize=False)


def mode_of(environment: Mapping[str, str]) -> Mode:
    """Return how programs are made, as the environment says.

    Raises:
        InvalidArgument: It says something else.
    """
    match environment.get("HAGANE_EAGER", ""):
        case "":
            return "beside"
        case "off" | "wait" as found:
            return found
        case other:
            raise InvalidArgument(f"HAGANE_EAGER: expected 'off', 'wait' or nothing, got '{other}'")


def make(order: Order | Way) -> bool:
    """Put the session of an order into the cache, else note why not; whether it is there."""
    try:
        path = _made(order)
    except Exception as error:  # NumPy computes it then
        refuse(order, f"{type(error).__name__}: {error}")
        return False
    key = key_of(path, options())
    if key is None or find(key) is None:
        refuse(order, "it is not one native part for open sizes")
        return False
    return True


def _made(order: Order | Way) -> str:
    from hagane.graph import save
    from hagane.nn.eager.graphs import model_of
    from hagane.runtime.session import InferenceSession

    def write(folder: Path) -> None:
        save(model_of(order), folder / _MODEL)

    path = CodeCache(_CACHE).get_folder(_key(order), write) / _MODEL
    InferenceSession(path, options())
    return os.fspath(path)


def load(order: Order | Way) -> InferenceSession | None:
    """Return the session of an order if it is in the cache."""
    from hagane.runtime.session import InferenceSession

    found = CodeCache(_CACHE).find(_key(order))
    if found is None:
        return None
    path = os.fspath(found.parent / _MODEL)
    key = key_of(path, options())
    if key is None or find(key) is None:
        return None
    return InferenceSession(path, options())


def refuse(order: Order | Way, reason: str) -> None:
    """Note that there is no program of an order."""

    def write(folder: Path) -> None:
        (folder / _REFUSED).write_text(reason, encoding="utf-8")

    with suppress(NoCompiler):
        CodeCache(_CACHE).get_folder(_key(order) + _REFUSED, write)


def is_refused(order: Order | Way) -> bool:
    """Whether it was noted that there is no program of an order."""
    return CodeCache(_CACHE).find(_key(order) + _REFUSED) is not None


def _key(order: Order | Way) -> str:
    return f"{order!r}\n{_source()}"


@cache
def _source() -> str:
    """Return a hash of the state of the source as this process found it."""
    return source_state()


class Workshop:
    """The thread that loads programs, and the process that makes missing ones.

    Attributes:
        mode: How programs are made.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self._programs: dict[Order | Way, Program] = {}
        self._wanted: queue.Queue[Program] = queue.Queue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._left = self._made = 0

    def program(self, order: Order | Way) -> Program:
        """Return the program of an order; ready if programs are waited for."""
        found = self._programs.get(order)
        if found is None:
            found = self._programs[order] = Program(order)
            if self.mode == "wait":
                self._make_here(found)
        return found

    def programs(self) -> list[Program]:
        """Return all programs that calls had a use for."""
        return list(self._programs.values())

    def ask(self, program: Program) -> None:
        """Let a program be loaded or made."""
        with self._lock:
            self._left += 1
            self._tell()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="hagane-programs", daemon=True
                )
                self._thread.start()
                atexit.register(self._end)
        self._wanted.put(program)

    def renew(self) -> None:
        """Begin anew in a forked process, which has neither the thread nor the process."""
        self._wanted, self._lock = queue.Queue(), threading.Lock()
        self._thread = self._process = None
        self._left = self._made = 0

    def left(self) -> int:
        """Return how many programs were asked for and are not there yet."""
        return self._left

    def _make_here(self, program: Program) -> None:
        session = load(program.order)
        if session is None and not is_refused(program.order):
            self._left = 1
            self._tell()
            session = load(program.order) if make(program.order) else None
            self._left, self._made = 0, self._made + 1
            self._tell()
        program.take(session)

    def _serve(self) -> None:
        while True:
            program = self._wanted.get()
            try:
                program.take(self._found(program.order))
            except Exception:  # the program computes with NumPy then
                program.take(None)
            with self._lock:
                self._left -= 1
                self._made += 1
                self._tell()

    def _found(self, order: Order | Way) -> InferenceSession | None:
        session = load(order)
        if session is not None or is_refused(order):
            return session
        return load(order) if self._ask_process(order) else None

    def _tell(self) -> None:
        """Show on a terminal the number of programs that are ready, of all wanted ones."""
        if not sys.stderr.isatty():
            return
        every = self._made + self._left
        text = f"hagane: {self._made} of {every} kernels compiled" if self._left else ""
        sys.stderr.write(f"\r\x1b[2K{text}")  # the line is empty again in the end
        sys.stderr.flush()

    def _ask_process(self, order: Order | Way) -> bool:
        """Let the process make a program."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CHILD.format(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        content = pickle.dumps((order, os.getpid()))
        self._process.stdin.write(struct.pack("<q", len(content)) + content)
        self._process.stdin.flush()
        return self._process.stdout.read(1) == b"+"

    def _end(self) -> None:
        if self._process is not None:
            with suppress(OSError):
                os.killpg(self._process.pid, 9)


WORKSHOP = Workshop(mode_of(os.environ))
os.register_at_fork(after_in_child=WORKSHOP.renew)
