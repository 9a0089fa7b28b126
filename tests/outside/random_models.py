"""Small models with random weights, for packages that download theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SENTENCES = ["the model runs fast on this machine", "a model runs slowly and that one"]


def face_models(folder: Path) -> tuple[str, str]:
    """Make a detector and a recogniser of faces with random weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def weight(*shape: int) -> str:
        name = f"w{len(weights)}"
        value = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)
        weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def node(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def conv(x: str, before: int, after: int, stride: int) -> str:
        return node(
            "Conv", x, weight(after, before, 3, 3), strides=[stride, stride], pads=[1, 1, 1, 1]
        )

    def save(name: str, input_: Any, outputs: list[Any], graph: str) -> str:
        made = helper.make_graph(nodes, graph, [input_], outputs, weights)
        imports = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(made, opset_imports=imports, ir_version=8), folder / name)
        return str(folder / name)

    x, width = "input.1", 3
    levels = []
    for after in (8, 16, 16, 16, 16):
        x = node("Relu", conv(x, width, after, 2))
        levels.append(x)
        width = after
    outputs: dict[str, list[str]] = {"score": [], "box": [], "point": []}
    for level in levels[2:]:
        for kind, size in (("score", 1), ("box", 4), ("point", 10)):
            head = node("Transpose", conv(level, 16, 2 * size, 1), perm=[2, 3, 0, 1])
            shape = f"s{len(weights)}"
            weights.append(numpy_helper.from_array(np.array([-1, size]), shape))
            head = node("Reshape", head, shape)
            if kind == "score":
                head = node("Sigmoid", head)
            outputs[kind].append(head)
    names = [*outputs["score"], *outputs["box"], *outputs["point"]]
    shape = [1, 3, "?", "?"]
    detector = save(
        "detector.onnx",
        helper.make_tensor_value_info("input.1", TensorProto.FLOAT, shape),
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
            for name, size in zip(names, [1] * 3 + [4] * 3 + [10] * 3, strict=True)
        ],
        "detector",
    )
    weights.clear()
    nodes.clear()
    y = "data"
    for before, after in ((3, 8), (8, 16), (16, 32)):
        y = node("Relu", conv(y, before, after, 2))
    y = node("Flatten", node("GlobalAveragePool", y))
    node("Gemm", y, weight(512, 32), transB=1, output="embedding")
    recogniser = save(
        "recogniser.onnx",
        helper.make_tensor_value_info("data", TensorProto.FLOAT, ["n", 3, 112, 112]),
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", 512])],
        "recogniser",
    )
    return detector, recogniser


def small_bert(folder: Path) -> Path:
    """Make a tokenizer and the configuration of a small BERT."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [*dict.fromkeys(word for text in SENTENCES for word in text.split())]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
        model_input_names=["input_ids", "attention_mask", "token_type_ids"],
    )
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    place = folder / "bert"
    config.save_pretrained(place)
    fast.save_pretrained(place)
    return place


def write_bert(to: Path, words: int = 32, width: int = 32) -> None:
    """Write one layer of a transformer with random weights as an ONNX model."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def constant(value: Any) -> str:
        weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(weights)}"))
        return weights[-1].name

    def weight(*shape: int) -> str:
        return constant((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def heads(x: str, order: list[int]) -> str:
        split = node("Reshape", node("MatMul", x, weight(width, width)), constant([0, 0, 4, -1]))
        return node("Transpose", split, perm=order)

    def normal(x: str, output: str = "") -> str:
        scale, bias = constant(np.ones(width, np.float32)), constant(np.zeros(width, np.float32))
        return node("LayerNormalization", x, scale, bias, output=output)

    kinds = node("Gather", weight(2, width), "token_type_ids")
    x = normal(node("Add", node("Gather", weight(words, width), "input_ids"), kinds))
    scores = node("MatMul", heads(x, [0, 2, 1, 3]), heads(x, [0, 2, 3, 1]))
    mask = node("Unsqueeze", node("Cast", "attention_mask", to=1), constant([1, 2]))
    hidden = node("Mul", node("Sub", mask, constant(np.float32(1))), constant(np.float32(1e4)))
    chances = node("Softmax", node("Add", scores, hidden), axis=-1)
    mixed = node("Transpose", node("MatMul", chances, heads(x, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    x = normal(node("Add", x, node("Reshape", mixed, constant([0, 0, width]))))
    inner = node("Gelu", node("MatMul", x, weight(width, 2 * width)))
    normal(node("Add", x, node("MatMul", inner, weight(2 * width, width))), "last_hidden_state")
    names = ("input_ids", "attention_mask", "token_type_ids")
    sizes = ["batch", "length"]
    graph = helper.make_graph(
        nodes,
        "bert",
        [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sizes, width])],
        weights,
    )
    imports = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), to)
