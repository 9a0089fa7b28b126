"""Every name of PyTorch's table does to types what PyTorch does."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from .calls import Call, Section, agrees, inferred, real, sections
from .torch_calls_elements import ELEMENTS

SECTIONS = [*sections(ELEMENTS)]
CALLS = [call for section in SECTIONS for call in section.calls]


def disagreement(call: Call, folder: Path) -> str:
    """Return how the checker's answer differs from PyTorch's, empty if it does not."""
    expected = real(call, call.sizes)
    assert not isinstance(expected, Exception), f"{call}: {expected!r}"
    found = inferred(call, folder, False)
    if found.errors or found.unknown:
        return f"{call}: {found.errors} {found.unknown}"
    if not agrees(found.result, expected, {}, found.invented):
        return f"{call}: inferred {found.result}, PyTorch returns {expected}"
    return ""


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_types_of_calls_are_those_that_pytorch_returns(section: Section, tmp_path: Path) -> None:
    wrong = [disagreement(call, tmp_path) for call in section.calls]
    assert [line for line in wrong if line] == []
