"""GroupQueryAttention on caches whose fill a run tells, at open sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.native.written import check, check_fault, node

RNG = np.random.default_rng(0)
INPUTS = ("q", "k", "v", "past_k", "past_v", "fill", "total", "cos", "sin", "at", "bias", "sinks")
HEADS, GROUPS = 6, 2


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def feed(
    batch: int, length: int, before: int, size: int, *, packed: bool = False, more: int = 0
) -> dict[str, np.ndarray]:
    """Return a call's inputs: caches hold up to ``before`` keys and have room for ``more``."""
    found = {
        "fill": RNG.integers(before - before // 2, before + 1, batch).astype(np.int32) + length - 1,
        "total": np.array(before + length, np.int32),
        "past_k": draw(batch, GROUPS, before + more, size),
        "past_v": draw(batch, GROUPS, before + more, size),
    }
    if packed:
        return found | {"q": draw(batch, length, (HEADS + 2 * GROUPS) * size)}
    found |= {name: draw(batch, length, GROUPS * size) for name in "kv"}
    return found | {"q": draw(batch, length, HEADS * size)}


def attention(names: Any, outputs: Any = ("y", "pk", "pv"), **attributes: Any) -> Any:
    inputs = [name if name in names else "" for name in INPUTS]
    while not inputs[-1]:
        inputs.pop()
    return node(
        "com.microsoft:GroupQueryAttention", inputs, outputs, num_heads=HEADS,
        kv_num_heads=GROUPS, **attributes,
    )  # fmt: skip


SIZES = [(2, 1, 7, 8), (1, 5, 0, 24), (3, 9, 4, 8), (1, 1, 70, 40), (1, 33, 3, 16)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"softcap": 1.5, "scale": 0.3},
        {"local_window_size": 3, "smooth_softmax": 1},
    ],
)
def test_queries_meet_the_keys_of_their_cache(packed: bool, attributes: dict[str, Any]) -> None:
    feeds = [feed(*sizes, packed=packed, more=sum(sizes) % 3) for sizes in SIZES]
    check(attention(feeds[0], **attributes), feeds, length=100)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("placed", [False, True])
def test_heads_are_turned_by_their_place(interleaved: int, placed: bool) -> None:
    feeds = []
    for batch, length, before, size in SIZES:
        one = feed(batch, length, before, size)
        one |= {name: draw(90, size // 4) for name in ("cos", "sin")}
        if placed:
            one["at"] = RNG.integers(0, 90, (batch, length))
        feeds.append(one)
    made = attention(feeds[0], do_rotary=1, rotary_interleaved=interleaved)
    check(made, feeds, length=100)
    if placed:
        check_fault(made, feeds[0], feeds[0] | {"at": np.full((2, 1), 90)})


def test_scores_have_summands_and_sinks() -> None:
    feeds = []
    for batch, length, before, size in SIZES:
        one = feed(batch, length, before, size)
        one["bias"] = draw(batch, HEADS, length, before + length)
        one["sinks"] = draw(HEADS)
        feeds.append(one)
    check(attention(feeds[0]), feeds, length=100, fixed=["sinks"])


def test_caches_need_no_past_and_no_reader() -> None:
    feeds = [feed(*sizes) for sizes in SIZES if sizes[2] == 0]
    for one in feeds:
        del one["past_k"], one["past_v"]
    check(attention(feeds[0]), feeds, length=100)
    check(attention(feeds[0], ("y",)), feeds, length=100)


def test_halves_are_computed_wide() -> None:
    feeds = [
        {k: v.astype(np.float16) if v.dtype == np.float32 else v for k, v in feed(*sizes).items()}
        for sizes in SIZES[:3]
    ]
    check(attention(feeds[0]), feeds, length=100)


def test_a_cache_that_is_too_full_is_refused() -> None:
    good = feed(2, 1, 7, 8)
    check_fault(attention(good), good, good | {"fill": np.full(2, 90, np.int32)})
