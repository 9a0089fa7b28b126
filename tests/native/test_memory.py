"""The arena: values share its places, and borders of images are whole whenever they are read."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.machine import cpu_features
from hagane.native.kernels.control import Branch, Mark
from hagane.native.kernels.kernel import Kernel, Pointer
from hagane.native.kernels.tensor import Border, Buffer, Kind, Tensor, keep_border
from hagane.native.ready import context as contexts
from hagane.native.ready.context import Context
from hagane.native.run.engine import load_engine
from hagane.native.run.memory import MemoryPlan, plan_memory, planned
from hagane.runtime.shapes.repeats import LEASE
from hagane.symbolic import Dim
from tests.drawing import few
from tests.native.models import compare, draw, engine_bytes, every_level, model, session

BYTE = np.dtype(np.uint8)


@st.composite
def images(draw_: st.DrawFn) -> Tensor:
    """Return the pixels of a fresh image within a border, which may have no width."""
    small = st.integers(0, 2)
    planes, rows, columns, lanes = (draw_(st.integers(1, most)) for most in (3, 4, 4, 3))
    top, left, bottom, right, between = (draw_(small) for _ in range(5))
    apart, many = draw_(st.integers(1, 2)), draw_(st.booleans())
    row = (left + columns * apart + right) * lanes
    plane = (top + rows + bottom) * row
    step = plane * (1 + between)
    start = draw_(st.integers(0, 5))
    buffer = Buffer("image", start + planes * step + 64, Kind.ARENA)
    shape = (planes, rows, columns, lanes) if many else (1, planes, rows, columns, lanes)
    strides = (
        (step, row, apart * lanes, 1) if many else (planes * step, step, row, apart * lanes, 1)
    )
    pixels = Tensor(buffer, BYTE, shape, strides, start + top * row + left * lanes)
    keep_border(pixels, plane, start=start, step=step, fill=draw_(st.sampled_from((0, 7))))
    return pixels


def places(pixels: Tensor) -> np.ndarray:
    """Return the offset of each pixel in its buffer."""
    found = np.asarray(pixels.offset)
    for count, stride in zip(pixels.shape, pixels.strides, strict=True):
        found = found[..., None] + np.arange(count) * stride
    return found.reshape(-1)


def around(border: Border) -> np.ndarray:
    """Return the offset of each byte of a border in its buffer, from its meaning."""
    plane = np.ones(border.plane, bool)
    starts = np.asarray(border.first)
    for count, stride in border.axes:
        starts = starts[..., None] + np.arange(count) * stride
    plane[(starts.reshape(-1, 1) + np.arange(border.run)).reshape(-1)] = False
    at = border.start + np.arange(border.planes) * border.step
    return (at[:, None] + np.flatnonzero(plane)).reshape(-1)


def cleared_by_the_engine(borders: Sequence[Border], arena: np.ndarray, threads: int) -> None:
    """Run one phase of nothing but borders."""
    engine = load_engine()
    program = engine.create(1, threads, 64)
    engine.set_phase(program, 0, None, None, None, 0, 0)
    for border in borders:
        axes = [*border.axes, *[(0, 0)] * (4 - len(border.axes))]
        numbers = np.array(
            [
                *(0, arena.ctypes.data + border.start, border.planes, border.step, border.plane),
                *(border.first, border.run, border.fill, len(border.axes)),
                *(count for count, _ in axes),
                *(stride for _, stride in axes),
                *(0, 0, 0),
            ],
            np.int64,
        )
        assert engine.add_border(program, 0, numbers.ctypes.data) == 0
    assert engine.run(program, None, None) == -1
    engine.destroy(ctypes.c_void_p(program))


@given(images())
def test_a_border_is_all_of_the_planes_but_the_pixels(pixels: Tensor) -> None:
    pixel = set(places(pixels).tolist())
    for border in pixels.buffer.border:
        outside = around(border)
        assert len(outside) == border.bytes
        assert not pixel & set(outside.tolist())
        assert len(outside) + len(pixel) == border.planes * border.plane
    if not pixels.buffer.border:
        assert pixels.buffer.kind is Kind.ARENA


@few(60)
@given(images(), images(), st.sampled_from((1, 2)))
def test_the_engine_clears_borders_and_nothing_else(one: Tensor, two: Tensor, threads: int) -> None:
    shift = int(one.buffer.bytes)
    borders = [
        *one.buffer.border,
        *(dataclasses.replace(b, start=b.start + shift) for b in two.buffer.border),
    ]
    arena = np.full(shift + int(two.buffer.bytes), 99, np.uint8)
    want = arena.copy()
    for border in borders:
        want[around(border)] = border.fill
    cleared_by_the_engine(borders, arena, threads)
    np.testing.assert_array_equal(arena, want)


def test_a_large_border_is_cleared_in_several_tasks() -> None:
    shape, strides = (200, 30, 30), (34 * 34, 34, 1)
    buffer = Buffer("large", 200 * 34 * 34, Kind.ARENA)
    keep_border(Tensor(buffer, BYTE, shape, strides, 2 * 34 + 2), 34 * 34, fill=3)
    (border,) = buffer.border
    arena = np.full(200 * 34 * 34, 99, np.uint8)
    want = arena.copy()
    want[around(border)] = 3
    assert border.bytes > 3 * 16384
    cleared_by_the_engine([border], arena, 2)
    np.testing.assert_array_equal(arena, want)


def test_a_phase_that_becomes_another_clears_no_border_any_more() -> None:
    engine = load_engine()
    program = engine.create(1, 1, 64)
    arena = np.full(64, 99, np.uint8)
    numbers = np.array([0, 0, 1, 8, 8, 2, 4, 3, *[0] * 12], np.int64)
    for at in (0, 32):
        engine.set_phase(program, 0, None, None, None, 0, 0)
        numbers[1] = arena.ctypes.data + at
        assert engine.add_border(program, 0, numbers.ctypes.data) == 0
    assert engine.run(program, None, None) == -1
    engine.destroy(ctypes.c_void_p(program))
    assert np.flatnonzero(arena == 3).tolist() == [32, 33, 38, 39]


def test_a_border_that_stays_is_set_by_the_first_run_alone() -> None:
    engine = load_engine()
    program = engine.create(1, 1, 64)
    arena = np.full(64, 99, np.uint8)
    for at, stays in ((0, 1), (32, 0)):
        numbers = np.array(
            [0, arena.ctypes.data + at, 1, 8, 8, 2, 4, 3, *[0] * 11, stays], np.int64
        )
        assert engine.add_border(program, 0, numbers.ctypes.data) == 0
    for places in ([0, 1, 6, 7, 32, 33, 38, 39], [32, 33, 38, 39]):
        arena[:] = 99
        assert engine.run(program, None, None) == -1
        assert np.flatnonzero(arena == 3).tolist() == places
    engine.destroy(ctypes.c_void_p(program))


@st.composite
def programs(draw_: st.DrawFn) -> tuple[list[Kernel], dict[Buffer, Tensor | None]]:
    """Return kernels that write and read values, and the pixels of those with a border."""
    values: list[tuple[Buffer, Tensor | None]] = []
    kinds = [draw_(images()) for _ in range(draw_(st.integers(1, 3)))]
    for _ in range(draw_(st.integers(1, 10))):
        if draw_(st.booleans()):
            pixels = draw_(st.sampled_from(kinds))
            buffer = dataclasses.replace(pixels.buffer)
            values.append((buffer, dataclasses.replace(pixels, buffer=buffer)))
        else:
            size: Dim = draw_(st.integers(1, 600))
            values.append((Buffer("plain", size, Kind.ARENA), None))
    count = draw_(st.integers(1, 8))
    uses: list[list[Pointer]] = [[] for _ in range(count)]
    for buffer, _ in values:
        first = draw_(st.integers(0, count - 1))
        last = draw_(st.integers(first, count - 1))
        for index in sorted({first, last}):
            uses[index].append(Pointer(buffer, 0, index == first))
    work = draw_(st.sampled_from((0.0, 1e3, 1e9)))
    kernels = [Kernel("k", "", tuple(pointers), (), 1, work) for pointers in uses]
    return kernels, dict(values)


def lives(kernels: Sequence[Kernel]) -> dict[Buffer, tuple[int, int]]:
    found: dict[Buffer, tuple[int, int]] = {}
    for index, kernel in enumerate(kernels):
        for pointer in kernel.pointers:
            found[pointer.buffer] = (found.get(pointer.buffer, (index, 0))[0], index)
    return found


@given(programs())
def test_no_two_values_that_live_at_once_overlap(
    program: tuple[list[Kernel], dict[Buffer, Tensor | None]],
) -> None:
    kernels, _ = program
    plan = plan_memory(kernels, {})
    alive = lives(kernels)
    for one, (first, last) in alive.items():
        start, end = plan.offsets[one], plan.offsets[one] + int(one.bytes)
        assert start % 64 == 0
        assert end + 64 <= plan.size
        for two, (other_first, other_last) in alive.items():
            if one is not two and first <= other_last and other_first <= last:
                assert end <= plan.offsets[two] or plan.offsets[two] + int(two.bytes) <= start


@few(300)
@given(programs())
def test_borders_are_whole_whatever_used_the_place_before(
    program: tuple[list[Kernel], dict[Buffer, Tensor | None]],
) -> None:
    kernels, pixels_of = program
    plan = plan_memory(kernels, {})
    alive = lives(kernels)
    arena = np.zeros(plan.size, np.uint8)
    for offset, size, byte in plan.filled:
        arena[offset : offset + size] = byte
    for run in range(3):
        for index, kernel in enumerate(kernels):
            for clearing in plan.cleared:
                if clearing.kernel == index:
                    arena[clearing.offset + around(clearing.border)] = clearing.border.fill
            for pointer in kernel.pointers:
                buffer, at = pointer.buffer, plan.offsets[pointer.buffer]
                pixels = pixels_of[buffer]
                inside = np.arange(int(buffer.bytes)) if pixels is None else places(pixels)
                if alive[buffer][0] == index:
                    arena[at + inside] = 100 + run
                else:
                    assert (arena[at + inside] == 100 + run).all()
                for border in buffer.border:
                    assert (arena[at + around(border)] == border.fill).all()


def test_images_in_borders_lie_where_others_lay_if_that_is_worth_it() -> None:
    def plan_of(work: float) -> MemoryPlan:
        kernels = []
        for _ in range(4):
            plain = Buffer("plain", 64 * 64 * 50, Kind.ARENA)
            image = Buffer("image", 68 * 68 * 40 + len(kernels) * 68 * 40, Kind.ARENA)
            shape, strides = (40, 64, 64), (68 * 68 + len(kernels) * 68, 68, 1)
            keep_border(Tensor(image, BYTE, shape, strides, 2 * 68 + 2), strides[0])
            kernels += [
                Kernel("k", "", (Pointer(plain, 0, True),), (), 1, work),
                Kernel("k", "", (Pointer(plain, 0, False), Pointer(image, 0, True)), (), 1, work),
                Kernel("k", "", (Pointer(image, 0, False),), (), 1, work),
            ]
        return plan_memory(kernels, {})

    apart, shared = plan_of(0.0), plan_of(1e9)
    assert apart.cleared == ()
    assert len(shared.cleared) == 4
    assert shared.filled == ()
    assert shared.size < 0.5 * apart.size


def test_a_border_that_is_first_met_by_a_loop_has_a_place_of_its_own() -> None:
    def plan_of(control: Branch | None) -> MemoryPlan:
        plain = Buffer("plain", 4000, Kind.ARENA)
        image = Buffer("image", 40 * 40, Kind.ARENA)
        keep_border(Tensor(image, BYTE, (36, 36), (40, 1), 82), 40 * 40)
        begin = Kernel("k", "", (Pointer(image, 0, True),), (), 1, 1e9, control=control)
        end = Kernel("k", "", (Pointer(image, 0, False),), (), 1, control=control and Mark.END)
        return plan_memory([Kernel("k", "", (Pointer(plain, 0, True),), (), 1), begin, end], {})

    assert len(plan_of(None).cleared) == 1
    assert plan_of(Branch(0)).cleared == ()


@pytest.fixture
def dirty(monkeypatch: pytest.MonkeyPatch) -> list[MemoryPlan]:
    """Let borders be cleared wherever they can be, in an arena that is full of NaN before."""
    plans: list[MemoryPlan] = []
    fit = Context.fit

    def fitted(self: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
        fit(self, shapes)
        _, arena, size, *_ = self.fitted.tell()
        made = planned(self.fitted, self.segment.kernels, size)
        plans.append(made)
        ctypes.memset(arena, 255, size - 4096)
        for offset, count, byte in made.filled:
            ctypes.memset(arena + offset, byte, count)

    monkeypatch.setattr(contexts, "CLEARING", 1e12)
    monkeypatch.setattr(Context, "fit", fitted)
    return plans


def network(kind: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of two convolutions of a kind with large values around them."""
    rank = 3 if kind == "volume" else 2
    size = [6, 9, 11][-rank:] if kind == "volume" else [22, 35]
    channels, maps = {"narrow": (6, 4), "planes": (3, 20)}.get(kind, (20, 20))
    x = draw((2, channels, *size))
    settings_: dict[str, Any] = {"pads": [1] * 2 * rank}
    if kind == "narrow":
        settings_ = {"pads": [1, 3, 1, 2], "strides": [1, 2]}
    operator = "ConvTranspose" if kind == "transposed" else "Conv"
    group = {"depthwise": 20}.get(kind, 1)
    if kind == "transposed":
        settings_ = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
    shape = (maps, channels // group, *[3] * rank)
    constants = {"w": draw(shape, 1) / np.float32(9), "v": draw((maps, maps, *[3] * rank), 2)}
    if kind == "transposed":
        constants["w"] = np.ascontiguousarray(constants["w"].swapaxes(0, 1))
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Softmax", ["e"], ["s"]),
        helper.make_node(operator, ["s", "w"], ["a"], group=group, **settings_),
        helper.make_node("Softmax", ["a"], ["t"]),
        helper.make_node("Conv", ["t", "v"], ["b"], pads=[1] * 2 * rank),
        helper.make_node("Softmax", ["b"], ["u"]),
        helper.make_node("ReduceSum", ["u"], ["r"], keepdims=1),
        helper.make_node("Add", ["b", "r"], ["y"]),
    ]
    return model(nodes, {"x": x}, constants=constants), {"x": x}


