"""Gradients of whole models: control flow, named sizes, wrong requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest

import hagane
from hagane.errors import InvalidArgument, NotDifferentiable
from hagane.graph import to_proto


def parse(text: str) -> onnx.ModelProto:
    header = '<ir_version: 10, opset_import: ["" : 21]>\n'
    return onnx.parser.parse_model(header + text)


def run(model: Any, feeds: Mapping[str, np.ndarray], names: Sequence[str]) -> list[np.ndarray]:
    """Run a model in ONNX Runtime, after ONNX's checker has seen it."""
    proto = to_proto(model) if isinstance(model, ir.Model) else model
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return list(session.run(names, dict(feeds)))


def check(
    model: onnx.ModelProto,
    feeds: Sequence[Mapping[str, np.ndarray]],
    names: Sequence[str],
    step: float = 1e-6,
    tolerance: float = 1e-6,
) -> ir.Model:
    """Compare the gradients of ``loss`` with central differences, for several feeds."""
    made = hagane.gradient(model, "loss", names)
    wanted = [f"{name}.gradient" for name in names]
    proto = to_proto(made)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    rng = np.random.default_rng(0)
    for feed in feeds:
        results = dict(zip(wanted, session.run(wanted, dict(feed)), strict=True))
        for name in names:
            direction = np.asarray(rng.standard_normal(feed[name].shape))
            assert results[f"{name}.gradient"].shape == feed[name].shape
            ends = [
                session.run(["loss"], {**feed, name: np.asarray(feed[name] + s * direction)})[0]
                for s in (step, -step)
            ]
            want = float(np.sum(ends[0] - ends[1])) / (2 * step)
            got = float(np.sum(results[f"{name}.gradient"] * direction))
            assert got == pytest.approx(want, rel=tolerance, abs=tolerance), name
    return made


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


BRANCH = """
f (double[n, 3] x, double[3] w, bool c) => (double loss) {
  y = Mul(x, w)
  z = If(c) <
    then_branch = t () => (double[a, b] r) { e = Exp(y)  r = Mul(e, w) },
    else_branch = e () => (double[a, b] s) { s = Identity(y) }
  >
  q = Mul(z, z)
  loss = ReduceSum<keepdims = 0>(q)
}
"""


def test_branches() -> None:
    feeds = [
        {"x": draw(n, 3), "w": draw(3, seed=1), "c": np.array(c)}
        for n, c in ((2, True), (4, False), (0, True))
    ]
    check(parse(BRANCH), feeds, ["x", "w"])


LOOP = """
f (double[n, 3] x, double[3, 3] w, int64 count) => (double loss) {
  yes = Constant <value = bool {1}> ()
  last, items, squares = Loop(count, yes, x) <
    body = b (int64 i, bool on, double[k, 3] h)
        => (bool go, double[k, 3] h2, double[k, 3] o, double[k] s) {
      go = Identity(on)
      p = MatMul(h, w)
      h2 = Tanh(p)
      f = Cast<to = 11>(i)
      o = Mul(h2, f)
      two = Mul(h, h)
      axis = Constant <value = int64[1] {1}> ()
      s = ReduceSum<keepdims = 0>(two, axis)
    }
  >
  a = ReduceSum<keepdims = 0>(last)
  b = ReduceSumSquare<keepdims = 0>(items)
  c = ReduceSum<keepdims = 0>(squares)
  loss = Sum(a, b, c)
}
"""


def test_loops() -> None:
    feeds = [
        {"x": draw(n, 3), "w": draw(3, 3, seed=1), "count": np.array(count)}
        for n, count in ((2, 4), (1, 1), (2, 0))
    ]
    check(parse(LOOP), feeds, ["x", "w"])


STOPPING = """
f (double x, double w) => (double loss) {
  yes = Constant <value = bool {1}> ()
  most = Constant <value = int64 {50}> ()
  last = Loop(most, yes, x) <
    body = b (int64 i, bool on, double h) => (bool go, double h2) {
      h2 = Mul(h, w)
      ten = Constant <value = double {10.0}> ()
      go = Less(h2, ten)
    }
  >
  loss = Mul(last, last)
}
"""


