"""Channels of activations that are scaled, through residual sums, clips and pooling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import hagane
from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.ship.quantize import QuantizeOptions, quantize
from hagane.ship.quantize.balance import fit_channels
from hagane.ship.quantize.channels import find_groups
from hagane.ship.quantize.graph import Source
from tests.native.models import draw
from tests.ship.models import make, node, save

Feeds = list[dict[str, np.ndarray]]


def network(folder: Path, *, clip: bool = True) -> tuple[Path, Feeds]:
    """Write an inverted residual block, odd sizes, whose channels differ by factors of hundreds."""
    scales = np.logspace(-2.5, 0.3, 12).astype(np.float32)
    limits = ["zero", "six"] if clip else ["zero"]
    nodes = [
        node("Conv", ["x", "a", "ab"], ["stem"], "stem", pads=[1] * 4, strides=[2, 2]),
        node("Conv", ["stem", "e", "eb"], ["expanded"], "expand"),
        node("Clip", ["expanded", *limits], ["wide"]),
        node("Conv", ["wide", "d", "db"], ["deep"], "deep", pads=[1] * 4, group=12),
        node("Clip", ["deep", *limits], ["deeper"]),
        node("Conv", ["deeper", "p", "pb"], ["narrow"], "project"),
        node("Add", ["stem", "narrow"], ["sum"]),
        node("Conv", ["sum", "g"], ["grouped"], "grouped", group=2),
        node("Relu", ["grouped"], ["positive"]),
        node("MaxPool", ["positive"], ["pooled"], kernel_shape=[3, 2], strides=[2, 2]),
        node("Flatten", ["pooled"], ["flat"]),
        node("Gemm", ["flat", "m", "mb"], ["y"], "last", transB=1),
    ]
    constants = {
        "zero": np.float32(0), "six": np.float32(6),
        "a": draw((4, 3, 3, 3), 1) * scales[::3].reshape(-1, 1, 1, 1),
        "ab": np.float32([9, -8, 7, 0.5]) * scales[::3],
        "e": draw((12, 4, 1, 1), 2) * scales.reshape(-1, 1, 1, 1), "eb": draw((12,), 3) * scales,
        "d": draw((12, 1, 3, 3), 4) / scales.reshape(-1, 1, 1, 1) / 8, "db": draw((12,), 5),
        "p": draw((4, 12, 1, 1), 6) / 8 * scales[::3].reshape(-1, 1, 1, 1),
        "pb": draw((4,), 7) * scales[::3],
        "g": draw((6, 2, 1, 1), 8) / np.repeat(scales[::3].reshape(2, 1, 2, 1, 1), 3, 1).reshape(
            6, 2, 1, 1
        ),
        "m": draw((5, 6 * 2 * 3), 9), "mb": draw((5,), 10),
    }  # fmt: skip
    feeds = [{"x": draw((3, 3, 11, 13), 20 + i)} for i in range(6)]
    save(make(nodes, {"x": (3, 3, 11, 13)}, ["y"], constants, feeds[0]), folder / "m.onnx")
    return folder / "m.onnx", feeds


def outputs(model: Path | onnx.ModelProto, feeds: Feeds) -> np.ndarray:
    session = hagane.InferenceSession(model)
    return np.stack([session.run(None, feed)[0] for feed in feeds])


def signal(expected: np.ndarray, found: np.ndarray) -> float:
    return float(10 * np.log10(np.sum(expected**2) / np.sum((expected - found) ** 2)))


def test_values_that_share_channels_are_one_group(tmp_path: Path) -> None:
    path, _ = network(tmp_path)
    found = [
        ([x.name for x in each.writers], [x.name for x in each.readers], each.clipped)
        for each in find_groups(Source(path))
    ]
    assert found == [
        (["stem", "project"], ["expand", "grouped"], ()),
        (["expand"], ["deep"], (("wide", 6.0),)),
        (["deep"], ["project"], (("deeper", 6.0),)),
        (["grouped"], ["last"], ()),
    ]


@pytest.mark.parametrize(
    ("operator", "inputs"), [("Sigmoid", ["c"]), ("Concat", ["c", "c"]), ("Add", ["c", "k"])]
)
def test_other_operators_keep_channels_as_they_are(
    tmp_path: Path, operator: str, inputs: list[str]
) -> None:
    nodes = [
        node("Conv", ["x", "a"], ["c"]),
        node(operator, inputs, ["s"], **({"axis": 2} if operator == "Concat" else {})),
        node("Conv", ["s", "b"], ["y"]),
    ]
    constants = {"a": draw((4, 3, 1, 1)), "b": draw((2, 4, 1, 1)), "k": draw((4, 1, 1))}
    save(make(nodes, {"x": (1, 3, 5, 5)}, ["y"], constants, {"x": draw((1, 3, 5, 5))}),
         tmp_path / "m.onnx")  # fmt: skip
    assert find_groups(Source(tmp_path / "m.onnx")) == ()


@pytest.mark.parametrize("clip", [True, False])
def test_outputs_stay_when_channels_are_scaled(tmp_path: Path, clip: bool) -> None:
    path, feeds = network(tmp_path, clip=clip)
    expected, source = outputs(path, feeds), Source(path)
    before = source.constants["e"].copy()
    assert fit_channels(source, feeds) == 4
    assert np.abs(source.constants["e"] / before).max() > 3
    np.testing.assert_allclose(outputs(source.model, feeds), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_channels_of_any_size_keep_their_levels(tmp_path: Path) -> None:
    path, feeds = network(tmp_path)
    later = [{"x": draw((3, 3, 11, 13), 90 + i)} for i in range(4)]
    expected, found = outputs(path, later), []
    for fitted in (False, True):
        quantize(path, lambda: feeds, tmp_path / "q.onnx", QuantizeOptions(fit_channels=fitted))
        found.append(signal(expected, outputs(tmp_path / "q.onnx", later)))
    assert found[1] > found[0] + 12
    assert found[1] > 20


def test_channels_that_few_feeds_show_are_not_cut_off(tmp_path: Path) -> None:
    nodes = [
        node("Conv", ["x", "a"], ["c"], "first"),
        node("Relu", ["c"], ["r"]),
        node("Conv", ["r", "d"], ["y"], "deep", group=3),
    ]
    constants = {"a": np.eye(3, dtype=np.float32)[:, :, None, None], "d": draw((3, 1, 1, 1))}
    found = []
    for rare in (0.1, 1.0):
        # The first channel is large, the second small; the third is small but in the last feed.
        sizes = [(1.0, 0.1, 0.1)] * 7 + [(1.0, 0.1, rare)]
        feeds = [
            {"x": draw((1, 3, 6, 5), i) * np.float32(each).reshape(3, 1, 1)}
            for i, each in enumerate(sizes)
        ]
        save(make(nodes, {"x": (1, 3, 6, 5)}, ["y"], constants, feeds[0]), tmp_path / "m.onnx")
        source = Source(tmp_path / "m.onnx")
        fit_channels(source, feeds)
        found.append(float(source.constants["a"][1, 1, 0, 0]))
    assert found[0] > 4
    assert found[1] < found[0] / 2


def test_one_feed_is_too_few_to_scale_channels(tmp_path: Path) -> None:
    path, feeds = network(tmp_path)
    assert fit_channels(Source(path), feeds[:1]) == 0


def test_channels_are_fitted_to_data(tmp_path: Path) -> None:
    path, _ = network(tmp_path)
    options = QuantizeOptions(fit_channels=True)
    with pytest.raises(InvalidArgument, match="needs --data FILE.py:make, which gives feeds"):
        quantize(path, None, tmp_path / "q.onnx", options)


def test_the_command_line_scales_channels_too(tmp_path: Path) -> None:
    path, feeds = network(tmp_path)
    np.savez(tmp_path / "feeds.npz", *(feed["x"] for feed in feeds))
    (tmp_path / "data.py").write_text(
        "import numpy as np\n"
        f"arrays = np.load({str(tmp_path / 'feeds.npz')!r})\n"
        "def make():\n    return [{'x': arrays[name]} for name in arrays.files]\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["quantize", str(path), "--data", f"{tmp_path / 'data.py'}:make", "--fit-channels",
              "-o", str(tmp_path / "q.onnx")])  # fmt: skip
    assert ended.value.code == 0
    written = []
    for fitted in (True, None, False):
        options = QuantizeOptions(fit_channels=fitted, correct_bias=fitted)
        quantize(path, lambda: feeds, tmp_path / "same.onnx", options)
        written.append((tmp_path / "same.onnx").read_bytes())
    assert (tmp_path / "q.onnx").read_bytes() == written[0] == written[1] != written[2]


def test_results_before_sums_stay_floats_and_others_are_bytes(tmp_path: Path) -> None:
    path, feeds = network(tmp_path)
    quantize(path, lambda: feeds, tmp_path / "q.onnx")
    graph = onnx.load(tmp_path / "q.onnx").graph
    readers = {name: each for each in graph.node for name in each.input}
    behind = set()
    for each in graph.node:
        if each.op_type == "Conv":
            after = readers[each.output[0]]
            after = readers[after.output[0]] if after.op_type in ("Clip", "Relu") else after
            assert after.op_type in ("Add", "QuantizeLinear"), each.name
            behind.add(after.op_type)
    assert behind == {"Add", "QuantizeLinear"}