def layers() -> onnx.ModelProto:
    """Return a network of an open batch whose images have borders."""
    constants: dict[str, np.ndarray] = {}
    nodes, x = [], "x"
    for number in range(6):
        constants[f"w{number}"] = draw((16, 1, 3, 3), number) / np.float32(9)
        constants[f"v{number}"] = draw((16, 16, 1, 1), number) / np.float32(16)
        nodes += [
            helper.make_node("Conv", [x, f"w{number}"], [f"c{number}"], pads=[1] * 4, group=16),
            helper.make_node("Conv", [f"c{number}", f"v{number}"], [f"d{number}"]),
            helper.make_node("Relu", [f"d{number}"], [x := f"r{number}"]),
        ]
    opened_at = {"x": ["n", 16, 48, 48]}
    return model(nodes, {"x": draw((1, 16, 48, 48))}, [x], constants, opened_at)


def test_sizes_take_less_memory_until_they_have_come_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proto = layers()
    made: list[Context] = []
    fit = Context.fit

    def fitted(self: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
        fit(self, shapes)
        made.append(self)

    monkeypatch.setattr(contexts, "CLEARING", 0.0)  # what is fastest, whatever memory it takes
    monkeypatch.setattr(Context, "fit", fitted)
    options = hagane.SessionOptions()
    options.specialize = False  # a program of its own would take over
    opened = hagane.InferenceSession(proto, options)
    (context,) = made
    assert opened.run(None, {"x": draw((1, 16, 48, 48))})

    def cleared() -> int:
        return len(planned(context.fitted, context.segment.kernels, 0).cleared)

    feed = {"x": draw((12, 16, 48, 48))}
    (first,) = opened.run(None, feed)
    new = cleared()
    for _ in range(20):
        np.testing.assert_array_equal(opened.run(None, feed)[0], first)
    assert new > cleared()
    np.testing.assert_array_equal(session(proto).run(None, feed)[0], first)


def test_sizes_that_come_again_in_turns_take_no_more_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contexts, "CLEARING", 0.0)  # what is fastest takes more memory
    engine, opened = load_engine(), hagane.InferenceSession(layers())
    opened._programs.repeats.make = lambda shapes: None  # no programs of their own
    feeds = [{"x": draw((rows, 16, 48, 48))} for rows in range(1, 13)]
    gc.collect()
    taken: list[int] = []
    for _ in range(LEASE + 3):  # after so many runs of a shape Python is asked for it
        for feed in feeds:
            opened.run(None, feed)
        taken.append(engine.allocated())
    assert max(taken) == taken[0]


