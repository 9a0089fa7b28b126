"""Operators of users: registered, then checked, run, differentiated and built as any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

import hagane
from hagane.errors import HaganeError, InvalidArgument
from hagane.machine import best_level
from hagane.native import Target
from hagane.native.rules.own import DECLARATIONS
from hagane.ops.builder import op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.inference import infer_types
from hagane.plugins import forget_operator, load_plugin, register_operator
from hagane.runtime import pipeline
from hagane.runtime.backends import NativeBackend, NativePart
from hagane.runtime.pipeline import Built
from hagane.runtime.settings import Settings
from hagane.ship import BuildOptions, build_model

FLOAT = onnx.TensorProto.FLOAT
NAMES = ("Centred", "Mish", "Delay", "Corner", "Odd", "Twice")

DELAY = """
#include "hagane_operator.h"
static float delay_scaled(float v, double by) { return v * (float)by; }
static int64_t delay(const hagane_operand *in, const hagane_operand *out,
                     const hagane_attribute *with, int64_t first, int64_t last) {
  const float *x = in[0].data, *bias = in[1].data;
  float *y = out[0].data;
  const int64_t n = in[0].shape[1], by = with[0].ints[0];
  for (int64_t row = first; row < last; row++)
    for (int64_t i = 0; i < n; i++) {
      if (x[row * n + i] > 1e6f) return 7;
      y[row * n + i] = i < by ? 0 : delay_scaled(x[row * n + i - by], with[1].reals[0]);
      if (bias != NULL) y[row * n + i] += bias[i];
    }
  return 0;
}
"""


def delayed(x: Any, bias: Any = None, *, by: int, scale: float) -> Any:
    y = np.zeros_like(x)
    y[:, by:] = x[:, : x.shape[1] - by] * np.float32(scale)
    return y if bias is None else y + bias


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    for name in NAMES:
        forget_operator(name, domain="mine")


def register_delay(**changed: Any) -> None:
    settings: dict[str, Any] = {
        "signature": "x:T, bias:T? -> y:T",
        "types": {"T": "float"},
        "attributes": {"by": 1, "scale": 0.5},
        "infer": "same",
        "reference": delayed,
        "source": DELAY,
        "entry": "delay",
        "parallel": 1,
    }
    register_operator("Delay", domain="mine", **{**settings, **changed})


def model_of(
    name: str, shape: list[Any], inputs: tuple[str, ...] = ("r",), **attributes: Any
) -> onnx.ModelProto:
    """Return a model of Relu, the operator, and Exp."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node(name, list(inputs), ["m"], domain="mine", **attributes),
        helper.make_node("Exp", ["m"], ["y"]),
    ]
    values = [helper.make_tensor_value_info("x", FLOAT, shape)]
    if "bias" in inputs:
        values.append(helper.make_tensor_value_info("bias", FLOAT, shape[1:]))
    result = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph(nodes, "own", values, [result])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=opsets)


def data(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def built(model: onnx.ModelProto) -> Built:
    """Return the program of a model, not compiled."""
    settings = Settings((NativeBackend(Target(best_level())),))
    found = pipeline.read(model, settings)
    return pipeline.build(found.model, found.types, settings, ready=False)


@pytest.mark.parametrize("shape", [["n", 5], [3, 5], ["n", "k"]])
def test_an_expression_is_computed_for_any_sizes(shape: list[Any]) -> None:
    register_operator(
        "Mish",
        domain="mine",
        expression="x * tanh(softplus(x)) * scale",
        attributes={"scale": 1.0},
    )
    session = hagane.InferenceSession(model_of("Mish", shape, scale=0.5).SerializeToString())
    assert session.get_outputs()[0].shape == shape
    x = data(3, 5)
    r = np.maximum(x, 0)
    expected = np.exp(r * np.tanh(np.log1p(np.exp(r))) * 0.5)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=2e-6)