def test_loops_that_stop_by_themselves() -> None:
    feeds = [{"x": np.array(x), "w": np.array(1.7)} for x in (1.0, 0.3, 20.0)]
    check(parse(STOPPING), feeds, ["x", "w"])


SCAN = """
f (double[t, n, 3] x, double[n, 3] start, double[3, 3] w) => (double loss) {
  last, items = Scan(start, x) <
    num_scan_inputs = 1, scan_input_directions = [DIRECTION], scan_output_directions = [OUT],
    body = b (double[n, 3] h, double[n, 3] now) => (double[n, 3] h2, double[n, 3] o) {
      p = MatMul(h, w)
      q = Add(p, now)
      h2 = Tanh(q)
      o = Mul(h2, now)
    }
  >
  a = ReduceSum<keepdims = 0>(last)
  sq = CumSum(items, zero)
  b = ReduceSumSquare<keepdims = 0>(sq)
  loss = Add(a, b)
}
"""


@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_scans(directions: tuple[int, int]) -> None:
    text = SCAN.replace("DIRECTION", str(directions[0])).replace("OUT", str(directions[1]))
    text = text.replace("  last,", "  zero = Constant <value = int64 {0}> ()\n  last,", 1)
    feeds = [
        {"x": draw(t, n, 3), "start": draw(n, 3, seed=2), "w": draw(3, 3, seed=1)}
        for t, n in ((4, 2), (1, 1), (0, 2))[:2]
    ]
    check(parse(text), feeds, ["x", "w", "start"])


NESTED = """
f (double[3] x, double[3] w) => (double loss) {
  yes = Constant <value = bool {1}> ()
  three = Constant <value = int64 {3}> ()
  last = Loop(three, yes, x) <
    body = b (int64 i, bool on, double[3] h) => (bool go, double[3] h2) {
      go = Identity(on)
      one = Constant <value = int64 {1}> ()
      odd = Equal(i, one)
      h2 = If(odd) <
        then_branch = t () => (double[3] r) { e = Mul(h, w)  r = Sin(e) },
        else_branch = e () => (double[3] s) {
          s = Loop(i, on, h) <
            body = inner (int64 j, bool onn, double[3] g) => (bool goo, double[3] g2) {
              goo = Identity(onn)
              m = Mul(g, w)
              g2 = Cos(m)
            }
          >
        }
      >
    }
  >
  loss = ReduceSumSquare<keepdims = 0>(last)
}
"""


def test_nested_control_flow() -> None:
    check(parse(NESTED), [{"x": draw(3), "w": draw(3, seed=1)}], ["x", "w"])


SIMPLE = """
f (float[n, 3] x, float[3, 2] w, int64[n] ids) => (float[n, 2] y, float loss) {
  unused = Neg(w)
  p = MatMul(x, w)
  y = Relu(p)
  loss = ReduceSum<keepdims = 0>(y)
}
"""


