"""Layers that exist already have the types that layers made in the source have."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from hagane.checking import check
from hagane.frontends.python.values.values import Tensor
from hagane.graph.types import dtype_name

from .calls import Call, real, sections
from .torch_calls_layers import LAYERS
from .torch_calls_losses import LOSSES
from .torch_calls_windows import WINDOWS

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns of what some layers do


def with_layer(call: Call) -> str | None:
    """Return a module that makes the layer of a call, None if no layer is called."""
    node = ast.parse(call.source, mode="eval").body if ";" not in call.source else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Call):
        return None
    if not ast.unparse(node.func).startswith("nn.") or "Lazy" in call.source:
        return None
    head = call.module().partition("\ndef call")[0]
    names = ", ".join(name for name, _, _ in call.inputs)
    arguments = ast.unparse(node)[len(ast.unparse(node.func)) :]
    return (
        f"{head}\nlayer = {ast.unparse(node.func)}\n\n\n"
        f"def call({names}):\n    return layer{arguments}\n"
    )


def typed(value: Any) -> Any:
    """Return the type of a result in the form in which calls describe PyTorch's."""
    if isinstance(value, Tensor):
        return dtype_name(value.dtype), value.shape
    return [typed(item) for item in value] if isinstance(value, tuple) else value


CALLS = [
    call
    for text in (LAYERS, LOSSES, WINDOWS)
    for section in sections(text)
    for call in section.calls
    if with_layer(call)
]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_real_layers_are_understood(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "call.py"
    source = with_layer(call)
    assert source is not None
    file.write_text(source)
    spec = importlib.util.spec_from_file_location("call", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except NameError:
        pytest.skip("the layer is made of the inputs")
    inputs = {name: re.sub(r"\w+=(\d+)", r"\1", text) for name, text, _ in call.inputs}
    report = check(module.call, **inputs)
    assert not report.errors
    assert not report.unknown
    assert typed(report.result) == real(call, call.sizes)
