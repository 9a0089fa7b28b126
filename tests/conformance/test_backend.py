"""The whole of ``onnx.backend.test`` against the reference engine."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

# The cases of real models write their inputs there; it has to be set before they are made.
os.environ["ONNX_HOME"] = tempfile.mkdtemp(prefix="onnx-home-")

import pytest
from onnx.backend.test import BackendTest

import hagane.onnx_backend
from tests.conformance.cases import EXCLUDED, LOOSER, node_cases

# As the runner takes tolerances: by the names of cases.
_TOLERANCES = {name: {"atol": tolerance} for name, tolerance in LOOSER.items()}


class _Backend(hagane.onnx_backend.HaganeBackend):
    """Leaves the tolerances of a case, which the runner hands on, to the runner."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Any:
        options.pop("atol", None)
        return super().prepare(model, device, **options)


def _repeated(case: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the tests of a case that repeat others: ``make conformance`` runs them all.

    These are compositions of operators, networks beyond two small ones, and two of three tests of
    families such as Reduce and Cast.
    """
    families = Counter(name.split("_")[1] for name in names)
    for name in names:
        family = families[name.split("_")[1]]
        if case == "OnnxBackendRealModelTest":
            repeated = name not in _NETWORKS
        else:
            repeated = "_expanded" in name or (family > _FAMILY and crc32(name.encode()) % 3 != 0)
        if repeated:
            yield name


_NETWORKS = {"test_squeezenet_cpu", "test_shufflenet_cpu"}
_FAMILY = 4


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # making the cases overflows on purpose
    node_cases()  # the runner takes the numbers that they are given there
    _suite = BackendTest(_Backend, __name__, test_kwargs=_TOLERANCES)
for _pattern in EXCLUDED:
    _suite.exclude(_pattern)
for _name, _case in _suite.test_cases.items():
    # Each is there once more for a graphics card, on which no backend of hagane runs.
    for _test in [name for name in vars(_case) if name.endswith("_cuda")]:
        delattr(_case, _test)
    for _test in _repeated(_name, [name for name in vars(_case) if name.startswith("test_")]):
        setattr(_case, _test, pytest.mark.long(getattr(_case, _test)))
    globals()[_name] = _case

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")