@pytest.mark.parametrize(
    ("of", "by", "message"),
    [
        ("lost", ["x"], "'of' names no value of the model: 'lost'; did you mean 'loss'"),
        ("loss", ["v"], "'with_respect_to' names no value of the model: 'v'$"),
        ("loss", ["x", "ids"], r"'ids' is int64\[n\], which has no gradient"),
        ("y", ["x"], r"expected one number .* 'y' is float32\[n, 2\]: .*'y.seed' with seeds=True"),
        ("loss", ["x", "unused"], "'loss' does not depend on 'unused': leave that out"),
        ("loss", [], "expected at least one name in 'with_respect_to'"),
        ("loss", ["x", "x"], "'x' stands twice in 'with_respect_to'"),
    ],
)
def test_wrong_requests_are_refused(of: str, by: list[str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        hagane.gradient(parse(SIMPLE), of, by)


def test_operators_without_gradient_are_named() -> None:
    text = """
    f (float[2] x) => (float loss) {
      y = Bernoulli(x)
      loss = ReduceSum<keepdims = 0>(y)
    }
    """
    with pytest.raises(NotDifferentiable, match="Bernoulli has no gradient: its result is drawn"):
        hagane.gradient(parse(text), "loss", ["x"])


def test_seeds_are_inputs() -> None:
    made = hagane.gradient(parse(SIMPLE), "y", ["x", "w", "p"], seeds=True)
    feeds = {
        "x": draw(4, 3).astype(np.float32),
        "w": draw(3, 2, seed=1).astype(np.float32),
        "ids": np.zeros(4, np.int64),
        "y.seed": draw(4, 2, seed=2).astype(np.float32),
    }
    of_x, of_p = run(made, feeds, ["x.gradient", "p.gradient"])
    want = feeds["y.seed"] * (feeds["x"] @ feeds["w"] > 0)
    np.testing.assert_allclose(of_p, want, 1e-6)
    np.testing.assert_allclose(of_x, want @ feeds["w"].T, 1e-5)


def test_gradients_have_gradients() -> None:
    text = """
    f (double[3] x) => (double loss) {
      c = Sin(x)
      d = Mul(c, x)
      loss = ReduceSumSquare<keepdims = 0>(d)
    }
    """
    first = hagane.gradient(parse(text), "loss", ["x"])
    second = hagane.gradient(first, "x.gradient", ["x"], seeds=True)
    x, seed, step = draw(3), draw(3, seed=1), 1e-6
    (found,) = run(second, {"x": x, "x.gradient.seed": seed}, ["x.gradient.2"])
    ends = [run(first, {"x": x + s * seed}, ["x.gradient"])[0] for s in (step, -step)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), 1e-5)


def test_sizes_that_show_only_at_run_time() -> None:
    text = """
    f (double[a, b] x, double[c, b] y, int64[2] shape) => (double loss) {
      z = Mul(x, y)
      r = Reshape(z, shape)
      t = Tanh(r)
      s = Slice(t, starts, ends)
      loss = ReduceSumSquare<keepdims = 0>(s)
    }
    """
    text = text.replace(
        "      z =",
        """      starts = Constant <value = int64[1] {1}> ()
      ends = Constant <value = int64[1] {-1}> ()
      z =""",
    )
    feeds = [
        {"x": draw(a, 3), "y": draw(c, 3, seed=1), "shape": np.array(shape)}
        for a, c, shape in ((4, 4, [6, 2]), (1, 4, [3, 4]), (4, 1, [12, 1]))
    ]
    for feed in feeds:
        check(parse(text), [feed], ["x", "y"])


@pytest.mark.parametrize(
    "attributes",
    [
        'mode = "linear", coordinate_transformation_mode = "align_corners"',
        'mode = "cubic", exclude_outside = 1',
        'mode = "linear", antialias = 1',
        'mode = "nearest"',
    ],
)
def test_pictures_of_any_size_are_resized(attributes: str) -> None:
    text = f"""
    f (double[n, 2, h, w] x, int64[2] sizes) => (double loss) {{
      y = Resize <axes = [2, 3], {attributes}> (x, , , sizes)
      half = Constant <value = float[1] {{0.5}}> ()
      z = Resize <axes = [-1], {attributes}> (y, , half)
      loss = ReduceSumSquare<keepdims = 0>(z)
    }}
    """
    model = parse(text)
    made = hagane.gradient(model, "loss", ["x"])
    session = hagane.InferenceSession(made)
    for shape, sizes in (((1, 2, 3, 4), [5, 6]), ((2, 2, 5, 1), [2, 4])):
        feed = {"x": draw(*shape), "sizes": np.array(sizes)}
        g = session.run(["x.gradient"], feed)[0]
        direction = draw(*shape, seed=1)
        ends = [
            session.run(["loss"], {**feed, "x": feed["x"] + step * direction})[0]
            for step in (1e-6, -1e-6)
        ]
        assert float((g * direction).sum()) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, 1e-6)


