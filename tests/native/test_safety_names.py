"""Nothing of a model's text reaches the C source: names, doc strings, attribute strings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.errors import HaganeError, KernelError
from hagane.machine import Compiler
from tests.native.models import compiled, draw, model, session

MARK = "hostile"
HOSTILE = [
    f'{MARK} " quote',
    f"{MARK} */ int evil(void) {{ return 1; }} /*",
    f"{MARK} // line",
    f"{MARK}\n#include <{MARK}.h>\n",
    f'{MARK}\r\n__asm__("int3");',
    f"{MARK} %n %s %d {{0}} {{value}} {{",
    f"{MARK} \\ back\\",
    f"{MARK} \0 nul",
    f"{MARK} ??/ ??' ??<",
    f"{MARK} KERNEL P D q thread",
    f"{MARK} é \u2028 \U0001f600",
    f"{MARK}" * 2000,
]
each_text = pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))


def network(text: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of many kinds of kernel in which each name and doc string holds ``text``."""
    x, index = draw((1, 4, 10, 9)), np.array([1, 0])

    def n(name: str) -> str:
        return f"{text}{name}" if text else name

    nodes = [
        helper.make_node("Conv", [n("x"), n("w")], [n("a")], n("conv"), pads=[1, 1, 1, 1]),
        helper.make_node("Relu", [n("a")], [n("b")], n("relu")),
        helper.make_node("MaxPool", [n("b")], [n("c")], n("pool"), kernel_shape=[2, 2]),
        helper.make_node("Pad", [n("c"), n("pads")], [n("d")], n("pad"), mode="reflect"),
        helper.make_node("Gather", [n("d"), n("i")], [n("e")], n("gather"), axis=1),
        helper.make_node("Softmax", [n("e")], [n("f")], n("softmax")),
        helper.make_node("MatMul", [n("f"), n("m")], [n("g")], n("product")),
        helper.make_node("ReduceMean", [n("g")], [n("h")], n("mean"), keepdims=0),
        helper.make_node("LayerNormalization", [n("g"), n("s")], [n("l")], n("norm")),
        helper.make_node("Transpose", [n("l")], [n("t")], n("order"), perm=[0, 2, 3, 1]),
        helper.make_node("Concat", [n("t"), n("t")], [n("y")], n("twice"), axis=0),
    ]
    for node in nodes:
        node.doc_string = text
    constants = {
        n("w"): draw((5, 4, 3, 3), 1),
        n("pads"): np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        n("m"): draw((10, 7), 2),
        n("s"): draw((7,), 3),
    }
    feed = {n("x"): x, n("i"): index}
    proto = model(nodes, feed, [n("y"), n("h")], constants)
    proto.graph.name = proto.graph.doc_string = proto.doc_string = text
    proto.producer_name = (proto.model_version and text) or text
    proto.metadata_props.add(key=text, value=text)
    return proto, feed


