"""Sizes that come with the run: any of them, no compilation for each, none after preparing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
import hagane.native.plan.partition
import hagane.native.run.engine
from hagane.errors import KernelError
from tests.native.agreement import agree_over, same
from tests.native.models import draw, every_level, model, refused, session

SIZES = (1, 0, 17, 2, 3, 5, 16, 31, 64, 100)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect how many kernels each call of the compiler's front takes, cached or not."""
    counted: list[int] = []
    compile_kernels = hagane.native.plan.partition.compile_kernels

    def count(kernels, level):  # type: ignore[no-untyped-def]
        counted.append(len(kernels))
        return compile_kernels(kernels, level)

    monkeypatch.setattr(hagane.native.plan.partition, "compile_kernels", count)
    return counted


def encoder() -> tuple[onnx.ModelProto, dict[str, tuple[str | int, ...]]]:
    """Return one layer of a transformer over ids and a mask of symbolic batch and length."""
    width, heads = 32, 4
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("LayerNormalization", ["e", "w0", "b0"], ["x"]),
        helper.make_node("Cast", ["mask"], ["m"], to=1),
        helper.make_node("Unsqueeze", ["m", "inner"], ["mu"]),
        helper.make_node("Sub", ["one", "mu"], ["gone"]),
        helper.make_node("Mul", ["gone", "low"], ["bias"]),
    ]
    for name in "qkv":
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}p"]),
            helper.make_node("Add", [f"{name}p", f"b{name}"], [f"{name}b"]),
            helper.make_node("Reshape", [f"{name}b", "split"], [f"{name}r"]),
            helper.make_node("Transpose", [f"{name}r"], [f"{name}t"], perm=[0, 2, 1, 3]),
        ]
    nodes += [
        helper.make_node("Transpose", ["kt"], ["kk"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["qt", "kk"], ["s"]),
        helper.make_node("Add", ["s", "bias"], ["sb"]),
        helper.make_node("Softmax", ["sb"], ["p"]),
        helper.make_node("MatMul", ["p", "vt"], ["o"]),
        helper.make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["ot", "join"], ["j"]),
        helper.make_node("Add", ["j", "x"], ["r"]),
        helper.make_node("Gelu", ["r"], ["g"]),
        helper.make_node("ReduceMean", ["g", "steps"], ["y"], keepdims=0),
    ]
    constants = {
        "table": draw((50, width)), "w0": draw((width,), 1), "b0": draw((width,), 2),
        "inner": np.array([1, 2]), "one": np.float32([1]), "low": np.float32([-1e9]),
        "split": np.array([0, 0, heads, width // heads]), "join": np.array([0, 0, width]),
        "steps": np.array([1]),
    }  # fmt: skip
    for i, name in enumerate("qkv"):
        constants[f"w{name}"] = draw((width, width), 3 + i) / np.float32(6)
        constants[f"b{name}"] = draw((width,), 6 + i)
    feed = {"ids": np.zeros((1, 1), np.int64), "mask": np.zeros((1, 1), np.int64)}
    shapes: dict[str, tuple[str | int, ...]] = {
        "ids": ("batch", "steps"),
        "mask": ("batch", "steps"),
    }
    return model(nodes, feed, ["y", "r"], constants, shapes), shapes


@every_level
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_a_transformer_of_symbolic_sizes_runs_at_any(level: str, compilations: list[int]) -> None:
    proto, _ = encoder()
    made, reference = session(proto, instructions=level), session(proto, engine="reference")
    assert refused(made) == {}
    before = len(compilations)
    random = np.random.default_rng(0)
    for number, steps in enumerate(SIZES):
        batch = SIZES[(3 * number + 2) % len(SIZES)] % 7
        ids = random.integers(0, 50, (batch, steps))
        mask = (random.random((batch, steps)) < 0.8).astype(np.int64)
        mask[:, :1] = 1
        feed = {"ids": ids, "mask": mask}
        for name, left, right in zip(
            "yr", made.run(None, feed), reference.run(None, feed), strict=True
        ):
            same(name, left, right, length=1000)
    assert len(compilations) == before


@every_level
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_an_image_model_of_symbolic_sizes_runs_at_any(level: str) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], ceil_mode=1),
        helper.make_node("Conv", ["p", "v"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["g"]),
        helper.make_node("Flatten", ["g"], ["y"]),
    ]
    constants = {"w": draw((9, 3, 3, 3)), "v": draw((5, 9, 1, 1), 1)}
    x = draw((1, 3, 8, 8))
    proto = model(nodes, {"x": x}, ["y", "d"], constants, {"x": ["n", 3, "h", "w"]})
    made, reference = session(proto, instructions=level), session(proto, engine="reference")
    for number, side in enumerate(SIZES[:1] + SIZES[2:6]):
        x = draw((number % 3, 3, side, SIZES[-2 - number] or 4))
        got, want = made.run(None, {"x": x}), reference.run(None, {"x": x})
        for name, left, right in zip("yd", got, want, strict=True):
            same(name, left, right, length=2000)