def test_sizes_grow_within_the_memory_that_a_small_session_begins_with() -> None:
    constants = {"w": draw((8, 1, 3, 3), 1), "v": draw((8, 8, 3, 3), 2)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Conv", ["c", "v"], ["y"], pads=[1] * 4),
    ]
    x = draw((7, 1, 12, 12))
    proto = model(nodes, {"x": x}, constants=constants, shapes={"x": ["n", 1, 12, 12]})
    options = hagane.SessionOptions()
    options.specialize, options.intra_op_num_threads = False, 1
    engine, opened = load_engine(), hagane.InferenceSession(proto, options)
    before = engine_bytes()
    found = [opened.run(None, {"x": x[:rows]})[0] for rows in range(1, 8)]
    assert engine.allocated() == before
    for rows in range(1, 7):
        np.testing.assert_allclose(found[rows - 1], found[-1][:rows], rtol=1e-5, atol=1e-6)


@every_level
@pytest.mark.parametrize(
    "kind", ["blocks", "planes", "narrow", "depthwise", "volume", "transposed"]
)
def test_convolutions_read_whole_borders(kind: str, level: str, dirty: list[MemoryPlan]) -> None:
    proto, feed = network(kind)
    compare(proto, feed, level)
    assert any(plan.cleared for plan in dirty)
    made = session(proto, instructions=level)
    (first,) = made.run(None, feed)
    (second,) = made.run(None, feed)
    np.testing.assert_array_equal(first, second)


