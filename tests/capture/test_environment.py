"""The environment of the running Python, which a captured program reads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

import hagane


def by_environment(x: Any) -> Any:
    if os.environ.get("HAGANE_TEST_NOWHERE") or "HAGANE_TEST_NOWHERE" in os.environ:
        return x
    try:
        return x * float(os.environ["HAGANE_TEST_NOWHERE"])
    except KeyError:
        return x * float(os.getenv("HAGANE_TEST_HERE", "1"))


def test_what_the_environment_lacks_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGANE_TEST_HERE", "2")
    assert hagane.compile(by_environment, fullgraph=True)(np.ones(2)).tolist() == [2, 2]


def by_process(x: Any) -> Any:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return x
    return x - 1 if torch.distributed.is_available() else x + 1


def test_whether_pytorch_has_processes_is_known() -> None:
    x = torch.ones(2)
    assert hagane.compile(by_process, fullgraph=True)(x).tolist() == by_process(x).tolist()
