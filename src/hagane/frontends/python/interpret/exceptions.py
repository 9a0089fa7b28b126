"""Exceptions: raising, handlers, and code that runs in any case."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hagane.frontends.python.interpret.core import Core, Exit
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import OPEN, CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Class,
    Frame,
    Host,
    Instance,
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
# Errors that are no exceptions of the program: limits of the interpreter or its domain.
_OWN = frozenset(("capture", "input", "target", "make", "source", "annotation", OPEN))
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
        exits: Exceptions of some paths, which part within the body.
    """

    node: ast.Try
    entry: PathCondition
    frame: Frame
    turns: int
    exits: list[Exit] = field(default_factory=list)


class Exceptions(Core):
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
        self.emit.suppose(decided, f"{text} (asserted)")

    def _do_Raise(self, node: ast.Raise) -> None:
        what = "raise" if node.exc is None else self.collector.text(node.exc)
        if self.handlers or self.caught:
            error = self._exception(node, what)
            if isinstance(error, Raised):
                error.stated = True
            if self.catches(error):
                raise error
            if self.dead:
                return
        else:
            error = CheckError("raises", f"raises {what}")
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
        self.collector.assume(
            self.here(), f"not ({undecided or 'what the data decides'}), else {what}"
        )

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

        def end() -> None:
            if self.catches(found):
                raise found
            if not self.dead:
                self._end_by(found, what)

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
        if self.dead or error.code in _OWN:
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
        if found is not self.handlers[-1]:
            if isinstance(error, Raised) and error.stated and not self.emit.builds:
                return False  # taken for not raised, as without a handler
            self.lost("an exception that the data decide, and that passes a 'try'")
            return False
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
        return any(
            self._is_kind(error, option)
            for option in (options if isinstance(options, tuple) else (options,))
        )

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
            kinds = [_class_of(error)]
        if isinstance(option, Unknown):
            return True
        if not isinstance(option, Host) or not isinstance(option.object, type):
            return False
        return any(isinstance(k, type) and issubclass(k, option.object) for k in kinds)

    def attempt(self, run: Callable[[], Value]) -> Value:
        """Return the result of a call, ``MISSING`` where it raises an AttributeError."""
        assert self.frame is not None
        tried = Handling(_ATTEMPT, self.knowledge.path, self.frame, len(self.loops))
        frame = self.frame
        self.handlers.append(tried)
        try:
            found = run()
        except CheckError as error:
            if self.dead or self.clause_for(tried, error) is None or error.code in _OWN:
                raise
            self.frame = frame
            del self.loops[tried.turns :]
            return MISSING
        finally:
            self.handlers.remove(tried)
        return self.lost("an attribute that the data decide") if tried.exits else found

    def _do_Try(self, node: ast.Try) -> None:
        frame, error = self.frame, None
        assert frame is not None
        left = [(exits, len(exits)) for exits in self._ways_out(frame)]
        handling = Handling(node, self.knowledge.path, frame, len(self.loops))
        self.handlers.append(handling)
        try:
            self.execute(node.body)
        except CheckError as raised:
            self.handlers.pop()
            self.frame = frame
            del self.loops[handling.turns :]
            if self.dead or raised.code in _OWN or self.clause_for(handling, raised) is None:
                self._finally(node.finalbody, left, handling.entry)
                raise
            error = raised
        else:
            self.handlers.pop()
        self._go_on(node, handling, error)
        self._finally(node.finalbody, left, handling.entry)

    def _go_on(self, node: ast.Try, handling: Handling, error: CheckError | None) -> None:
        """Run the continuation of a ``try`` body: its ``else``, or a handler on each path."""
        if error is not None:
            handler = self.clause_for(handling, error)
            assert handler is not None
            self._handle(handler, error)
        elif not self.dead:
            self.execute(node.orelse)
        if not handling.exits:
            if error is None and node.handlers and not self.dead:
                self.collector.notice(
                    self.here(), "'try': the path without an exception is checked"
                )
            return
        ends = [] if self.dead else [self.exit("end")]
        for taken in handling.exits:
            self.merge([taken], handling.entry)
            assert isinstance(taken.value, CheckError)
            handler = self.clause_for(handling, taken.value)
            assert handler is not None
            self._handle(handler, taken.value)
            if not self.dead:
                ends.append(self.exit("end"))
        if ends:
            self.merge(ends, handling.entry)

    def _handle(self, handler: ast.ExceptHandler, error: CheckError) -> None:
        if handler.name:
            value = getattr(error, "value", Unknown("an exception", told=True))
            error.held = value
            self.assign(ast.copy_location(ast.Name(handler.name, ast.Store()), handler), value)
        self.caught.append(error)
        try:
            self.execute(handler.body)
        finally:
            self.caught.pop()

    def _ways_out(self, frame: Frame) -> list[list[Exit]]:
        """Return where paths go that leave a block: returns, turns of loops, handlers."""
        return [frame.exits, *self.loops, *(handling.exits for handling in self.handlers)]

    def _finally(
        self, body: Sequence[ast.stmt], left: Sequence[tuple[list[Exit], int]], entry: PathCondition
    ) -> None:
        """Run the code that ends a ``try``: on the path that goes on, and on those that leave it.

        Args:
            body: The code.
            left: Where paths go that leave, and how many had left before.
            entry: The path on which the ``try`` was entered.
        """
        if not body:
            return
        leaving = [(exits, exits[count:]) for exits, count in left]
        dead, self.dead = self.dead, False
        if not dead or not any(found for _, found in leaving):
            self.execute(body)
        end = None if self.dead or dead else self.exit("end")
        for exits, found in leaving:
            del exits[len(exits) - len(found) :]
            for taken in found:
                self.merge([taken], entry)
                self.execute(body)
                if not self.dead:
                    exits.append(
                        replace(taken, contents=self.heap.contents, path=self.knowledge.path)
                    )
        if end is not None:
            self.merge([end], entry)
        self.dead = end is None


def _asks_for_device(test: ast.expr) -> bool:
    """Whether a test asks what the machine has, which is not that of the check."""
    return any(isinstance(n, ast.Attribute) and n.attr in _DEVICES for n in ast.walk(test))


def _class_of(error: CheckError) -> type[BaseException]:
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