@pytest.mark.skipif("avx512_vnni" not in cpu_features(), reason="no products of quads of bytes")
def test_convolutions_of_bytes_read_whole_borders(dirty: list[MemoryPlan]) -> None:
    x = np.random.default_rng(0).integers(0, 255, (1, 20, 12, 13)).astype(np.uint8)
    w = np.random.default_rng(1).integers(-127, 127, (20, 20, 3, 3)).astype(np.int8)
    constants = {
        "w": w, "sx": np.float32(0.02), "zx": np.uint8(7), "sw": np.float32(0.01),
        "zw": np.int8(0), "sy": np.float32(0.3), "zy": np.uint8(93),
    }  # fmt: skip
    scales = ["w", "sw", "zw", "sy", "zy"]
    nodes = [
        helper.make_node("QLinearConv", ["x", "sx", "zx", *scales], ["a"], pads=[1] * 4),
        helper.make_node("QLinearConv", ["a", "sy", "zy", *scales], ["b"], pads=[2] * 4),
        helper.make_node("QLinearConv", ["b", "sy", "zy", *scales], ["y"], pads=[1] * 4),
    ]
    proto = model(nodes, {"x": x}, constants=constants)
    made = session(proto)
    (want,) = session(proto, engine="reference").run(None, {"x": x})
    for _ in range(2):
        (got,) = made.run(None, {"x": x})
        assert (np.abs(got.astype(int) - want.astype(int)) > 0).mean() < 0.01
    assert any(clearing.border.fill == 93 for plan in dirty for clearing in plan.cleared)


