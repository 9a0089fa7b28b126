"""Capture uses a name of a library only where its graph gives the library's values."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.libraries.names.meant import MEANT
from hagane.frontends.libraries.names.typed_only import TYPED_ONLY, reason_of

from .meanings import CALLS, EXPRESSIONS, listed, numpy_outcome, outcome, outcomes

pytestmark = pytest.mark.filterwarnings("ignore")


def drawn(calls: Sequence[Any], count: int) -> list[Any]:
    """Return a share of the calls, the same each time; anew where more examples are asked for."""
    share = os.environ.get("HAGANE_EXAMPLES", "")
    count = min(len(calls), max(1, round(count * float(share or 1))))
    return random.Random(None if share else 7).sample(calls, count)


def test_a_share_of_the_calls_computes_what_pytorch_does(tmp_path: Path) -> None:
    told = {call: outcome(call, tmp_path, trusting=False)[0] for call in drawn(CALLS, 20)}
    assert {call: text for call, text in told.items() if text.startswith("wrong")} == {}
    assert sum(text == "right" for text in told.values()) > len(told) / 2


def test_a_share_of_the_expressions_computes_what_numpy_does(tmp_path: Path) -> None:
    told = {
        text: numpy_outcome(text, tmp_path, trusting=False)[0] for text in drawn(EXPRESSIONS, 20)
    }
    assert {text: found for text, found in told.items() if found.startswith("wrong")} == {}
    assert sum(found == "right" for found in told.values()) > len(told) / 4


def test_a_wrong_meaning_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hagane.ops.functions.sums import distances

    call = next(call for call in CALLS if call.source == "torch.cdist(u, s)")
    assert outcome(call, tmp_path) == ("right", {"torch.cdist"})
    other = lambda x, y, order: distances.norm(  # noqa: E731
        distances.mul(distances.unsqueeze(x, [1]), y), [2], False, order
    )
    monkeypatch.setattr(distances, "distances_of_all", other)
    assert outcome(call, tmp_path) == ("wrong: other values", {"torch.cdist"})


def test_every_name_of_numpy_is_meant_or_says_why_not() -> None:
    tables = MeaningTables()
    table = tables.tables["numpy"]
    members = [f"{owner}.{name}" for kind in (table.methods, table.attributes)
               for owner, found in kind.items() for name in found]  # fmt: skip
    names = {*table.functions, *members}
    assert len(names) > 400
    silent = [
        name
        for name in names
        if not reason_of(name) and name not in MEANT and not is_meant(tables, name)
    ]
    assert sorted(set(silent) - UNCOMPARED) == []


# Names that this NumPy may lack, and an array's type.
UNCOMPARED = {
    *(f"numpy.{name}" for name in (
        "float_", "ndarray", "ndarray.__len__", "ndarray.dtype", "ndarray.ptp", "row_stack",
        "amax", "conj",
    )),
}  # fmt: skip


def is_meant(tables: MeaningTables, name: str) -> bool:
    return id(tables._handler(name)) in tables._handlers


def test_no_name_is_both_meant_and_typed_only() -> None:
    assert [name for name in MEANT if reason_of(name)] == []
    assert all(len(reason.split()) > 4 for reason in TYPED_ONLY.values())


@pytest.mark.long
def test_the_list_of_names_is_what_the_calls_show() -> None:
    found = listed(outcomes())
    assert sorted(MEANT - found) == []
    assert sorted(found - MEANT) == []
