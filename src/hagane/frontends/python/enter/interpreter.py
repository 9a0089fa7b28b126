"""The interpreter: all parts together, and the ways to start it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hagane.frontends.python.interpret.annotations import Annotations
from hagane.frontends.python.interpret.calls import Calls
from hagane.frontends.python.interpret.comprehensions import Comprehensions
from hagane.frontends.python.interpret.domain import Domain
from hagane.frontends.python.interpret.expressions import Expressions
from hagane.frontends.python.interpret.leaving.contexts import Contexts
from hagane.frontends.python.interpret.loops import Loops
from hagane.frontends.python.interpret.operators import Operators
from hagane.frontends.python.interpret.reading.attributes import Access
from hagane.frontends.python.interpret.running import Observer, Unobserved
from hagane.frontends.python.interpret.statements import Statements
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.lift import Lift
from hagane.frontends.python.load.modules import Modules
from hagane.frontends.python.standard.builtin import Builtins
from hagane.frontends.python.values.objects import Frame, ModuleRef
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Library,
    Tensor,
    Value,
)

# Settings of torch.utils.checkpoint.checkpoint itself; others go on to the function.
_OF_CHECKPOINT = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug",
                  "early_stop")  # fmt: skip


class Interpreter(
    Expressions,
    Operators,
    Access,
    Calls,
    Builtins,
    Statements,
    Contexts,
    Loops,
    Comprehensions,
    Modules,
    Lift,
    Annotations,
):
    """Interprets a program over a domain.

    Args:
        root: The folder that imports start from, beside that of the importing file.
        tables: The meanings of names of libraries.
        domain: Makes the domain of values, given the interpreter.
        observer: Makes the observer of reads of the running Python, given the interpreter.
    """

    def __init__(
        self,
        root: Path,
        tables: Tables,
        domain: Callable[[Interpreter], Domain],
        observer: Callable[[Interpreter], Observer] = Unobserved,
    ):
        super().__init__(domain)
        self.root = root
        self.tables = tables
        self.observer = observer(self)

    def tensor_operator(self, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        return self.tables.operator(self, name, self.unwrap(left), self.unwrap(right))

    def tensor_unary(self, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        return self.tables.unary(self, name, value)

    def call_special(
        self, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call names of libraries that take functions; else ``MISSING``."""
        if name in ("torch.utils.checkpoint.checkpoint",):
            kept = {k: v for k, v in keywords.items() if k not in _OF_CHECKPOINT}
            return self.call(arguments[0], arguments[1:], kept)
        if name in ("torch._assert", "torch._assert_async"):
            self.require(arguments[0], str(arguments[1]) if len(arguments) > 1 else "")
            return None
        return MISSING

    def call_library(
        self, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value] | None = None
    ) -> Value:
        """Call a function of a library by its name, with values as its tables take them."""
        return self.tables.call(self, name, arguments, keywords or {})

    def module_frame(self, module: ModuleRef) -> Frame:
        """Return a frame in which expressions see a module's names."""
        return Frame(module.key, module.file, module, None, False)


__all__ = ["Host", "Interpreter", "Library"]