def test_expressions_mean_what_they_mean_in_python() -> None:
    x, y = data(4, 3) * 3, data(3) * 2
    texts = {
        "-x ** 2 + 1.5 / (y * y + 1)": lambda: -(x**2) + 1.5 / (y * y + 1),
        "x % 2": lambda: x % 2,
        "x % y": lambda: x % y,
        "x if x > y and not y != y else -y": lambda: np.where(x > y, x, -y),
        "max(x, min(y, 2 ** 3 - 7.5))": lambda: np.maximum(x, np.minimum(y, np.float32(0.5))),
        "where(x == 0, y, abs(x))": lambda: np.where(x == 0, y, abs(x)),
    }
    for text, expected in texts.items():
        register_operator("Odd", domain="mine", expression=text)
        inputs = [x, y] if "y" in text else [x]
        if (
            text.startswith("max") is False
            and text.find("y") >= 0
            and text.index("x") > text.index("y")
        ):
            inputs.reverse()
        found = op("Odd", *inputs, domain="mine")
        np.testing.assert_allclose(found, expected(), rtol=1e-5, atol=1e-6, err_msg=text)


def test_the_signature_of_an_expression_gives_the_order_of_inputs() -> None:
    register_operator(
        "Odd", domain="mine", signature="a:T, b:T -> y:T", expression="b - a * scale",
        attributes={"scale": 2},
    )  # fmt: skip
    found = op("Odd", np.float32([1, 2]), np.float32([10, 20]), domain="mine")
    assert found.tolist() == [8, 16]


def kernels_of(model: onnx.ModelProto) -> list[str]:
    (step,) = built(model).program.steps
    assert isinstance(step.part, NativePart)
    return [kernel.code for kernel in step.part.draft.low.recorder.kernels]


def test_an_expression_has_the_kernels_of_its_operators_written_out() -> None:
    register_operator("Mish", domain="mine", expression="tanh(x + 1) / 3")
    plain = model_of("Mish", ["n", 5])
    relu, _, exp = plain.graph.node
    for name, number in (("one", 1), ("three", 3)):
        plain.graph.initializer.append(helper.make_tensor(name, FLOAT, [], [number]))
    written = [
        helper.make_node("Add", ["r", "one"], ["a"]),
        helper.make_node("Tanh", ["a"], ["t"]),
        helper.make_node("Div", ["t", "three"], ["m"]),
    ]
    nodes = [relu, *written, exp]
    del plain.graph.node[:]
    plain.graph.node.extend(nodes)
    assert kernels_of(model_of("Mish", ["n", 5])) == kernels_of(plain)


@pytest.mark.parametrize("shape", [["n", 5], [3, 5], ["n", "k", 5], [1, 5]])
@pytest.mark.parametrize(
    ("text", "fixed"),
    [("x * tanh(softplus(x))", 1), ("tanh(x + 1) / 3", 1), ("where(x > 1, x, exp(x) * by)", 2)],
)
def test_an_expression_is_computed_with_its_neighbours(
    shape: list[Any], text: str, fixed: int
) -> None:
    register_operator("Odd", domain="mine", expression=text, attributes={"by": 2.0})
    model = model_of("Odd", shape)
    relu, own, exp = model.graph.node
    add = helper.make_node("Add", ["r", "b"], ["a"])
    own.input[0] = "a"
    nodes = [relu, add, own, exp]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    bias = np.float32([1, -2, 0, 4, 0.5])
    model.graph.initializer.append(onnx.numpy_helper.from_array(bias, "b"))
    # (What an expression reads at several places is computed once, by a kernel of its own.)
    assert len(kernels_of(model)) == fixed
    x = data(*(dim if isinstance(dim, int) else 3 for dim in shape))
    a = np.maximum(x, 0) + bias
    expected = np.exp(op("Odd", a, domain="mine", by=2.0))
    found = hagane.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_parts_of_a_composition_are_computed_with_its_neighbours() -> None:
    def centred(x: Any, *, by: float) -> Any:
        halved = op("Mul", x, np.float32(by))
        return op("Sub", halved, op("ReduceMean", halved, np.int64([-1])))

    register_operator(
        "Centred", domain="mine", signature="x:T -> y:T", compose=centred, attributes={"by": 0.5}
    )
    model = model_of("Centred", ["n", 5])
    # Relu and Mul; the mean; Sub and Exp.
    assert len(kernels_of(model)) == 3
    x = data(4, 5)
    r = np.maximum(x, 0) / 2
    expected = np.exp(r - r.mean(-1, keepdims=True))
    found = hagane.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_operand_that_is_stretched_is_computed_once() -> None:
    model = model_of("Odd", [5])
    register_operator("Odd", domain="mine", signature="x:T, bias:T -> y:T", expression="x + bias")
    model.graph.node[1].input.append("bias")
    model.graph.input.append(helper.make_tensor_value_info("bias", FLOAT, ["n", 5]))
    assert len(kernels_of(model)) == 2
    x, bias = data(5), data(4, 5)
    found = hagane.InferenceSession(model.SerializeToString()).run(None, {"x": x, "bias": bias})[0]
    np.testing.assert_allclose(found, np.exp(np.maximum(x, 0) + bias), rtol=1e-5)


