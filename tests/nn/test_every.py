"""The calls that ``tests/outside/chainer_every.py`` compares with Chainer's name all there is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hagane
from tests.nn.every import CALLS, Drawn

NAMES = Path(__file__).with_name("chainer_names.txt")
# Networks with weights of hundreds of MB (``tests/nn/test_links_more.py`` has them), and a refusal.
LEFT = {
    *("GoogLeNet", "ResNet50Layers", "ResNet101Layers", "ResNet152Layers"),
    *("VGG16Layers", "VGG19Layers", "TheanoFunction"),
}


def test_each_public_function_and_link_of_chainer_is_called() -> None:
    named = {line.split()[0] for line in NAMES.read_text().splitlines()}
    wanted = {name for name in named if name.startswith(("functions.", "links."))}
    called = {
        {"F": "functions.", "L": "links."}[letter] + name
        for call in CALLS
        for letter, name in re.findall(r"\b([FL])\.(\w+)", call)
    }
    assert wanted - called == {f"links.{name}" for name in LEFT}


@pytest.mark.parametrize("call", ["F.linear(v(n,c), v(d,c), v(d))", "keep(L.GRU(c, d))(v(n,c))"])
def test_a_call_has_results_gradients_and_second_gradients(call: str) -> None:
    found = dict(Drawn(hagane, 3, "d").run(call))
    firsts = {name.removeprefix("gradient") for name in found if name.startswith("gradient")}
    assert {"0"} <= firsts
    assert any(name.startswith("second") for name in found)
    assert all(np.isfinite(value).all() for value in found.values())
