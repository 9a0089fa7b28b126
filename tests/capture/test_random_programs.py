"""Random programs return from their graphs what CPython returns."""

from __future__ import annotations

import importlib.util
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import hagane
from hagane.errors import CaptureError, KernelError

from .random_programs import programs

_CASES = [([1, -2, 3], 2), ([0, 4, -1, 2, -3], 3), ([-3, -1, -2, 0], -2), ([5, 1, 0], 0)]
_SLOW = [*HealthCheck]
# Programs that only raise errors, and exceptions that pass a handler for others.
_REFUSED = (
    "an exception that the data decide, and that passes a 'try'",
    "the call does not return",
    "is out of range for 3 items",
    "is not among the items",
)


def loaded(text: str, folder: str) -> Any:
    # Python takes a compiled file for current that has this second and length, and inspect a text.
    path = Path(folder, f"drawn_{sha256(text.encode()).hexdigest()[:16]}.py")
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("drawn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def check(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAGANE_ENGINE", "reference")
        program = loaded(text, folder)
        try:
            model = hagane.capture(program, x="float32[size]", n="int")
        except CaptureError as error:
            if any(told in str(error) for told in _REFUSED):
                return
            raise
        session = hagane.InferenceSession(model)
        names = [str(value.name) for value in model.graph.outputs]
        for items, n in _CASES:
            x = np.array(items, np.float32)
            try:
                expected = program(x.copy(), n)
            except IndexError:  # of an item that nothing needs: no graph looks it up
                continue
            except (ValueError, ZeroDivisionError):
                expected = None
            feed = {"x": x, "n": np.array(n, np.int64)}
            feed = {value.name: feed[str(value.name)] for value in model.graph.inputs}
            if expected is None:
                with pytest.raises(KernelError):
                    session.run(None, feed)
                continue
            found = dict(zip(names, session.run(None, feed), strict=True))
            assert [*found] == [*expected]
            for name, value in expected.items():
                np.testing.assert_array_equal(found[name], value, f"{name} of {items}, {n}\n{text}")


@settings(max_examples=4, derandomize=True, database=None, suppress_health_check=_SLOW)
@given(programs())
def test_random_programs_agree_with_python(text: str) -> None:
    check(text)


@pytest.mark.long
@settings(max_examples=1500, suppress_health_check=_SLOW)
@given(programs())
def test_many_random_programs_agree_with_python(text: str) -> None:
    check(text)


@settings(max_examples=3, derandomize=True, database=None, suppress_health_check=_SLOW)
@given(programs(errors=True))
def test_random_programs_with_errors_agree_with_python(text: str) -> None:
    check(text)


@pytest.mark.long
@settings(max_examples=1500, suppress_health_check=_SLOW)
@given(programs(errors=True))
def test_many_random_programs_with_errors_agree_with_python(text: str) -> None:
    check(text)