def growing(text: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model whose sizes have ``text`` for a name and stay open until it runs."""
    feed = {"new": draw((1, 2, 1, 8)), "past": draw((1, 2, 3, 8), 1)}
    nodes = [
        helper.make_node("Concat", ["past", "new"], ["k"], axis=2),
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["new", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"]),
        helper.make_node("MatMul", ["weights", "k"], ["r"]),
        helper.make_node("Tanh", ["r"], ["y"]),
    ]
    return model(nodes, feed, ["y", "k"], shapes={"past": [1, 2, text or "steps", 8]}), feed


def codes(monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]) -> set[str]:
    """Return the text of the kernels that are compiled meanwhile."""
    return {kernel.code for kernel in compiled(monkeypatch, make)}


@each_text
@pytest.mark.parametrize("make", [network, growing])
def test_the_code_of_a_model_does_not_depend_on_its_names(
    text: str,
    make: Callable[[str], tuple[onnx.ModelProto, dict[str, np.ndarray]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, plain_feed = make("")
    hostile, feed = make(text)
    results = []
    texts = []
    for proto, arrays in ((plain, plain_feed), (hostile, feed)):
        texts.append(
            codes(monkeypatch, lambda p=proto, a=arrays: results.append(session(p).run(None, a)))
        )
    assert len(texts[0]) > 3
    if "//" in text and make is growing:
        # A size of this name is read as a quotient, which reference kernels serve.
        assert not any(MARK in code for code in texts[1])
    else:
        assert texts[0] == texts[1]
    for got, want in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_the_files_that_are_compiled_hold_no_text_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    call = Compiler.call

    def watch(self: Compiler, arguments: Sequence[str], made: Path) -> None:
        sources = [Path(each) for each in arguments if each.endswith("kernels.c")]
        seen.extend(source.read_text(encoding="utf-8") for source in sources)
        call(self, arguments, made)

    monkeypatch.setattr(Compiler, "call", watch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    proto, feed = network(" ".join(HOSTILE))
    session(proto, instructions="portable").run(None, feed)
    written = "\n".join(seen)
    assert "void conv_3x3_stride1_" in written
    assert MARK not in written
    assert "evil" not in written
    assert written.isascii()
    included = {line for line in written.splitlines() if "include" in line}
    assert included <= {'#include "lean.h"', '#include "whole.h"'}


@each_text
def test_an_error_names_the_node_as_the_model_does(text: str) -> None:
    proto, feed = network(text)
    made = session(proto)
    with pytest.raises(KernelError) as caught:
        made.run(None, {**feed, f"{text}i": np.array([0, 99])})
    assert str(caught.value) == (
        f"Gather '{text}gather' failed: index 99 is out of range for axis 1 with size 5"
    )
    assert made.run(None, feed)[0].shape == (2, 11, 7, 2)


def test_names_that_are_no_text_are_refused_or_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, _ = network("abcdef")
    raw = proto.SerializeToString().replace(b"abcdef", b'\xff"\xed\xa0\x80*')

    def load() -> None:
        with contextlib.suppress(HaganeError):
            hagane.InferenceSession(raw)

    assert not any("\\xff" in code or '"' in code for code in codes(monkeypatch, load))


STRINGS: list[tuple[str, str, dict[str, Any], list[tuple[int, ...]]]] = [
    ("Conv", "auto_pad", {"kernel_shape": [3, 3]}, [(1, 2, 6, 6), (3, 2, 3, 3)]),
    ("ConvTranspose", "auto_pad", {}, [(1, 2, 6, 6), (2, 3, 3, 3)]),
    ("MaxPool", "auto_pad", {"kernel_shape": [2, 2]}, [(1, 2, 6, 6)]),
    ("AveragePool", "auto_pad", {"kernel_shape": [2, 2]}, [(1, 2, 6, 6)]),
    ("LpPool", "auto_pad", {"kernel_shape": [2, 2]}, [(1, 2, 6, 6)]),
    ("Gelu", "approximate", {}, [(3, 4)]),
    ("DepthToSpace", "mode", {"blocksize": 2}, [(1, 4, 2, 2)]),
    ("SpaceToDepth", "mode", {"blocksize": 2}, [(1, 1, 4, 4)]),
    ("Einsum", "equation", {}, [(3, 4), (4, 2)]),
    ("GridSample", "mode", {}, [(1, 1, 4, 4), (1, 2, 2, 2)]),
    ("GridSample", "padding_mode", {}, [(1, 1, 4, 4), (1, 2, 2, 2)]),
]


@pytest.mark.parametrize(("operator", "attribute", "others", "shapes"), STRINGS)
@pytest.mark.parametrize("text", HOSTILE[:7], ids=range(7))
def test_attribute_strings_stay_out_of_the_code(
    operator: str,
    attribute: str,
    others: dict[str, Any],
    shapes: list[tuple[int, ...]],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = {f"x{number}": draw(shape, number) for number, shape in enumerate(shapes)}
    constants = {name: feed.pop(name) for name in list(feed)[1:]} if "Conv" in operator else {}
    node = helper.make_node(
        operator, [*feed, *constants], ["y"], "node", **{attribute: text}, **others
    )
    check_strings(monkeypatch, model([node], feed, constants=constants), feed, operator)


@pytest.mark.parametrize("text", HOSTILE[:7], ids=range(7))
@pytest.mark.parametrize("operator", ["Pad", "Resize", "BitShift", "LSTM", "ScatterND"])
def test_attribute_strings_of_further_operators_stay_out_of_the_code(
    operator: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = draw((1, 1, 4, 4))
    shift = np.ones((2, 2), np.uint8)
    cases: dict[str, list[tuple[list[str], dict[str, np.ndarray], dict[str, Any]]]] = {
        "Pad": [(["x", "p"], {"p": np.ones(8, np.int64)}, {"mode": text})],
        "Resize": [
            (["x", "", "s"], {"s": np.float32([1, 1, 2, 2])}, {name: text})
            for name in ("mode", "nearest_mode", "coordinate_transformation_mode",
                         "keep_aspect_ratio_policy")
        ],
        "BitShift": [(["a", "b"], {"a": shift, "b": shift}, {"direction": text})],
        "LSTM": [
            (["l", "w", "r"], {"l": draw((2, 1, 3)), "w": draw((1, 8, 3)), "r": draw((1, 8, 2))},
             {"hidden_size": 2, **strings})
            for strings in ({"direction": text}, {"activations": [text] * 3})
        ],
        "ScatterND": [
            (["x", "i", "u"], {"i": np.zeros((1, 4), np.int64), "u": np.float32([1])},
             {"reduction": text})
        ],
    }  # fmt: skip
    for inputs, constants, attributes in cases[operator]:
        node = helper.make_node(operator, inputs, ["y"], "node", **attributes)
        feed = {"x": x}
        # An elementwise neighbour is compiled whatever becomes of the node.
        nodes = [node, helper.make_node("Tanh", ["x"], ["z"])]
        check_strings(monkeypatch, model(nodes, feed, ["y", "z"], constants), feed, operator)


def check_strings(
    monkeypatch: pytest.MonkeyPatch,
    proto: onnx.ModelProto,
    feed: dict[str, np.ndarray],
    operator: str,
) -> None:
    """Load and run a model; it may be refused, but with an error that names the operator."""

    def run() -> None:
        try:
            session(proto).run(None, feed)
        except HaganeError as error:
            refusals.append(str(error))

    refusals: list[str] = []
    for code in codes(monkeypatch, run):
        assert MARK not in code
        assert "evil" not in code
    assert all(operator in refusal for refusal in refusals)
