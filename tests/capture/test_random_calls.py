"""Compiled models return what PyTorch returns, whatever changes between their calls."""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import hagane

from .random_calls import SUBJECT


def loaded(path: Path) -> ModuleType:
    """Return a module of its own made of a file."""
    spec = importlib.util.spec_from_file_location("drawn_calls", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(model: Any, module: ModuleType, line: str) -> Any:
    """Return the result of a call with its gradients and arguments, or an error that it raises."""
    given: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        given.extend((args, *kwargs.values()))
        return model(*args, **kwargs)

    try:
        result = eval(line, {**vars(module), "call": call})
        gradients: Any = None
        if isinstance(result, torch.Tensor) and result.requires_grad:
            wanted = [p for p in module.net.parameters() if p.requires_grad]
            if wanted:
                gradients = torch.autograd.grad(result.sum(), wanted, allow_unused=True)
    except Exception as error:
        return error
    return result, gradients, given


def same(ours: Any, theirs: Any, where: str) -> None:
    """Check that two results are of one type and equal."""
    if isinstance(ours, Exception):
        raise AssertionError(where) from ours
    assert type(ours) is type(theirs), where
    if isinstance(theirs, torch.Tensor):
        assert ours.requires_grad == theirs.requires_grad, where
        assert ours.dtype == theirs.dtype, where
        tolerance = 2e-3 if theirs.dtype == torch.float16 else 5e-5
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance,
            err_msg=where, strict=True,
        )  # fmt: skip
    elif isinstance(theirs, np.ndarray | np.generic):
        np.testing.assert_array_equal(ours, theirs, where, strict=True)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), where
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, where)
    else:
        assert ours == theirs or ours != ours, where


def agree(seeds: range, folder: Path) -> int:
    """Compare the sequences of some seeds; return how many calls had a graph."""
    served = 0
    for seed in seeds:
        text, lines = SUBJECT.sequence(seed)
        path = folder / f"drawn_calls_{seed}.py"
        path.write_text(text, encoding="utf-8")
        plain, ours = loaded(path), loaded(path)
        compiled = hagane.compile(ours.net)
        told = f"seed {seed}\n{text[text.index('    def forward(self, x, k') :]}\n"
        for number, line in enumerate(lines):
            where = told + "\n".join(lines[: number + 1]) + f"\n{compiled.captures}"
            if not line.startswith("call("):
                # No context around changes of the mode, which it would take back.
                mode = contextlib.nullcontext if "grad_enabled" in line else torch.no_grad
                try:
                    with mode():
                        exec(line, vars(plain))
                except Exception:
                    break  # changes that do not fit each other
                with mode():
                    exec(line, vars(ours))
                continue
            expected = outcome(plain.net, plain, line)
            if isinstance(expected, Exception):
                break
            same(outcome(compiled, ours, line), expected, where)
            for name in ("count", "state", "running", "last"):
                same(getattr(ours.net, name), getattr(plain.net, name), f"{where}\n{name}")
        served += len(compiled.captures)
    return served


@pytest.fixture(autouse=True)
def _modes(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)


def test_calls_with_changes_between_them_agree(tmp_path: Path) -> None:
    assert agree(range(12), tmp_path) >= 20


@pytest.mark.long
def test_many_calls_with_changes_between_them_agree(tmp_path: Path) -> None:
    assert agree(range(12, 1500), tmp_path) >= 1000
