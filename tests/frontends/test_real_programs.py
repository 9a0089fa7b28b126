"""Python of libraries: exceptions, decorators, classes of Python's own, objects that are asked."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hagane

# Each is a module with a function or model ``call``; the graph is compared with it.
PROGRAMS = {
    "an exception leads to its handler": """
        def call(x):
            try:
                {"a": 1}["b"]
                return x
            except (ValueError, KeyError):
                return x + 1
    """,
    "another exception passes it": """
        def inner(x):
            try:
                raise ValueError("no")
            except KeyError:
                return x

        def call(x):
            try:
                return inner(x)
            except ValueError as error:
                return x * 2 if str(error) == "no" else x
            finally:
                x = None
    """,
    "an exception on one side of a branch": """
        def call(x):
            try:
                if x.sum() > 0:
                    raise ValueError
                y = x * 3
            except ValueError:
                y = -x
            return y
    """,
    "a mixin of the standard library": """
        from collections.abc import MutableMapping

        class Table(MutableMapping):
            def __init__(self):
                self.own = {}
            def __getitem__(self, key):
                return self.own[key]
            def __setitem__(self, key, value):
                self.own[key] = value
            def __delitem__(self, key):
                del self.own[key]
            def __iter__(self):
                return iter(self.own)
            def __len__(self):
                return len(self.own)
            def get(self, key, default=None):
                return super().get(key, default)

        TABLE = Table()
        TABLE["relu"] = torch.relu

        def call(x):
            return TABLE["relu"](x) if "relu" in TABLE and TABLE.get("tanh") is None else x
    """,
    "a registry that is a dict": """
        class Registry(dict):
            def register(self, cls):
                self[cls.__name__] = cls
                return cls

        LAYERS = Registry()

        @LAYERS.register
        class Double(torch.nn.Module):
            def forward(self, x):
                return x * 2

        class Net(torch.nn.Module):
            def forward(self, x):
                return LAYERS["Double"]()(x)

        call = Net()
    """,
    "a result that is a dict and a dataclass": """
        import dataclasses
        from collections import OrderedDict

        class Output(OrderedDict):
            def __post_init__(self):
                for field in dataclasses.fields(self):
                    if getattr(self, field.name) is not None:
                        self[field.name] = getattr(self, field.name)
            def __setattr__(self, name, value):
                if value is not None:
                    super().__setitem__(name, value)
                super().__setattr__(name, value)

        @dataclasses.dataclass
        class Two(Output):
            first: torch.Tensor | None = None
            second: torch.Tensor | None = None

        def call(x):
            out = Two(first=x + 1)
            return tuple(out[name] for name in out.keys()) + (out.first, float(len(out)))
    """,
    "a decorator that changes the result": """
        import functools

        def doubled(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs) * 2
            return wrapper

        class Net(torch.nn.Module):
            @doubled
            def forward(self, x):
                return x + 1

        call = Net()
    """,
    "a context manager of a generator": """
        import contextlib

        STATE = {"scale": 1.0}

        @contextlib.contextmanager
        def scaled(by):
            yield by * 2

        def call(x):
            with scaled(3.0) as factor:
                return x * factor
    """,
    "a context variable": """
        from contextvars import ContextVar

        FACTOR = ContextVar("factor", default=2.0)

        def call(x):
            token = FACTOR.set(5.0)
            y = x * FACTOR.get()
            FACTOR.reset(token)
            return y + FACTOR.get()
    """,
    "attributes by __getattribute__ and __getattr__": """
        class Config:
            names = {"width": "hidden"}
            def __init__(self):
                self.hidden = 3.0
            def __getattribute__(self, key):
                if key != "names" and key in super().__getattribute__("names"):
                    key = super().__getattribute__("names")[key]
                return super().__getattribute__(key)
            def __getattr__(self, key):
                if key == "depth":
                    return 4.0
                raise AttributeError(key)

        CONFIG = Config()

        def call(x):
            found = getattr(CONFIG, "nothing", 10.0) if not hasattr(CONFIG, "none") else 0.0
            return x * CONFIG.width + CONFIG.depth + found
    """,
    "a signature, a partial function and a union of classes": """
        import functools, inspect

        def scale(x, by, plus=1.0):
            return x * by + plus

        HALF = functools.partial(scale, by=0.5)

        def call(x):
            count = len(inspect.signature(scale).parameters)
            known = isinstance(count, int | str) and {"a": 1} | {"b": 2} == {"a": 1, "b": 2}
            return HALF(x, plus=float(count)) if known else x
    """,
    "a property with a setter": """
        class Scale:
            def __init__(self):
                self.value = 1.0
            @property
            def doubled(self):
                return self.value * 2
            @doubled.setter
            def doubled(self, value):
                self.value = value / 2

        def call(x):
            scale = Scale()
            scale.doubled = 8.0
            del scale.value
            scale.value = 3.0 if not hasattr(scale, "value") else 0.0
            return x * scale.doubled
    """,
    "numbers up to a size, gathered and padded": """
        import torch.nn.functional as F

        def call(x):
            places = torch.arange(x.shape[1], device=x.device) + 0
            y = x.gather(1, places.expand(x.shape[0], -1).flip(1))
            return F.pad(y, (1, 2), value=0.5) + F.pad(y, (2, 1), mode="constant")
    """,
}


def loaded(name: str, source: str, folder: Path) -> Any:
    """Return the callable of a program."""
    lines = source.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    text = "import torch\n" + "\n".join(line[indent:] for line in lines) + "\n"
    file = folder / "program.py"
    file.write_text(text)
    module_name = f"program_{abs(hash(name))}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module.call


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_typed_and_its_graph_computes_what_it_does(name: str, tmp_path: Path) -> None:
    call = loaded(name, PROGRAMS[name], tmp_path)
    report = hagane.check(call, "float32[batch, width]")
    assert [problem.message for problem in report.errors] == []
    assert [note.message for note in report.unknown] == []
    model = hagane.capture(call, "float32[batch, width]")
    session = hagane.InferenceSession(model)
    draw = torch.Generator().manual_seed(0)
    for sign in (1.0, -1.0):
        for shape in ((2, 3), (4, 5)):
            x = torch.rand(shape, generator=draw) * sign
            expected = call(x)
            expected = expected if isinstance(expected, tuple) else (expected,)
            found = session.run(None, {session.get_inputs()[0].name: x.numpy()})
            assert len(found) == len(expected)
            for a, b in zip(found, expected, strict=True):
                # Kernels add products without rounding them first, which shows near zero.
                np.testing.assert_allclose(a, np.asarray(b), rtol=1e-6, atol=1e-6)