def test_gradients_go_through_compositions() -> None:
    register_operator("Odd", domain="mine", expression="x * x * x")
    x = np.float32([0.5, 1.0, -1.0, 0.25])
    made = hagane.gradient(model_of("Odd", [4]), "y", "x", seeds=True)
    session = hagane.InferenceSession(ir.to_proto(made).SerializeToString())
    found = session.run(None, {"x": x, "y.seed": np.ones(4, np.float32)})[-1]
    np.testing.assert_allclose(found, 3 * x**2 * np.exp(x**3) * (x > 0), rtol=1e-5)


@pytest.mark.parametrize("shape", [["n", 5], [3, 5], ["n", "k"]])
@pytest.mark.parametrize("inputs", [("r",), ("r", "bias")])
def test_c_source_computes_what_its_reference_does(shape: list[Any], inputs: Any) -> None:
    register_delay()
    model = model_of("Delay", shape, inputs, by=2, scale=0.25)
    assert not built(model).on_reference()
    session = hagane.InferenceSession(model.SerializeToString())
    x, bias = data(3, 5), data(5)
    feed = {"x": x, "bias": bias} if "bias" in inputs else {"x": x}
    given = (np.maximum(x, 0), bias) if "bias" in inputs else (np.maximum(x, 0),)
    expected = np.exp(delayed(*given, by=2, scale=0.25))
    np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-6)


def test_an_error_of_c_source_names_operator_and_code() -> None:
    register_delay()
    session = hagane.InferenceSession(model_of("Delay", ["n", 5]).SerializeToString())
    with pytest.raises(HaganeError, match=r"Delay.*its C function delay returned 7"):
        session.run(None, {"x": np.full((2, 5), 1e9, np.float32)})
    session.run(None, {"x": data(2, 5)})  # and goes on


@pytest.mark.parametrize("name", ["Mish", "Delay"])
def test_builds_hold_operators_of_users(tmp_path: Path, name: str) -> None:
    register_delay()
    register_operator("Mish", domain="mine", expression="x * tanh(softplus(x))")
    model = tmp_path / "own.onnx"
    onnx.save(model_of(name, ["n", 5]), model)
    build_model(model, tmp_path / "out", BuildOptions(shapes=("x=1..8,5",)))
    loaded, x = hagane.load_built(tmp_path / "out"), data(7, 5)
    (expected,) = hagane.InferenceSession(str(model)).run(None, {"x": x})
    np.testing.assert_array_equal(loaded.run(None, {"x": x})[0], expected)
    if name == "Delay":
        with pytest.raises(HaganeError, match="its C function delay returned 7"):
            loaded.run(None, {"x": np.full((2, 5), 1e9, np.float32)})


