"""Exceptions: raising, handlers, and code that runs in any case."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.leaving.unwinding import Cleanup, Unwinding
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import OWN, CheckError
from hagane.frontends.python.values.objects import (
    Class,
    Frame,
    Instance,
)
from hagane.frontends.python.values.placeholders import other_path
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Library,
    Unknown,
    Value,
)
from hagane.symbolic.path import PathCondition
from hagane.symbolic.term import Term

# The exception that Python raises where the interpreter finds an error of a kind.
_CLASSES: dict[str, type[BaseException]] = {
    "attribute": AttributeError, "key": KeyError, "index": IndexError, "name": NameError,
    "type": TypeError, "call": TypeError, "value": ValueError, "unpack": ValueError,
    "import": ImportError, "assertion": AssertionError,
}  # fmt: skip
_DEVICES = ("cuda", "cudnn", "mps", "xpu", "xla")
_NAMED = re.compile(r"(\w+): ")

_ATTEMPT = ast.Try(
    [], [ast.ExceptHandler(ast.Name("AttributeError", ast.Load()), None, [])], [], []
)  # fmt: skip
ast.fix_missing_locations(_ATTEMPT)


class Raised(CheckError):
    """An exception that the program itself raises.

    Args:
        what: Its text in the program.
        value: The exception, or its class.

    ``stated`` is True for that of a statement ``raise``.
    """

    stated = False

    def __init__(self, what: str, value: Value):
        super().__init__("raises", f"raises {what}")
        self.value = value


@dataclass(slots=True)
class Handling:
    """A ``try`` whose body is being run.

    Attributes:
        node: The statement.
        entry: The path on which it was entered.
        frame: The frame that its names are of.
        turns: The number of loops around it.
        is_passed: Whether the exception that ended its body is none that it takes.
        cleanups: What runs where a path leaves the blocks around its handlers.
        exits: Exceptions of some paths, which part within the body.
    """

    node: ast.Try
    entry: PathCondition
    frame: Frame
    turns: int
    cleanups: tuple[Cleanup, ...] = ()
    is_passed: bool = False
    exits: list[Exit] = field(default_factory=list)


class Exceptions(Unwinding):
    """Runs ``raise``, ``assert``, ``try``."""

    tables: Tables

    def _do_Assert(self, node: ast.Assert) -> None:
        try:
            self.require(self.evaluate(node.test), self.collector.text(node.test))
        except CheckError as error:
            if error.code == "assertion" and not self.emit.builds and _asks_for_device(node.test):
                self.collector.assume(self.here(), f"{self.collector.text(node.test)} (asserted)")
                return
            followed = error.code == "assertion" and not (self.handlers or self.emit.builds)
            frame = self.frame if followed and not self.dead else None
            if frame is not None and frame.function is not None:
                # What comes behind it in the function would fail of the same.
                failed = Unknown("an assertion that fails", told=True, failed=True)
                self.leave("return", failed, frame.exits)
            raise

    def require(self, value: Value, text: str) -> None:
        """Take the truth of a value for granted, as an assertion does."""
        decided = self.decide(self.truth(value))
        if decided is True:
            return
        if decided is False:
            raise CheckError("assertion", f"the assertion fails: {text}")
        assert isinstance(decided, Term)
        self.name_condition(decided, text)
        self.emit.assert_sizes(decided, f"the assertion fails: {text}")
        self.emit.suppose(decided, f"{text} (asserted)")

    def _do_Raise(self, node: ast.Raise) -> None:
        what = "raise" if node.exc is None else self.collector.text(node.exc)
        if self.handlers or self.caught:
            error = self._exception(node, what)
            if isinstance(error, Raised):
                error.stated = True
        else:
            error = CheckError("raises", f"raises {what}")
        self.end_by(error, what)

    def end_by(self, error: CheckError, what: str) -> None:
        """Go on in the handler of an exception; without one, the path ends by it."""
        if self.handlers or self.caught:
            if self.catches(error):
                raise error
            if self.dead:
                return
        self._end_by(error, what)

    def _end_by(self, error: CheckError, what: str) -> None:
        """End the path by an exception that no handler takes; it is an error where all runs come.

        Args:
            error: The exception.
            what: It in words.

        Raises:
            CheckError: All runs come here, or those of the sample.
        """
        path = self.knowledge.path
        undecided = self.path_text()
        self.dead = True
        if not path.decisions or self.knowledge.sample_takes(path):
            raise error
        self.emit.note_raise(f"raise {what}" if what != "raise" else what)
        told = other_path(undecided) if undecided else "not (what the data decides)"
        self.collector.assume(self.here(), f"{told}, else {what}")

    def fail_where(self, bad: Value, error: type[Exception], text: str) -> None:
        """Let the program raise an exception of Python's own in runs whose data are bad for it.

        A handler takes it, or the graph fails in such a run; a check leaves it out.

        Args:
            bad: Whether the data are.
            error: The class of the exception.
            text: Its message.

        Raises:
            CheckError: They are in all runs.
        """
        condition = self.decide(self.truth(bad)) if self.emit.builds else False
        if condition is False:
            return
        what = f"{error.__name__}: {text}"
        found = Raised(what, Host(error(text)))

        end = partial(self.end_by, found, what)
        if condition is True:
            end()
        elif self._is_taken(found):
            self.fork(condition, end, lambda: None)
        else:
            self.emit.fail_where(condition, what)

    def _exception(self, node: ast.Raise, what: str) -> CheckError:
        if node.exc is None:
            if self.caught:
                self.caught[-1].first = self.caught[-1].met
            return self.caught[-1] if self.caught else Raised(what, Host(RuntimeError))
        value = self.evaluate(node.exc)
        for error in reversed(self.caught):
            if error.held is value and value is not None:
                error.first = error.met
                return error  # the one that the handler took
        return Raised(what, value)

    # Handlers.

    def is_awaited(self, error: type[Exception]) -> bool:
        """Whether a handler takes exceptions of a class."""
        return self._is_taken(Raised(error.__name__, Host(error)))

    def _is_taken(self, error: CheckError) -> bool:
        return any(self.clause_for(handling, error) for handling in self.handlers)

    def catches(self, error: CheckError) -> bool:
        """Whether a handler takes an error, which then has to be raised.

        Where paths parted since its ``try`` was entered, this path goes on in the handler: it ends
        here, and the rest of the expression means nothing.
        """
        if self.dead or error.code in OWN:
            return False
        error.met = error.met or self.here()
        found = next((h for h in reversed(self.handlers) if self.clause_for(h, error)), None)
        if found is None:
            return False
        if self.emit.builds and error.counterexample and not isinstance(error, Raised):
            self.lost(f"an exception for some sizes alone, in a 'try' that takes it: {error}")
            return False
        path = self.knowledge.path
        if path.scope is found.entry.scope and len(path.decisions) == len(found.entry.decisions):
            return True
        if found is not self.handlers[-1] and not self.emit.builds:
            if isinstance(error, Raised) and error.stated:
                return False  # taken for not raised, as without a handler
            self.lost("an exception that the data decide, and that passes a 'try'")
            return False
        self.unwind([each for each in self.cleanups if each not in found.cleanups])
        if not self.dead:
            path = self.knowledge.path
            found.exits.append(Exit("raise", error, self.heap.snapshot(), path))
            self.dead = True
        return False

    def clause_for(self, found: Handling, error: CheckError) -> ast.ExceptHandler | None:
        """Return the clause of a ``try`` that takes an error."""
        frame, self.frame = self.frame, found.frame
        try:
            return next((h for h in found.node.handlers if self._takes(h, error)), None)
        finally:
            self.frame = frame

    def _takes(self, handler: ast.ExceptHandler, error: CheckError) -> bool:
        if handler.type is None:
            return True
        options = self.evaluate(handler.type)
        return self.is_one_of(error, options)

    def is_one_of(self, error: CheckError, options: Value) -> bool:
        """Whether an exception is of a class, or of one of several."""
        if isinstance(options, tuple):
            return any(self.is_one_of(error, option) for option in options)
        return self._is_kind(error, options)

    def _is_kind(self, error: CheckError, option: Value) -> bool:
        raised = getattr(error, "value", None)
        if isinstance(raised, Instance) and isinstance(raised.cls, Class):
            raised = raised.cls
        if isinstance(raised, Class):
            order = self.resolution_order(raised)
            if option in order:
                return True
            kinds = [base.object for base in order if isinstance(base, Host)]
        else:
            kinds = [class_of(error)]
        if isinstance(option, Unknown):
            return True
        if not isinstance(option, Host) or not isinstance(option.object, type):
            return False
        return any(isinstance(k, type) and issubclass(k, option.object) for k in kinds)

    def attempt(self, run: Callable[[], Value]) -> Value:
        """Return the result of a call, ``MISSING`` where it raises an AttributeError."""
        assert self.frame is not None
        around = tuple(self.cleanups)
        tried = Handling(_ATTEMPT, self.knowledge.path, self.frame, len(self.loops), around)
        self.handlers.append(tried)
        try:
            found = run()
        except CheckError as error:
            if self.dead or self.clause_for(tried, error) is None or error.code in OWN:
                raise
            self.back_at(tried)
            return MISSING
        finally:
            self.handlers.remove(tried)
        return self.lost("an attribute that the data decide") if tried.exits else found

    def _do_Try(self, node: ast.Try) -> None:
        before = tuple(self.cleanups)
        if node.finalbody:
            self.at_leaving(partial(self.execute, node.finalbody))
        handling, error = self.attempted(node, partial(self.execute, node.body))
        if error is not None and handling.is_passed:
            self._finally(node, before, error)
            return
        try:
            self.go_on(
                handling, error, partial(self._handle, handling), partial(self.execute, node.orelse)
            )
        except CheckError as raised:
            self.back_at(handling)
            self._finally(node, before, raised)
            return
        if error is None and node.handlers and not handling.exits and not self.dead:
            self.collector.notice(self.here(), "'try': the path without an exception is checked")
        self.cleanups = list(before)
        self.execute(node.finalbody)

    def attempted(
        self, node: ast.Try, run: Callable[[], object]
    ) -> tuple[Handling, CheckError | None]:
        """Run the body of a ``try``; return it with the exception that ends all of its paths."""
        assert self.frame is not None
        around = tuple(self.cleanups)
        handling = Handling(node, self.knowledge.path, self.frame, len(self.loops), around)
        self.handlers.append(handling)
        try:
            run()
        except CheckError as raised:
            self.handlers.pop()
            self.back_at(handling)
            handling.is_passed = (
                self.dead or raised.code in OWN or self.clause_for(handling, raised) is None
            )
            return handling, raised
        self.handlers.pop()
        return handling, None

    def back_at(self, handling: Handling) -> None:
        """Go on in the frame and within the loops of a ``try``."""
        self.frame = handling.frame
        del self.loops[handling.turns :]
        self.cleanups = list(handling.cleanups)

    def go_on(
        self,
        handling: Handling,
        error: CheckError | None,
        handle: Callable[[CheckError], object],
        otherwise: Callable[[], object],
    ) -> None:
        """Go on behind the body of a ``try``, on each path as it ended."""
        if error is not None:
            handle(error)
        elif not self.dead:
            otherwise()
        if not handling.exits:
            return
        ends = [] if self.dead else [self.exit("end")]
        for taken in handling.exits:
            self.merge([taken], handling.entry)
            assert isinstance(taken.value, CheckError)
            handle(taken.value)
            if not self.dead:
                ends.append(self.exit("end"))
        if ends:
            self.merge(ends, handling.entry)

    def described(self, error: CheckError) -> tuple[Value, Value]:
        """Return the class of an exception, and the exception itself."""
        value = getattr(error, "value", Unknown("an exception", told=True))
        if isinstance(value, Class):
            return value, self.call(value, [], {})
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            return value.cls, value
        return Host(class_of(error)), value

    def _handle(self, handling: Handling, error: CheckError) -> None:
        handler = self.clause_for(handling, error)
        assert handler is not None
        if handler.name:
            value = getattr(error, "value", Unknown("an exception", told=True))
            error.held = value
            self.assign(ast.copy_location(ast.Name(handler.name, ast.Store()), handler), value)
        self.caught.append(error)
        try:
            self.execute(handler.body)
        finally:
            self.caught.pop()
        if handler.name and not self.dead and self.frame is not None:
            self.heap[self.frame.key].pop(handler.name, None)  # as Python does

    def _finally(self, node: ast.Try, around: Sequence[Cleanup], error: CheckError) -> None:
        """Run what follows an error in any case, and raise it again if that does not leave."""
        self.cleanups = list(around)
        dead, self.dead = self.dead, False
        self.execute(node.finalbody)
        left, self.dead = self.dead, self.dead or dead
        if not left:
            raise error


def _asks_for_device(test: ast.expr) -> bool:
    """Whether a test asks what the machine has, which is not that of the check."""
    return any(isinstance(n, ast.Attribute) and n.attr in _DEVICES for n in ast.walk(test))


def class_of(error: CheckError) -> type[BaseException]:
    """Return the class of the exception that an error is in Python."""
    raised = getattr(error, "value", None)
    if isinstance(raised, Host):
        return raised.object if isinstance(raised.object, type) else type(raised.object)
    if isinstance(raised, Library):
        return RuntimeError
    named = _NAMED.match(error.message)
    found = getattr(builtins, named[1], None) if named else None
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    return _CLASSES.get(error.code, RuntimeError)


__all__ = ["Exceptions", "Handling", "Raised"]
