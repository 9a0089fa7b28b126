"""Functions over the builder, run on the checker's tensors."""

import numpy as np
import onnx_ir as ir
import pytest

from hagane.frontends.python.interpret.emitting.emit import Emitter
from hagane.frontends.python.report.findings import CheckError
from hagane.ops.builder import content_of, interpreting, op, shape_of, size_of
from hagane.symbolic import symbol
from hagane.symbolic.questions import Knowledge

FLOAT = ir.DataType.FLOAT
BATCH = symbol("batch")


@pytest.fixture
def emit():
    return Emitter(Knowledge(), lambda text: None)


def softplus_flat(x):
    """A function over the builder: sizes of its operand, constants, attributes."""
    y = op("Log", op("Add", op("Exp", x), 1.0))
    flat = op("Reshape", y, [size_of(x, 0) * size_of(x, 1)])
    return op("Softmax", flat, axis=-1)


def test_the_checkers_tensors_name_their_interpreter(emit):
    x = emit.new(FLOAT, (BATCH, 3), kind="torch.Tensor", device="cuda:0")
    y = softplus_flat(x)
    assert shape_of(y) == (BATCH * 3,)
    assert (y.kind, y.device, y.dtype) == ("torch.Tensor", "cuda:0", FLOAT)


def test_recorded_nodes_keep_constants_attributes_and_formulas(emit):
    softplus_flat(emit.new(FLOAT, (BATCH, 3)))
    by_name = {node.op_type: node for node in emit.nodes}
    one = by_name["Add"].inputs[1]
    assert one.const_value.numpy().dtype == np.float32
    assert one.const_value.numpy() == 1.0
    assert by_name["Softmax"].attributes["axis"].value == -1
    wanted = emit.tensors[by_name["Reshape"].inputs[1]]
    assert wanted.known.tolist() == [BATCH * 3]
    assert wanted.value.const_value is None


def test_operators_without_operands_take_the_active_interpreter(emit):
    with interpreting(emit):
        made = op("ConstantOfShape", [2, BATCH], value=ir.tensor(np.array([0.5], np.float32)))
    assert made.interpreter is emit
    assert shape_of(made) == (2, BATCH)


def test_contents_are_followed(emit):
    x = emit.constant([2, 3])
    assert content_of(op("Add", x, 1)).tolist() == [3, 4]


def test_misfits_are_findings_with_their_tensors(emit):
    x, y = emit.new(FLOAT, (BATCH, 3)), emit.new(FLOAT, (BATCH, 4))
    with pytest.raises(CheckError, match=r"Add.*3.*4") as caught:
        op("Add", x, y)
    assert caught.value.tensors == (x, y)
    assert caught.value.code == "shape-mismatch"


def test_tensors_on_two_devices_do_not_meet(emit):
    x, y = emit.new(FLOAT, (3,)), emit.new(FLOAT, (3,), device="cuda:0")
    with pytest.raises(CheckError, match="expected all tensors on one device"):
        op("Add", x, y)
