"""The training loop."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import remove_begun
from hagane.nn.reporter import Reporter
from hagane.nn.serializers.serializer import Serializer
from hagane.training.alone import alone
from hagane.training.expected import fail, need
from hagane.training.extension import PRIORITY_READER
from hagane.training.extensions.snapshots import Snapshot, load_newest, save_at_error
from hagane.training.saved import optional
from hagane.training.triggers import IntervalTrigger, ManualScheduleTrigger, get_trigger

_logger = logging.getLogger("hagane.training")


@dataclass(frozen=True, slots=True)
class _Entry:
    extension: Any
    priority: int
    trigger: Callable[[Any], bool]
    call_before_training: bool


class Trainer:
    """Updates until it is time to stop, and calls extensions after the updates.

    Args:
        updater: Does one iteration.
        stop_trigger: When to stop: a pair of length and unit, or a trigger; None for never.
        out: The folder of the extensions' files.
        extensions: Extensions to begin with.

    Attributes:
        observation: Values reported in the last iteration, by name.
        reporter: Knows the links of the optimizers' targets by name.
    """

    def __init__(
        self,
        updater: Any,
        stop_trigger: Any = None,
        out: str = "result",
        extensions: Iterable[Any] | None = None,
    ):
        expected = "an updater such as StandardUpdater(iterator, optimizer)"
        need("Trainer: updater", updater, expected, "get_all_optimizers", "connect_trainer")
        if not isinstance(out, str | os.PathLike):
            raise fail("Trainer: out", "the path of a folder", out)
        if isinstance(extensions, str) or not isinstance(extensions, Iterable | None):
            raise fail("Trainer: extensions", "a list of extensions", extensions)
        self.updater = updater
        self.stop_trigger = stop_trigger
        self.observation: dict[str, Any] = {}
        self.out = out
        self.reporter = Reporter()
        for name, optimizer in updater.get_all_optimizers().items():
            self.reporter.add_observer(name, optimizer.target)
            self.reporter.add_observers(name, optimizer.target.namedlinks(skipself=True))
        self._entries: dict[str, _Entry] = {}
        self._anew: frozenset[str] = frozenset()
        self._done = False
        self._start: float | None = None
        self._elapsed_before = 0.0
        self._final = 0.0
        updater.connect_trainer(self)
        for extension in extensions or ():
            self.extend(extension)

    @property
    def stop_trigger(self) -> Any:
        """When to stop; a pair of length and unit that it is set to becomes a trigger."""
        return self._stop_trigger

    @stop_trigger.setter
    def stop_trigger(self, given: Any) -> None:
        self._stop_trigger: Any = get_trigger(given)

    @property
    def is_before_training(self) -> bool:
        """Whether no update was done."""
        return bool(self.updater.iteration == 0)

    @property
    def elapsed_time(self) -> float:
        """Seconds of training, those before a snapshot that was loaded included.

        Raises:
            RuntimeError: Training has not begun.
        """
        if self._done:
            return self._final
        if self._start is None:
            raise RuntimeError("training has not been started yet")
        return time.perf_counter() - self._start + self._elapsed_before

    def extend(
        self,
        extension: Any,
        name: str | None = None,
        trigger: Any = None,
        priority: int | None = None,
        *,
        call_before_training: bool = False,
    ) -> None:
        """Register an extension.

        Args:
            extension: Called with the trainer.
            name: Its name, by default its attribute ``name``, ``default_name`` or ``__name__``;
                a name that is taken gets a number.
            trigger: When it is called, by default its attribute ``trigger`` or each iteration.
            priority: Higher ones are called earlier; by default its attribute ``priority``.
            call_before_training: Call it before the first update too.

        Raises:
            TypeError: It has no name, cannot be called, or is a class.
            InvalidArgument: The name is ``training``.
        """
        if isinstance(extension, type) or not callable(extension):
            made = f": make one, as in {extension.__name__}()" if callable(extension) else ""
            got = f"the class {extension.__name__}" if made else repr(extension)
            raise TypeError(f"extend: expected an extension or a function, got {got}{made}")
        for attribute in ("name", "default_name", "__name__"):
            name = getattr(extension, attribute, None) if name is None else name
        if name is None:
            raise TypeError(
                f"name is not given for the extension {type(extension).__name__}: "
                "pass name= to extend"
            )
        if name == "training":
            raise InvalidArgument('the name "training" is prohibited as an extension name')
        taken, ordinal = name, 0
        while name in self._entries:
            ordinal += 1
            name = f"{taken}_{ordinal}"
        if trigger is None:
            trigger = getattr(extension, "trigger", (1, "iteration"))
        if priority is None:
            priority = getattr(extension, "priority", PRIORITY_READER)
        with contextlib.suppress(AttributeError):  # bound methods have no attributes of their own
            extension.name = name
        self._entries[name] = _Entry(
            extension, priority, get_trigger(trigger), call_before_training
        )

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions by name, in the order of their registration."""
        return {name: entry.extension for name, entry in self._entries.items()}

    def get_extension(self, name: str) -> Any:
        """Return an extension.

        Raises:
            InvalidArgument: There is none of that name.
        """
        if name not in self._entries:
            raise InvalidArgument(
                f"extension {name} not found: there are {sorted(self._entries) or 'none'}"
            )
        return self._entries[name].extension

    def run(self, show_loop_exception_msg: bool = True, *, resume: str | None = None) -> None:
        """Train until the stop trigger fires.

        Args:
            show_loop_exception_msg: Print an error before extensions are finalized.
            resume: ``auto`` continues from the newest snapshot in ``out`` that is whole, if there
                is one; a path from that one.

        Raises:
            RuntimeError: It has run already.
            InvalidArgument: ``resume="auto"`` without a ``snapshot`` extension.
        """
        if self._done:
            raise RuntimeError("cannot run training loop multiple times")
        if not isinstance(resume, str | os.PathLike | None):
            raise InvalidArgument(f"run: resume: expected 'auto', a path or None, got {resume!r}")
        _make_folder(self.out)
        remove_begun(self.out)
        with alone(self.out) as first:
            if not first:
                _logger.warning(
                    f"another run writes into '{self.out}' now: its log and snapshots and those "
                    "of this one replace each other; give one of them a folder of its own (out)"
                )
            self._run(show_loop_exception_msg, resume)

    def _run(self, show_loop_exception_msg: bool, resume: str | None) -> None:
        if resume is not None:
            load_newest(self, resume, [entry.extension for entry in self._entries.values()])
        # A run is saved behind all others of its priority, whose triggers have decided by then.
        order = sorted(self._entries.items(), key=lambda item: (
            -item[1].priority, _saves_runs(item[1].extension)
        ))  # fmt: skip
        self._start = time.perf_counter()
        # Extensions that load a snapshot go first: others restore hyperparameters from it.
        for name, entry in sorted(order, key=lambda item: not _loads(item[1].extension)):
            initialize = getattr(entry.extension, "initialize", None)
            if initialize and not getattr(entry.trigger, "finished", False):
                with _named(f"in initialize of extension '{name}'"):
                    initialize(self)
        ended = False
        try:
            self._loop(order)
            ended = True
        except Exception as error:
            self._failed(error, order, show_loop_exception_msg)
            raise
        finally:
            self._finalize(order, ended)
        self._final = self.elapsed_time
        self._done = True

    def _loop(self, order: list[tuple[str, _Entry]]) -> None:
        if self.is_before_training:
            self.observation = {}
            with self.reporter.scope(self.observation):
                for name, entry in order:
                    if entry.call_before_training:
                        self._call(name, entry)
        began, called = self.updater.iteration, set[str]()
        end = self.stop_trigger
        if began and isinstance(end, IntervalTrigger) and end.is_over(self.updater):
            _logger.warning(
                f"nothing is left to do: the snapshot is of iteration {began}, and training ends "
                f"after {end.period} {end.unit}s"
            )
            return
        while not self.stop_trigger(self):
            self.observation = {}
            with self.reporter.scope(self.observation):
                try:
                    self.updater.update()
                except StopIteration as error:
                    error.add_note(
                        f"an iterator has ended after {self.updater.iteration} iterations, before "
                        "training: make it with repeat=True, or stop earlier"
                    )
                    raise
                for name, entry in order:
                    if self._is_due(name, entry):
                        called.add(name)
                        self._call(name, entry)
        if began == 0:
            self._tell_unused(called)

    def _tell_unused(self, called: Set[str]) -> None:
        """Warn of extensions for which a whole run was too short."""
        if self.is_before_training:
            _logger.warning("no update was done: the stop trigger fired at once")
            return
        for name, entry in self._entries.items():
            trigger = entry.trigger
            known = name in called or entry.call_before_training
            if isinstance(trigger, IntervalTrigger):
                told, remedy = f"({trigger.period}, '{trigger.unit}')", "a shorter one"
            elif isinstance(trigger, ManualScheduleTrigger):
                told, remedy = (
                    f"of the points {trigger.points} in {trigger.unit}s",
                    "earlier points",
                )
            else:
                continue
            if not known:
                _logger.warning(
                    f"extension '{name}' was not called: the run ended after "
                    f"{self.updater.iteration} iterations, before its trigger {told} fired; give "
                    f"extend {remedy}"
                )

    def _finalize(self, order: list[tuple[str, _Entry]], ended: bool) -> None:
        """Finalize everything, though some of it raises; an error counts if training ended."""
        errors = []
        for name, entry in order:
            try:
                with _named(f"in finalize of extension '{name}'"):
                    (getattr(entry.extension, "finalize", None) or _nothing)()
            except Exception as error:
                errors.append(error)
        try:
            self.updater.finalize()
        except Exception as error:
            errors.append(error)
        if errors and ended:
            raise errors[0]
        for each in errors:
            _logger.warning(f"{each}\n{''.join(getattr(each, '__notes__', ()))}")

    def _is_due(self, name: str, entry: _Entry) -> bool:
        with _named(f"in extension '{name}', its trigger, at iteration {self.updater.iteration}"):
            return bool(entry.trigger(self))

    def _call(self, name: str, entry: _Entry) -> None:
        with _named(f"in extension '{name}' at iteration {self.updater.iteration}"):
            entry.extension(self)

    def _failed(self, error: Exception, order: list[tuple[str, _Entry]], show: bool) -> None:
        if show:
            _print_error("Exception in main training loop", error)
            print(
                "Will finalize trainer extensions and updater before reraising the exception.",
                file=sys.stderr,
            )
        for _, entry in order:
            handler = getattr(entry.extension, "on_error", None)
            if handler:
                try:
                    handler(self, error, error.__traceback__)
                except Exception as another:
                    _print_error("Exception in error handler", another)
        try:
            save_at_error(self, error, [entry.extension for _, entry in order])
        except Exception as another:
            _logger.warning(f"the state at the error was not saved: {another}")

    @contextlib.contextmanager
    def begin_anew(self, names: Iterable[str]) -> Iterator[None]:
        """Leave extensions as they are while others are read from a snapshot."""
        self._anew = frozenset(names)
        try:
            yield
        finally:
            self._anew = frozenset()

    def serialize(self, serializer: Any) -> None:
        """Read or write the state of everything, also of the generators of NumPy and ``random``.

        Chainer's snapshots lack the random states; these then stay as they are.
        """
        self.updater.serialize(serializer["updater"])
        if hasattr(self.stop_trigger, "serialize"):
            self.stop_trigger.serialize(serializer["stop_trigger"])
        extensions, triggers = serializer["extensions"], serializer["extension_triggers"]
        for name, entry in self._entries.items():
            if name in self._anew:
                continue
            if hasattr(entry.extension, "serialize"):
                entry.extension.serialize(extensions[name])
            if hasattr(entry.trigger, "serialize"):
                entry.trigger.serialize(triggers[name])
        _serialize_random(serializer["random_state"])
        if isinstance(serializer, Serializer):
            started = self._start is not None or self._done
            elapsed = self.elapsed_time if started else self._elapsed_before
            serializer("_snapshot_elapsed_time", elapsed)
        else:
            self._elapsed_before = float(serializer("_snapshot_elapsed_time", 0.0))


