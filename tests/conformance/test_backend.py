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
_suite.exclude("_cuda$")
for _pattern in EXCLUDED:
    _suite.exclude(_pattern)
globals().update(_suite.test_cases)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")
