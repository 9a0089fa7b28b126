"""The interpreter over a domain: three domains, one port, and no interpreter beside the one."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hagane.frontends.capture.flow.loops import Graph
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.interpret.domain import Domain, Operation
from hagane.frontends.python.shapes.domain import Shapes
from hagane.frontends.python.values.values import Value
from hagane.symbolic.questions import Knowledge
from hagane.tools.prob.capture.runner import Draws

METHODS = [
    name
    for name, found in vars(Domain).items()
    if inspect.isfunction(found) and not name.startswith("_")
]


@pytest.mark.parametrize("domain", [Shapes, Graph, Draws])
@pytest.mark.parametrize("method", METHODS)
def test_every_domain_has_every_method_of_the_port(domain: type, method: str) -> None:
    expected = inspect.signature(getattr(Domain, method))
    assert list(inspect.signature(getattr(domain, method)).parameters) == list(expected.parameters)


@pytest.mark.parametrize("domain", [Shapes, Graph, Draws])
def test_no_domain_derives_from_the_interpreter(domain: type) -> None:
    assert not issubclass(domain, Interpreter)
    assert len(METHODS) == 14


class Counting(Shapes):
    """A domain of its own: types, and a count of what the program asked for."""

    def __init__(self, core: Interpreter):
        super().__init__(Knowledge(), core)
        self.seen: list[str] = []

    def operate(self, kind: Operation, *operands: Value) -> Value:
        self.seen.append(kind.__name__)
        return super().operate(kind, *operands)

    def bind(self, owner: Value, name: str, value: Value) -> Value:
        self.seen.append(name)
        return super().bind(owner, name, value)

    def call(self, function: Value, arguments: Any, keywords: Any) -> Value:
        found = super().call(function, arguments, keywords)
        return found + 1 if function.__class__.__name__ == "Function" else found


def test_a_domain_sees_operators_calls_and_names(tmp_path: Path) -> None:
    source = (
        "def g(x):\n    y = -x\n    return y * 2\ndef f(x):\n    z = [x]\n    return g(z[0]) < 3\n"
    )
    file = tmp_path / "program.py"
    file.write_text(source)
    interpreter = Interpreter(tmp_path, LibraryTables(), Counting)
    module = interpreter.load_source(file, "program")
    interpreter.frame = interpreter.module_frame(module)
    g, f = (interpreter.module_attribute(module, name) for name in "gf")
    assert interpreter.call(g, [5], {}) == -9
    assert interpreter.apply(f, [1], {}) is True
    counted = interpreter.domain
    assert isinstance(counted, Counting)
    assert counted.seen == ["USub", "y", "Mult", "z", "Subscript", "USub", "y", "Mult", "Lt"]


def test_two_interpretations_share_nothing() -> None:
    first, second = (
        Interpreter(Path(), LibraryTables(), partial(Shapes, Knowledge())) for _ in range(2)
    )
    assert first.domain.knowledge is not second.domain.knowledge
    assert first.heap is not second.heap
