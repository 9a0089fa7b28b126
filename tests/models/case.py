"""A model to check with the types of its inputs, and real tensors of these types.

A type is written `float32[batch, 3, 16*h]` (`float32`, `float64`, `int64` or `bool`),
`list[T, n]`, `tuple[T, U]`, or is an integer expression over the symbols: a Python integer.
"""

from __future__ import annotations

import ast
import importlib.util
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One method of one model with the types of its arguments.

    `file` is relative to this folder; `target` is `Class` (its `forward`) or `Class.method`;
    `make` is an expression that builds the instance; `sizes` has the values of each symbol to
    draw from; `high` bounds integer inputs from above, exclusively (2 where it says nothing).
    """

    name: str
    file: str
    target: str
    make: str
    inputs: Mapping[str, str]
    sizes: Mapping[str, tuple[int, ...]]
    high: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return HERE / self.file

    @property
    def method(self) -> str:
        """The method to check."""
        return self.target.partition(".")[2] or "forward"


def load(path: Path, source: str | None = None) -> ModuleType:
    """Execute a model file, or `source` in its stead under its name, as a new module."""
    spec = importlib.util.spec_from_file_location(f"hagane_model_{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    code = compile(path.read_text() if source is None else source, str(path), "exec")
    sys.modules[module.__name__] = module  # dataclasses look their annotations up there
    exec(code, module.__dict__)
    return module


def draw_sizes(case: Case, seed: int) -> dict[str, int]:
    """One allowed value of each symbol."""
    generator = random.Random(f"{case.name} {seed}")
    return {name: generator.choice(values) for name, values in case.sizes.items()}


def number(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """The value of an expression over the symbols."""
    return int(eval(ast.unparse(node), {"__builtins__": {}}, dict(sizes)))


def draw_inputs(case: Case, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Real tensors of the types of the case's inputs at these sizes."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def draw(node: ast.expr, high: int) -> Any:
        match node:
            case ast.Subscript(ast.Name("list"), ast.Tuple([element, length])):
                return [draw(element, high) for _ in range(number(length, sizes))]
            case ast.Subscript(ast.Name("tuple"), ast.Tuple(elements)):
                return tuple(draw(element, high) for element in elements)
            case ast.Subscript(ast.Name(dtype), dims):
                parts = dims.elts if isinstance(dims, ast.Tuple) else [dims]
                shape = [number(part, sizes) for part in parts]
                if dtype in ("int64", "bool"):
                    drawn = torch.randint(0, high, shape, generator=generator)
                    return drawn.to(getattr(torch, dtype))
                return torch.randn(shape, generator=generator, dtype=getattr(torch, dtype))
            case _:
                return number(node, sizes)

    return {
        name: draw(ast.parse(text, mode="eval").body, case.high.get(name, 2))
        for name, text in case.inputs.items()
    }
