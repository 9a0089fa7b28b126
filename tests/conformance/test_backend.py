"""The whole of ``onnx.backend.test`` against the reference engine."""

from __future__ import annotations

import os
import tempfile
import warnings

# The cases of real models write their inputs there; it has to be set before they are made.
os.environ["ONNX_HOME"] = tempfile.mkdtemp(prefix="onnx-home-")

import pytest
from onnx.backend.test import BackendTest

import hagane.onnx_backend
from tests.conformance.cases import EXCLUDED

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # making the cases overflows on purpose
    _suite = BackendTest(hagane.onnx_backend.HaganeBackend, __name__)
for _pattern in EXCLUDED:
    _suite.exclude(_pattern)
for _name, _case in _suite.test_cases.items():
    # Each is there once more for a graphics card, on which no backend of hagane runs.
    for _test in [name for name in vars(_case) if name.endswith("_cuda")]:
        delattr(_case, _test)
    globals()[_name] = _case

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")