def _nothing() -> None:
    """Do nothing."""


@contextlib.contextmanager
def _named(note: str) -> Iterator[None]:
    """Add a note to errors."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(
            f"Trainer: out: expected the path of a folder, got '{path}', which cannot be made: "
            f"{error.strerror}"
        ) from None


def _saves_runs(extension: Any) -> bool:
    """Whether an extension saves the trainer itself."""
    return isinstance(extension, Snapshot) and extension.target is None


def _loads(extension: Any) -> bool:
    return getattr(extension, "autoload", False) is True


def _print_error(what: str, error: Exception) -> None:
    print(f"{what}: {error}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(note, file=sys.stderr)
    print("Traceback (most recent call last):", file=sys.stderr)
    traceback.print_tb(error.__traceback__)


def _serialize_random(serializer: Any) -> None:
    """Read or write the state of ``numpy.random``."""
    state = np.random.get_state(legacy=False)
    inner = state["state"]
    keys = optional(serializer, "key", np.array(inner["key"]))
    if keys is None:
        return
    position = serializer("pos", int(inner["pos"]))
    has_gauss = serializer("has_gauss", int(state["has_gauss"]))
    gauss = serializer("gauss", float(state["gauss"]))
    if not isinstance(serializer, Serializer):
        loaded = {"key": np.asarray(keys, np.uint32), "pos": int(position)}
        np.random.set_state(
            {
                "bit_generator": state["bit_generator"],
                "state": loaded,
                "has_gauss": int(has_gauss),
                "gauss": float(gauss),
            }
        )
    _serialize_python_random(serializer["python"])


def _serialize_python_random(serializer: Any) -> None:
    """Read or write the state of ``random``, from which datasets draw too."""
    version, words, gauss = random.getstate()
    found = optional(serializer, "words", np.array(words, np.uint32))
    if found is None:
        return
    kept = serializer("gauss", np.nan if gauss is None else gauss)
    if not isinstance(serializer, Serializer):
        number = None if np.isnan(kept) else float(kept)
        random.setstate((version, tuple(np.asarray(found).tolist()), number))