@pytest.mark.skipif("avx512_bf16" not in cpu_features(), reason="no products of bfloat16")
def test_convolutions_of_pairs_read_whole_borders(
    dirty: list[MemoryPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, feed = network("blocks")
    options = hagane.SessionOptions(precision="bf16")
    (got,) = hagane.InferenceSession(proto, options).run(None, feed)
    pairs = [b.border for plan in dirty for b in plan.offsets if b.name.endswith(" pairs")]
    assert any((c.border,) in pairs for plan in dirty for c in plan.cleared)
    monkeypatch.undo()
    (want,) = hagane.InferenceSession(proto, options).run(None, feed)
    np.testing.assert_array_equal(got, want)


def test_layers_that_have_their_weights_in_common_read_one_copy() -> None:
    """As do steps of an unrolled loop, layers of ALBERT, and heads at several scales."""
    constants = {"b": draw((96,), 1), "f": draw((64, 64, 3, 3), 2) / np.float32(24)}
    constants["w"] = draw((96, 96)) * np.float32(0.1)
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h0"], transB=1)]
    for i in range(3):
        nodes.append(helper.make_node("Tanh", [f"h{i}"], [f"t{i}"]))
        nodes.append(helper.make_node("Gemm", [f"t{i}", "w", "b"], [f"h{i + 1}"], transB=1))
    for i, size in enumerate((5, 6, 7, 8)):
        nodes.append(helper.make_node("Conv", [f"p{size}", "f"], [f"c{i}"]))
    feed = {f"p{size}": draw((1, 64, size, size), size) for size in (5, 6, 7, 8)}
    proto = model(nodes, {"x": draw((2, 96)), **feed}, ["h3", "c0", "c1", "c2", "c3"], constants)
    compare(proto, {"x": draw((2, 96)), **feed}, "avx2")
    weights = session(proto).memory_plan().weights
    once = sum(array.nbytes for array in constants.values())
    assert weights < 2 * once, (weights, once)
