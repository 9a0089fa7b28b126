"""Compiled links and functions over arrays return what Python returns, whatever changes."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hagane

from . import random_array_calls, random_link_calls
from .random_sequences import Subject
from .test_random_calls import loaded

_STATE = ("seen", "mean", "last", "held", "kept", "count")


@contextlib.contextmanager
def settings_apart(held: dict[str, Any]) -> Iterator[None]:
    """Have the settings of one of two programs, which lie in ``held`` between its lines."""
    names = ("train", "enable_backprop")
    before = {name: getattr(hagane.global_config, name) for name in names}
    for name in names:
        setattr(hagane.global_config, name, held.get(name, before[name]))
    try:
        yield
    finally:
        held.update((name, getattr(hagane.global_config, name)) for name in names)
        for name in names:
            setattr(hagane.global_config, name, before[name])


def outcome(model: Any, module: ModuleType, line: str) -> Any:
    """Return the result of a call with its gradients, arguments and state, or its error."""
    given: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        given.extend((args, kwargs))
        return model(*args, **kwargs)

    try:
        result = eval(line, {**vars(module), "call": call})
    except Exception as error:
        return error
    gradients: list[Any] = []
    if isinstance(result, hagane.Variable):
        variables = [v for v in given[0] if isinstance(v, hagane.Variable)]
        variables += [p for _, p in sorted(module.net.namedparams()) if p is not None]
        for v in variables:
            v.cleargrad()
        if result.requires_grad:
            hagane.functions.sum(result).backward()
        gradients = [v.grad for v in variables]
    holder = getattr(module, "CONFIG", module.net)
    state = {name: getattr(holder, name, None) for name in _STATE}
    return copy.deepcopy((result, gradients, given, state))


def same(ours: Any, theirs: Any, where: str) -> None:
    """Check that two values are of one type and equal."""
    if isinstance(ours, Exception):
        raise AssertionError(where) from ours
    told = f"{where}\n{type(ours)} and {type(theirs)}"
    if isinstance(theirs, hagane.Variable):  # a parameter that is returned becomes a variable
        assert isinstance(ours, hagane.Variable), told
        same(ours.array, theirs.array, where)
        return
    if not isinstance(theirs, np.ndarray | np.generic) or theirs.ndim:
        # The data may decide whether a number is a scalar or an array without axes.
        assert type(ours).__name__ == type(theirs).__name__, told
    if isinstance(theirs, np.ndarray | np.generic):
        assert ours.dtype == theirs.dtype, f"{where}\n{ours.dtype} and {theirs.dtype}"
        tolerance = {"e": 4e-3, "f": 2e-5}.get(theirs.dtype.char, 1e-6)
        np.testing.assert_allclose(
            ours, theirs, rtol=tolerance, atol=tolerance, err_msg=where, strict=True
        )
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), f"{where}\n{ours} and {theirs}"
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, where)
    elif isinstance(theirs, dict):
        assert [*ours] == [*theirs], where
        for key, other in theirs.items():
            same(ours[key], other, f"{where}\n{key}")
    elif dataclasses.is_dataclass(theirs):
        same(vars(ours), vars(theirs), where)
    elif isinstance(theirs, float):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5, err_msg=where)
    else:
        assert ours == theirs, f"{where}\n{ours} and {theirs}"


def agree(subject: Subject, seeds: range, folder: Path) -> int:
    """Compare the sequences of some seeds; return how many graphs there were."""
    served = 0
    for seed in seeds:
        text, lines = subject.sequence(seed)
        path = folder / f"drawn_calls_{seed}.py"
        path.write_text(text, encoding="utf-8")
        plain, ours = loaded(path), loaded(path)
        compiled = hagane.compile(ours.net)
        told = f"seed {seed}\n{text[text.index('x, k=1, y=None):') :]}\n"
        settings: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for number, line in enumerate(lines):
            where = told + "\n".join(lines[: number + 1]) + f"\n{compiled.captures}"
            if not line.startswith("call("):
                try:
                    with settings_apart(settings[0]):
                        exec(line, vars(plain))
                except Exception:
                    break  # changes that do not fit each other
                with settings_apart(settings[1]):
                    exec(line, vars(ours))
                continue
            with settings_apart(settings[0]):
                expected = outcome(plain.net, plain, line)
            if isinstance(expected, Exception):
                break
            with settings_apart(settings[1]):
                same(outcome(compiled, ours, line), expected, where)
        served += len(compiled.captures)
    return served


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.long
def test_calls_of_links_agree(tmp_path: Path) -> None:
    assert agree(random_link_calls.SUBJECT, range(12), tmp_path) >= 12


def test_calls_of_functions_over_arrays_agree(tmp_path: Path) -> None:
    assert agree(random_array_calls.SUBJECT, range(12), tmp_path) >= 12
    assert agree(random_array_calls.SUBJECT, range(48, 49), tmp_path) >= 3  # methods that change


@pytest.mark.long
def test_many_calls_of_links_agree(tmp_path: Path) -> None:
    assert agree(random_link_calls.SUBJECT, range(12, 1000), tmp_path) >= 600


@pytest.mark.long
def test_many_calls_of_functions_over_arrays_agree(tmp_path: Path) -> None:
    assert agree(random_array_calls.SUBJECT, range(12, 1000), tmp_path) >= 600