def test_what_keeps_its_aspect_needs_sizes() -> None:
    text = """
    f (double[n, 2, h, w] x, int64[2] sizes) => (double loss) {
      y = Resize <axes = [2, 3], keep_aspect_ratio_policy = "not_larger"> (x, , , sizes)
      loss = ReduceSumSquare<keepdims = 0>(y)
    }
    """
    wanted = "Resize with keep_aspect_ratio_policy 'not_larger' has no gradient along axes of"
    with pytest.raises(NotDifferentiable, match=wanted):
        hagane.gradient(parse(text), "loss", ["x"])


@pytest.mark.long
def test_windows_of_images_whose_sizes_have_no_name() -> None:
    # The padded sizes are the data's, and no axis shows them alone.
    text = """
    f (float[n, 1, h, w] x, int64[8] pads) => (float loss) {
      padded = Pad (x, pads)
      y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (padded)
      other = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (x)
      sum = Add (y, other)
      loss = ReduceSumSquare<keepdims = 0>(sum)
    }
    """
    made = hagane.gradient(parse(text), "loss", ["x"])
    assert not [node for node in made.graph if node.domain]
    feeds = {"x": draw(2, 1, 6, 7).astype(np.float32), "pads": np.zeros(8, np.int64)}
    (g,) = run(made, feeds, ["x.gradient"])
    feeds["pads"][6] = 1  # as the window of ceil mode
    np.testing.assert_array_equal(run(made, feeds, ["x.gradient"])[0].shape, g.shape)


GROWING = """
f (double[n, 3] x, double[3] w) => (double loss) {
  length = Shape <end = 1> (x)
  zero = Constant <value = int64[1] {0}> ()
  count = Squeeze (length, zero)
  none = Constant <value = double[0, 3] {}> ()
  rows = Loop (count, , none) <body = b (int64 i, bool on, double[p, 3] before)
    => (bool still, double[q, 3] after) {
    still = Identity (on)
    row = Gather (x, i)
    scaled = Mul (row, w)
    item = Unsqueeze (scaled, zero)
    sum = ReduceSum <keepdims = 0> (row)
    nothing = Constant <value = double {0}> ()
    taken = Greater (sum, nothing)
    after = If (taken) <
      then_branch = t () => (double[r, 3] longer) { longer = Concat <axis = 0> (before, item) },
      else_branch = e () => (double[s, 3] same) { same = Mul (before, w) }
    >
  }>
  loss = ReduceSumSquare<keepdims = 0>(rows)
}
"""


def test_a_state_grows_in_some_iterations() -> None:
    feeds = [
        {"x": draw(rows, 3, seed=rows), "w": np.array([0.5, 2.0, -1.0])} for rows in (5, 1, 0, 8)
    ]
    check(parse(GROWING), feeds, ["x", "w"])


def test_masks_of_dropout_are_kept() -> None:
    text = """
    f (double[50] x) => (double[50] y, double loss) {
      yes = Constant <value = bool {1}> ()
      half = Constant <value = double {0.5}> ()
      y = Dropout <seed = 3> (x, half, yes)
      loss = ReduceSumSquare<keepdims = 0>(y)
    }
    """
    x = np.abs(draw(50)) + 1
    y, g = run(hagane.gradient(parse(text), "loss", ["x"]), {"x": x}, ["y", "x.gradient"])
    np.testing.assert_allclose(g, 4 * y)


def test_other_domains_are_imported() -> None:
    text = """
    f (float[3, 3] x) => (float loss) {
      loss = Det(x)
    }
    """
    x = draw(3, 3).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)
    (g,) = run(hagane.gradient(parse(text), "loss", ["x"]), {"x": x}, ["x.gradient"])
    np.testing.assert_allclose(g, np.linalg.det(x) * np.linalg.inv(x).T, 1e-4)