def test_two_calls_of_one_source_share_a_unit(tmp_path: Path) -> None:
    register_delay()
    model = model_of("Delay", ["n", 5], by=2)
    again = helper.make_node("Delay", ["y"], ["z"], domain="mine", by=1)
    model.graph.node.append(again)
    model.graph.output[0].name = "z"
    onnx.save(model, tmp_path / "own.onnx")
    build_model(tmp_path / "own.onnx", tmp_path / "out", BuildOptions(shapes=("x=1..8,5",)))
    x = data(3, 5)
    y = np.exp(delayed(np.maximum(x, 0), by=2, scale=0.5))
    found = hagane.load_built(tmp_path / "out").run(None, {"x": x})[0]
    np.testing.assert_allclose(found, delayed(y, by=1, scale=0.5), rtol=1e-6)


def test_an_operator_without_native_form_runs_and_is_named_by_builds(tmp_path: Path) -> None:
    register_operator(
        "Twice",
        domain="mine",
        signature="x:T -> y:T, n:int64",
        reference=_twice,
        infer=_infer_twice,
    )
    model = model_of("Twice", ["n", 5])
    model.graph.node[1].output.append("count")
    onnx.save(model, tmp_path / "own.onnx")
    session = hagane.InferenceSession(str(tmp_path / "own.onnx"))
    x = data(3, 5)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, np.exp(2 * np.maximum(x, 0)), rtol=1e-6)
    with pytest.raises(HaganeError, match=r"Twice 'm' cannot be built: there is no kernel for it"):
        build_model(tmp_path / "own.onnx", tmp_path / "out", BuildOptions())


def _twice(x: Any) -> Any:
    return 2 * x, np.asarray(x.size)


def _infer_twice(ctx: InferContext) -> Any:
    return [ctx.shape(0), ()]


def test_compositions_are_functions_over_the_builder() -> None:
    def corner(x: Any, *, reverse: int) -> Any:
        """The largest so far along the last axis, as corner pooling has it."""
        wide = shape_of(x)[-1]
        steps = [op("Slice", x, [0], [k + 1], [1]) for k in range(int(wide))]
        found = [op("ReduceMax", each, [1], keepdims=1) for each in steps]
        return op("Concat", *(found[::-1] if reverse else found), axis=1)

    register_operator(
        "Corner", domain="mine", signature="x:T -> y:T", attributes={"reverse": 0}, compose=corner
    )
    model = model_of("Corner", ["n", 5])
    assert not built(model).on_reference()
    session = hagane.InferenceSession(model.SerializeToString())
    assert session.get_outputs()[0].shape == ["n", 5]
    x = data(3, 5)
    expected = np.exp(np.maximum.accumulate(np.maximum(x, 0), axis=1))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-6)


def test_types_of_operands_and_attributes_are_checked() -> None:
    register_delay()
    model = model_of("Delay", ["n", 5])
    model.graph.node[0].op_type = "IsNaN"
    with pytest.raises(HaganeError, match=r"Delay.*expected a float32 input 'x', got bool"):
        hagane.InferenceSession(model.SerializeToString())
    with pytest.raises(HaganeError, match=r"unknown attribute 'speed'"):
        hagane.InferenceSession(model_of("Delay", ["n", 5], speed=2).SerializeToString())


def test_a_second_registration_takes_the_place_of_the_first() -> None:
    for factor in (2, 3):
        register_operator("Odd", domain="mine", expression=f"x * {factor}")
        assert op("Odd", np.float32([1]), domain="mine").tolist() == [factor]
    forget_operator("Odd", domain="mine")
    with pytest.raises(HaganeError, match="operator 'Odd' of domain 'mine'"):
        op("Odd", np.float32([1]), domain="mine")