def decoder() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return two layers of attention over a cache that grows by a step each run."""
    nodes, outputs, constants = (
        [],
        ["y"],
        {"flat": np.array([1, 1, 32]), "tall": np.array([1, 1, 4, 8])},
    )
    feed = {"x": draw((1, 1, 32))}
    x = "x"
    for i in range(2):
        for name in "qkv":
            constants[f"w{name}{i}"] = draw((32, 32), 5 * i + ord(name)) / np.float32(6)
            nodes += [
                helper.make_node("MatMul", [x, f"w{name}{i}"], [f"{name}p{i}"]),
                helper.make_node("Reshape", [f"{name}p{i}", "tall"], [f"{name}r{i}"]),
                helper.make_node("Transpose", [f"{name}r{i}"], [f"{name}{i}"], perm=[0, 2, 1, 3]),
            ]
        nodes += [
            helper.make_node("Concat", [f"pk{i}", f"k{i}"], [f"nk{i}"], axis=2),
            helper.make_node("Concat", [f"pv{i}", f"v{i}"], [f"nv{i}"], axis=2),
            helper.make_node("Transpose", [f"nk{i}"], [f"t{i}"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", [f"q{i}", f"t{i}"], [f"s{i}"]),
            helper.make_node("Add", [f"s{i}", "mask"], [f"m{i}"]),
            helper.make_node("Softmax", [f"m{i}"], [f"p{i}"]),
            helper.make_node("MatMul", [f"p{i}", f"nv{i}"], [f"o{i}"]),
            helper.make_node("Transpose", [f"o{i}"], [f"ot{i}"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"ot{i}", "flat"], [f"j{i}"]),
            helper.make_node("Add", [f"j{i}", x], ["y" if i else f"x{i}"]),
        ]
        x = f"x{i}"
        outputs += [f"nk{i}", f"nv{i}"]
        feed |= {f"pk{i}": draw((1, 4, 0, 8)), f"pv{i}": draw((1, 4, 0, 8))}
    feed["mask"] = np.zeros((1, 1, 1, 1), np.float32)
    # As exporters write it: the mask's length has a name of its own.
    shapes = {name: [1, 4, "past", 8] for name in feed if name[0] == "p"}
    shapes["mask"] = [1, 1, 1, "total"]  # type: ignore[list-item]
    return model(nodes, feed, outputs, constants, shapes), feed


@every_level
def test_a_decoder_compiles_nothing_while_its_cache_grows(
    level: str, compilations: list[int]
) -> None:
    proto, feed = decoder()
    made, reference = session(proto, instructions=level), session(proto, engine="reference")
    assert refused(made) == {}
    before = len(compilations)
    for step in range(20):
        got, want = made.run(None, feed), reference.run(None, feed)
        for number, (left, right) in enumerate(zip(got, want, strict=True)):
            same(f"output {number}", left, right, length=400)
        feed = {"x": draw((1, 1, 32), step), "mask": np.zeros((1, 1, 1, step + 2), np.float32)}
        feed |= dict(zip(["pk0", "pv0", "pk1", "pv1"], want[1:], strict=True))
    assert len(compilations) == before
    assert not made._programs.repeats.values()


def test_no_run_of_any_size_compiles(compilations: list[int]) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    x = draw((2, 3, 12, 9))
    proto = model(
        nodes, {"x": x}, constants={"w": draw((4, 3, 3, 3))}, shapes={"x": ["n", 3, "h", "w"]}
    )
    made = session(proto)
    assert len(compilations) == 1
    made.run(None, {"x": x})
    made.run(None, {"x": draw((1, 3, 5, 5))})
    assert len(compilations) == 1


@every_level
def test_sizes_that_meet_a_one_at_run_time_broadcast(level: str) -> None:
    a, b = draw((1, 5, 1)), draw((3, 1, 8))
    nodes = [
        helper.make_node("Transpose", ["a"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Mul", ["t", "a"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["y"]),
        helper.make_node("Where", ["truth", "a", "b"], ["z"]),
    ]
    shapes = {"a": ["n", 5, "k"], "b": ["l", "m", 8]}
    constants = {"truth": np.array([True, False] * 4)}
    proto = model(nodes, {"a": a, "b": b}, ["y", "z"], constants, shapes)
    made, reference = session(proto, instructions=level), session(proto, engine="reference")
    for n, k, p, m in ((1, 1, 3, 1), (5, 8, 5, 5), (1, 8, 5, 5), (5, 1, 1, 1), (1, 1, 1, 1)):
        feed = {"a": draw((n, 5, k)), "b": draw((p, m, 8), 1)}
        try:
            want = reference.run(None, feed)
        except KernelError:
            with pytest.raises(KernelError, match="broadcast"):
                made.run(None, feed)
            continue
        for name, left, right in zip("yz", made.run(None, feed), want, strict=True):
            same(name, left, right, length=2)


def test_sizes_that_differ_broadcast_where_one_is_a_one() -> None:
    x = draw((1, 2))
    nodes = [
        helper.make_node("Pad", ["x", "below"], ["longer"]),
        helper.make_node("Add", ["x", "longer"], ["y"]),
    ]
    constants = {"below": np.array([0, 0, 1, 0])}
    made = session(model(nodes, {"x": x}, constants=constants, shapes={"x": ["n", 2]}))
    (y,) = made.run(None, {"x": x})
    np.testing.assert_array_equal(y, np.concatenate([x + x, x]))
    with pytest.raises(KernelError, match="Add .*broadcast"):
        made.run(None, {"x": draw((3, 2))})


@pytest.mark.parametrize(
    ("operator", "left", "right", "message"),
    [
        ("Add", (4, 3), (5, 3), "Add 'met' failed: .*broadcast"),
        ("MatMul", (4, 3), (5, 3), "MatMul 'met' failed: .*mismatch"),
        ("Concat", (4, 3), (5, 2), "Concat 'met' failed: .*dimension"),
    ],
)
def test_sizes_that_do_not_fit_are_an_error_and_not_read(
    operator: str, left: tuple[int, int], right: tuple[int, int], message: str
) -> None:
    feed = {"a": draw(left), "b": draw(right, 1)}
    attributes = {"axis": 0} if operator == "Concat" else {}
    nodes = [
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node(operator, ["r", "b"], ["y"], "met", **attributes),
    ]
    shapes = {"a": ["m", "k"], "b": ["l", "n"]}
    with pytest.raises(KernelError, match=message):
        session(model(nodes, feed, shapes=shapes)).run(None, feed)


@every_level
def test_margins_counted_for_one_axis_are_sizes_of_all(level: str) -> None:
    """Converters of TensorFlow write convolutions with holes so: a Pad of margins, for a Pad."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["n"], start=1, end=2),
        node("Mod", ["n", "two"], ["odd"]),
        node("Concat", ["two", "odd"], ["pair"], axis=0),
        node("Unsqueeze", ["pair", "zero"], ["one"]),  # [[2, odd]]
        node("Pad", ["one", "around"], ["all"]),  # [[0, 0], [2, odd], [0, 0]]
        node("Transpose", ["all"], ["turned"], perm=[1, 0]),
        node("Reshape", ["turned", "flat"], ["margins"]),
        node("Pad", ["x", "margins"], ["wide"]),
        node("Shape", ["wide"], ["channels"], start=2),
        node("Concat", ["rows", "channels"], ["halves"], axis=0),
        node("Reshape", ["wide", "halves"], ["parts"]),
        node("Transpose", ["parts"], ["image"], perm=[0, 3, 1, 2]),
        node("Conv", ["image", "w"], ["y"]),
    ]
    constants = {
        "two": np.array([2]),
        "zero": np.array([0]),
        "around": np.array([1, 0, 1, 0]),
        "flat": np.array([-1]),
        "rows": np.array([0, -1, 2]),
        "w": draw((5, 4, 2, 2)),
    }
    feeds = [{"x": draw((b, n, 4))} for b, n in ((1, 4), (3, 3), (2, 9), (1, 12))]
    shapes = {"x": ["b", "n", 4]}
    agree_over(nodes, feeds, level, shapes, constants=constants, outputs=["y"], length=16)
