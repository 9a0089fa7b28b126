"""A GPT-2 checkpoint (``pytorch_model.bin``, ``config.json``) as an ONNX model, without PyTorch."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Weights(pickle.Unpickler):
    """Reads tensors as descriptions; no other code of the file runs."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, size, stride, *rest: (storage, offset, size, stride)
        if module == "torch" and name.endswith("Storage"):
            return name
        raise pickle.UnpicklingError(f"unexpected {module}.{name} in a checkpoint")

    def persistent_load(self, pid: Any) -> Any:
        return pid


def read_checkpoint(path: Path) -> dict[str, np.ndarray]:
    """Return the weights of a PyTorch checkpoint of floats."""
    weights = {}
    with zipfile.ZipFile(path) as archive:
        head = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        described = _Weights(io.BytesIO(archive.read(head))).load()
        for name, (storage, offset, size, stride) in described.items():
            if storage[1] != "FloatStorage":
                continue
            data = archive.read(f"{head.removesuffix('data.pkl')}data/{storage[2]}")
            flat = np.frombuffer(data, np.float32)[offset:]
            steps = [4 * step for step in stride]
            weights[name] = np.lib.stride_tricks.as_strided(flat, size, steps).copy()
    return weights


def gpt2_model(folder: Path) -> onnx.ModelProto:
    """Return the model: ``ids`` (1, length) to ``logits`` (1, vocabulary) of the next token."""
    config = json.loads((folder / "config.json").read_text())
    weights = read_checkpoint(folder / "pytorch_model.bin")
    heads, width = config["n_head"], config["n_embd"]
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "last": np.array(-1, np.int64),
        "split": np.array([1, -1, heads, width // heads], np.int64),
        "joined": np.array([1, -1, width], np.int64),
        "scale": np.array((width // heads) ** -0.5, np.float32),
        "masked": np.array(-1e9, np.float32),
    }

    def add(operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"{operator}_{len(nodes)}_{k}" for k in range(outputs)]
        nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def linear(x: str, name: str) -> str:
        return add("Add", add("MatMul", x, f"{name}.weight"), f"{name}.bias")

    def normal(x: str, name: str) -> str:
        epsilon = config["layer_norm_epsilon"]
        return add("LayerNormalization", x, f"{name}.weight", f"{name}.bias", epsilon=epsilon)

    shape = add("Shape", "ids")
    length = add("Gather", shape, "one")
    positions = add("Range", "zero", length, "one")
    x = add(
        "Add",
        add("Gather", "transformer.wte.weight", "ids"),
        add("Gather", "transformer.wpe.weight", positions),
    )
    rows = add("Unsqueeze", positions, add("Unsqueeze", "one", "zero"))
    columns = add("Unsqueeze", positions, add("Unsqueeze", "zero", "zero"))
    later = add("Greater", columns, rows)
    for layer in range(config["n_layer"]):
        base = f"transformer.h.{layer}"
        qkv = linear(normal(x, f"{base}.ln_1"), f"{base}.attn.c_attn")
        parts = add("Split", qkv, outputs=3, axis=-1, num_outputs=3)
        q, k, v = (
            add("Transpose", add("Reshape", part, "split"), perm=perm)
            for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = add("Mul", add("MatMul", q, k), "scale")
        weighted = add("Softmax", add("Where", later, "masked", scores), axis=-1)
        mixed = add("Transpose", add("MatMul", weighted, v), perm=[0, 2, 1, 3])
        x = add("Add", x, linear(add("Reshape", mixed, "joined"), f"{base}.attn.c_proj"))
        wide = linear(normal(x, f"{base}.ln_2"), f"{base}.mlp.c_fc")
        narrow = linear(add("Gelu", wide, approximate="tanh"), f"{base}.mlp.c_proj")
        x = add("Add", x, narrow)
    last = add("Gather", normal(x, "transformer.ln_f"), "last", axis=1)
    output = add("MatMul", last, "head")
    nodes.append(helper.make_node("Identity", [output], ["logits"]))
    constants["head"] = np.ascontiguousarray(weights["lm_head.weight"].T)
    used = {name for node in nodes for name in node.input}
    constants |= {name: array for name, array in weights.items() if name in used}
    graph = helper.make_graph(
        nodes,
        "gpt2",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "length"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, config["vocab_size"]])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return model