@pytest.mark.wrong_c
def test_c_source_that_does_not_compile_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    register_delay(source="static int64_t delay( {", reference=None)
    session = hagane.InferenceSession(model_of("Delay", ["n", 5]).SerializeToString())
    assert "static int64_t delay( {" in caplog.text
    with pytest.raises(HaganeError, match="registered with C source alone"):
        session.run(None, {"x": data(2, 5)})


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"domain": ""}, "expected a name and a domain of your own"),
    ({"domain": "com.microsoft", "name": "Gelu", "expression": "x"}, "is hagane's own"),
    ({}, "signature '': expected a text such as"),
    ({"signature": "x:T -> y:T"}, "expected one of reference, compose, expression, source"),
    ({"signature": "x:float33 -> y:T", "reference": abs}, "unknown element type 'float33'"),
    ({"signature": "x:T -> y:T", "reference": abs}, "expected a type rule, infer="),
    ({"signature": "x:T -> y:T", "reference": abs, "infer": "sane"}, "infer 'sane'"),
    ({"signature": "x:T -> y:T", "source": "int f;", "entry": "g"}, "has no function 'g'"),
    ({"signature": "x:T -> y:T", "source": Path("/no/file.c"), "entry": "g"}, "cannot be read"),
    ({"expression": "x +"}, "is not Python"),
    ({"expression": "1 + 2"}, "reads no input"),
    ({"expression": "x[0]"}, "'x\\[0\\]' has no place in an expression of elements"),
    ({"expression": "gelu(x)"}, "unknown function 'gelu'; the functions are: abs"),
    ({"expression": "max(x)"}, "max takes 2 values, got 'max\\(x\\)'"),
    ({"expression": "x < y < z"}, "expected one of < <= > >= == !="),
    ({"expression": "x + 'a'"}, "expected numbers, got 'a'"),
    ({"expression": "x @ y"}, "expected one of \\+ - "),
    ({"expression": "x", "signature": "z:T -> y:T"}, "the expression reads 'x'"),
    ({"expression": "x", "attributes": {"a": None}}, "attribute 'a': expected a number"),
    ({"expression": "x", "required": ["a"]}, "attribute 'a' is required, and not declared"),
]


@pytest.mark.parametrize(("arguments", "text"), MISTAKES)
def test_mistakes_in_a_registration_are_named(arguments: dict[str, Any], text: str) -> None:
    given = {"name": "Odd", "domain": "mine", **arguments}
    with pytest.raises(InvalidArgument, match=text):
        register_operator(given.pop("name"), **given)


def test_the_command_loads_files_that_register(tmp_path: Path) -> None:
    from hagane.cli import main

    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import hagane\nhagane.register_operator('Odd', domain='mine', expression='x + 1')\n"
    )
    onnx.save(model_of("Odd", ["n", 5]), tmp_path / "own.onnx")
    words = ["build", str(tmp_path / "own.onnx"), "-o", str(tmp_path / "out"), "--shape", "x=2,5"]
    with pytest.raises(SystemExit) as left:
        main(["--plugin", str(plugin), *words])
    assert left.value.code in (0, None)
    x = np.zeros((2, 5), np.float32)
    (y,) = hagane.load_built(tmp_path / "out").run(None, {"x": x})
    np.testing.assert_allclose(y, np.full((2, 5), np.e), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="plugin: there is no file"):
        load_plugin(tmp_path / "no.py")


def test_shapes_of_own_operators_are_inferred_for_whole_graphs() -> None:
    register_operator("Odd", domain="mine", expression="x + 1")
    model = ir.serde.deserialize_model(model_of("Odd", ["n", 5]))
    found = infer_types(model)
    assert str(found.types[model.graph.outputs[0]]) == "float32[n, 5]"


def test_the_operators_of_the_page_are_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ship.md").read_text(encoding="utf-8")
    (code,) = [text.split("```")[0] for text in page.split("```python\n") if "# own.py" in text[:9]]
    exec(compile(code, "own.py", "exec"), {"__name__": "own"})
    x = data(3, 5)
    found = op("Centred", x, domain="mine")
    np.testing.assert_allclose(found, x - x.mean(-1, keepdims=True), atol=1e-6)
    session = hagane.InferenceSession(model_of("Delay", ["n", 5], by=3).SerializeToString())
    expected = np.ones((3, 5), np.float32)
    expected[:, 3:] = np.exp(np.maximum(x, 0)[:, :2])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-6)
    assert DECLARATIONS.split("#define HAGANE_OPERATOR\n")[1].split("#endif")[0] in page
