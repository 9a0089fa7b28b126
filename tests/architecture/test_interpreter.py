"""The interpreter of Python is used through its ports, and derived from nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import hagane
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.interpret.running import Observer, Unobserved
from hagane.frontends.python.shapes.domain import Shapes
from hagane.frontends.python.values.objects import Instance, ModuleRef
from hagane.frontends.python.values.values import MISSING, Value
from hagane.symbolic.questions import Knowledge

from .names import full_name, imported_names

SOURCE = Path(hagane.__file__).parent
OWN = SOURCE / "frontends/python"
PARTS = frozenset(f"{part.__module__}.{part.__name__}" for part in Interpreter.__mro__[:-1])


def test_nothing_outside_its_package_derives_from_the_interpreter() -> None:
    """A method that is overridden elsewhere would be a second port, which nobody wrote down."""
    places = [path for path in sorted(SOURCE.rglob("*.py")) if not path.is_relative_to(OWN)]
    assert len(places) > 500
    found = [
        f"{path.relative_to(SOURCE).as_posix()}:{line}"
        for path in places
        for text in [path.read_text(encoding="utf-8")]
        if "frontends" in text  # others cannot name its classes
        for line in derived(text, PARTS)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "class Mine(Interpreter): pass",
        "class Mine(Other, Access): pass",
        "class Mine(lift.Lift): pass",
        "Interpreter.lift = mine",
        "setattr(Interpreter, 'lift', mine)",
    ],
)
def test_each_way_of_overriding_is_seen(text: str) -> None:
    imports = (
        "from hagane.frontends.python.enter.interpreter import Interpreter\n"
        "from hagane.frontends.python.interpret.reading.attributes import Access\n"
        "import hagane.frontends.python.load.lift as lift\n"
    )
    assert derived(f"{imports}{text}\n", PARTS) == [4]
    assert derived("class Mine(Interpreter): pass\n", PARTS) == []


def derived(text: str, classes: frozenset[str]) -> list[int]:
    """Return the lines on which a module derives from classes, or sets attributes of theirs."""
    tree = ast.parse(text)
    names = imported_names(tree)
    found = []
    for node in ast.walk(tree):
        looked: Sequence[ast.expr] = ()
        if isinstance(node, ast.ClassDef):
            looked = node.bases
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            looked = [node.value]
        elif isinstance(node, ast.Call) and full_name(node.func, names) == "setattr":
            looked = node.args[:1]
        if any(full_name(part, names) in classes for part in looked):
            found.append(node.lineno)
    return found


# The port itself.


class Noting(Unobserved):
    """Notes what is read, and gives other values for some attributes."""

    def __init__(self, other: Mapping[str, Value], core: Interpreter):
        super().__init__(core)
        self.other = other
        self.seen: list[str] = []

    def attribute(self, value: Instance, name: str, held: object) -> Value:
        assert callable(held)
        self.seen.append(f"attribute {type(value.host).__name__}.{name}")
        return self.other[name] if name in self.other else held()

    def global_name(self, module: ModuleRef, name: str) -> None:
        self.seen.append(f"global {name}")

    def lifted(self, found: object, value: Value) -> None:
        if isinstance(found, list | np.ndarray):
            self.seen.append(f"lifted {type(found).__name__}")


class Scaled:
    """An object of this process."""

    def __init__(self) -> None:
        self.scale = 3
        self.sizes = [4, FACTOR]

    def once(self) -> int:
        self.count = 1
        return self.scale * FACTOR + self.scale + self.count

    def total(self) -> int:
        return self.sizes[0] + self.sizes[1] + self.offset  # type: ignore[attr-defined, no-any-return]


FACTOR = 10


def interpreted(other: Mapping[str, Value]) -> tuple[Interpreter, Noting]:
    """Return an interpreter, and its observer."""
    made: list[Noting] = []

    def observer(core: Interpreter) -> Observer:
        made.append(Noting(other, core))
        return made[0]

    shapes = lambda core: Shapes(Knowledge(), core)  # noqa: E731
    return Interpreter(Path(), LibraryTables(), shapes, observer), made[0]


def test_an_observer_is_told_of_each_first_read() -> None:
    core, noted = interpreted({})
    core.frame = core.module_frame(ModuleRef(core.heap.new({}), "here", __file__, {}, True))
    assert core.call(core.attribute(core.lift(Scaled()), "once"), [], {}) == 34
    assert [line for line in noted.seen if "once" not in line] == [
        "attribute Scaled.scale",
        "global FACTOR",
    ]


def test_an_observer_gives_values_for_attributes() -> None:
    core, noted = interpreted({"offset": 100, "scale": 7})
    core.frame = core.module_frame(ModuleRef(core.heap.new({}), "here", __file__, {}, True))
    found = core.lift(Scaled())
    assert core.call(core.attribute(found, "once"), [], {}) == 78
    assert core.call(core.attribute(found, "total"), [], {}) == 114
    assert noted.seen.count("lifted list") == 1
    assert noted.seen.count("attribute Scaled.sizes") == 1


def test_without_an_observer_the_objects_own_values_count() -> None:
    core = Interpreter(Path(), LibraryTables(), lambda core: Shapes(Knowledge(), core))
    assert core.own_attribute(core.lift(Scaled()), "scale") == 3
    assert core.own_attribute(core.lift(Scaled()), "offset") is MISSING
