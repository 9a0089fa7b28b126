"""Every name of PyTorch's table does to types what PyTorch does."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from .calls import Call, Section, agrees, inferred, real, sections
from .torch_calls_elements import ELEMENTS
from .torch_calls_indexing import INDEXING
from .torch_calls_layers import LAYERS
from .torch_calls_losses import LOSSES
from .torch_calls_parts import PARTS
from .torch_calls_shapes import SHAPES
from .torch_calls_weights import WEIGHTS
from .torch_calls_windows import PRODUCTS, WINDOWS
from .torch_calls_wrong import WRONG

SECTIONS = [
    section
    for text in (ELEMENTS, SHAPES, PARTS, INDEXING, PRODUCTS, WINDOWS, WEIGHTS, LAYERS, LOSSES)
    for section in sections(text)
]
SYMBOLIC = [section for section in SECTIONS if section.calls[0].sizes]
REFUSED = sections(WRONG)
# What PyTorch refuses at some sizes for other reasons than shapes: statistics of one value in
# training, and memory that overlaps.
BEYOND_SHAPES = ("when training", "refer to a single memory location")
# PyTorch warns of names that are going away; what it returns is still compared.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the sources that the checker reads."""
    return tmp_path_factory.mktemp("calls")


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
def test_types_of_calls_are_those_that_pytorch_returns(section: Section, folder: Path) -> None:
    wrong = [disagreement(call, folder) for call in section.calls]
    assert [line for line in wrong if line] == []


def symbolic_disagreement(call: Call, folder: Path, sizes: dict[str, int]) -> str:
    """Return how inferred formulas differ from PyTorch's shapes at sizes; empty if nowhere."""
    found = inferred(call, folder, True)
    if found.errors or found.unknown:
        return f"{call}: {found.errors} {found.unknown}"
    if not found.assumes(sizes):
        return ""
    expected = real(call, sizes)
    if isinstance(expected, Exception):
        beyond = any(text in str(expected) for text in BEYOND_SHAPES)
        return "" if beyond else f"{call}: no error, PyTorch raises {expected!r} at {sizes}"
    if agrees(found.result, expected, sizes, found.invented):
        return ""
    return f"{call}: inferred {found.result}, PyTorch returns {expected} at {sizes}"


# Without shrinking: a section runs hundreds of calls, and the message has the sizes.
@pytest.mark.parametrize("section", SYMBOLIC, ids=str)
@given(data=st.data())
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate],
          suppress_health_check=list(HealthCheck))  # fmt: skip
def test_formulas_of_shapes_hold_for_all_sizes_that_pytorch_takes(
    section: Section, folder: Path, data: st.DataObject
) -> None:
    sizes = {
        name: data.draw(st.integers(1, size + 3), name)
        for name, size in section.calls[0].sizes.items()
    }
    wrong = [symbolic_disagreement(call, folder, sizes) for call in section.calls]
    assert [line for line in wrong if line] == []


@pytest.mark.parametrize("section", SYMBOLIC, ids=str)
def test_formulas_of_shapes_hold_at_the_sizes_of_the_example(
    section: Section, folder: Path
) -> None:
    for call in section.calls:
        found = inferred(call, folder, True)
        assert found.assumes(call.sizes), call
        assert symbolic_disagreement(call, folder, call.sizes) == ""


@pytest.mark.parametrize("section", REFUSED, ids=str)
def test_what_pytorch_refuses_is_an_error(section: Section, folder: Path) -> None:
    missed = []
    for call in section.calls:
        assert isinstance(real(call, {}), Exception), f"PyTorch takes {call}"
        if not inferred(call, folder, False).errors:
            missed.append(str(call))
    assert missed == []


def test_calls_are_many() -> None:
    assert sum(len(section.calls) for section in SECTIONS) >= 1300
    assert sum(len(section.calls) for section in SYMBOLIC) >= 1000
    assert sum(len(section.calls) for section in REFUSED) >= 350


# What a message says beside the sizes: the call, what was expected, what came, a remedy.
MESSAGES = {
    "torch.cat([x, x], dim=3)": "torch.cat: dim=3 is out of range [-3, 2]",
    "torch.cat([x.sum(), x.mean()])": "torch.cat: expected tensors of one axis or more",
    "x.mean(3)": "x.mean: dim=3 is out of range",
    "i.mean()": "(remedy: convert it with .float())",
    "x @ x": "(remedy: transpose the second operand: .transpose(-2, -1))",
    "x.t()": "(remedy: name the axes: .transpose(a, b))",
    "nn.Linear(12, 5)(x)": "(remedy: flatten it first: torch.flatten(x, 1))",
    "nn.Linear(3, 5)(x)": "(remedy: move axis 1 to the end with transpose or permute)",
    "nn.Embedding(10, 4)(x)": "(remedy: convert it with .long())",
    "nn.Linear(4, 5)(x.double())": "(remedy: convert one of them, as in .to(torch.float32))",
    "x.masked_fill(i, 0)": "(remedy: compare it first, as in mask == 0, or convert it with .bool())",
    "F.cross_entropy(x, i)": "(remedy: the classes belong in axis 1: logits.transpose(1, 2))",
    "x.backward()": "(remedy: reduce it first with .mean() or .sum())",
    "F.pad(x, (4, 0), mode='reflect')": "expected size 4 minus the padding of 4 to be at least 1",
    "torch.atan2(i, 2)": "torch.atan2(input, other, out=…): expected a tensor as 'other', got int(2)",
    "x.sum(0, keepdim=1)": "expected a bool as 'keepdim', got int(1)",
    "x.mean(1, True, 3)": "expected at most 2 arguments by place, got 3",
    "torch.diagonal(x, offset=[1])": "expected an integer as 'offset', got [int(1)]",
    "nn.LSTM(5, 6)(x)": "expected 5 features in the last axis, got 4",
}


@pytest.mark.parametrize("call", MESSAGES)
def test_messages_name_what_was_expected_and_a_remedy(call: str, folder: Path) -> None:
    inputs = (("x", "float32[2, 3, 4]", 0), ("i", "int64[2, 3]", 2))
    wrong = Call(call, inputs)
    assert isinstance(real(wrong, {}), Exception)
    found = inferred(wrong, folder, False)
    assert len(found.errors) == 1
    assert MESSAGES[call] in found.errors[0]


def _share(sections_: list[Section], part: int) -> list[Call]:
    """Return one call of so many of each section, of other ones as calls come and go."""
    calls = [call for section in sections_ for call in section.calls]
    return [call for call in calls if crc32(str(call).encode()) % part == 0]


def test_a_share_of_the_calls_of_all_sections_has_the_types_of_pytorch(folder: Path) -> None:
    """Most sections are left to the long tests; a fault in one of them shows here."""
    calls = _share(SECTIONS, 12)
    assert len(calls) > 150
    wrong = [disagreement(call, folder) for call in calls]
    assert [line for line in wrong if line] == []


def test_a_share_of_all_calls_that_pytorch_refuses_are_errors(folder: Path) -> None:
    calls = _share(REFUSED, 3)
    assert len(calls) > 100
    assert [str(c) for c in calls if not inferred(c, folder, False).errors] == []
