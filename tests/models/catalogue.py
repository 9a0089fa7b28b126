"""The models that the checker is tested on, with the types of their inputs.

A type is written `float32[batch, 3, 16*h]` (`float32`, `float64`, `int64` or `bool`),
`list[T, n]`, `tuple[T, U]`, or is an integer expression over the symbols: a Python integer.
"""

from __future__ import annotations

import ast
import importlib.util
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One method of one model with the types of its arguments.

    `file` is relative to this folder; `target` is `Class` (its `forward`) or `Class.method`;
    `make` is an expression that builds the instance; `sizes` has the values of each symbol to
    draw from; `high` bounds integer inputs from above, exclusively (2 where it says nothing).
    """

    name: str
    file: str
    target: str
    make: str
    inputs: Mapping[str, str]
    sizes: Mapping[str, tuple[int, ...]]
    high: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return HERE / self.file

    @property
    def method(self) -> str:
        """The method to check."""
        return self.target.partition(".")[2] or "forward"


def load(path: Path, source: str | None = None) -> ModuleType:
    """Execute a model file, or `source` in its stead under its name, as a new module."""
    spec = importlib.util.spec_from_file_location(f"hagane_model_{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    code = compile(path.read_text() if source is None else source, str(path), "exec")
    sys.modules[module.__name__] = module  # dataclasses look their annotations up there
    exec(code, module.__dict__)
    return module


def draw_sizes(case: Case, seed: int) -> dict[str, int]:
    """One allowed value of each symbol."""
    generator = random.Random(f"{case.name} {seed}")
    return {name: generator.choice(values) for name, values in case.sizes.items()}


def draw_inputs(case: Case, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Real tensors of the types of the case's inputs at these sizes."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def number(node: ast.expr) -> int:
        return int(eval(ast.unparse(node), {"__builtins__": {}}, dict(sizes)))

    def draw(node: ast.expr, high: int) -> Any:
        match node:
            case ast.Subscript(ast.Name("list"), ast.Tuple([element, length])):
                return [draw(element, high) for _ in range(number(length))]
            case ast.Subscript(ast.Name("tuple"), ast.Tuple(elements)):
                return tuple(draw(element, high) for element in elements)
            case ast.Subscript(ast.Name(dtype), dims):
                parts = dims.elts if isinstance(dims, ast.Tuple) else [dims]
                shape = [number(part) for part in parts]
                if dtype in ("int64", "bool"):
                    drawn = torch.randint(0, high, shape, generator=generator)
                    return drawn.to(getattr(torch, dtype))
                return torch.randn(shape, generator=generator, dtype=getattr(torch, dtype))
            case _:
                return number(node)

    return {
        name: draw(ast.parse(text, mode="eval").body, case.high.get(name, 2))
        for name, text in case.inputs.items()
    }


_IMAGES = (1, 2, 3)

_BERT = (
    "BertConfig(vocab_size=99, hidden_size=24, num_hidden_layers=12, num_attention_heads=3, "
    "intermediate_size=40, max_position_embeddings=32)"
)
_BERT_SIZES = {"batch": (1, 2, 3), "seq": (1, 2, 5, 9, 32)}

_GPT = "GPT(vocab_size=50, block_size=32, n_layer=12, n_head=4, n_embd=32)"
_GPT_SIZES = {"batch": (1, 2, 3), "seq": (1, 2, 5, 9)}

TORCH: tuple[Case, ...] = (
    Case(
        "resnet50",
        "torch/resnet.py",
        "ResNet",
        "resnet50(classes=10, width=8).eval()",
        {"x": "float32[batch, 3, height, width]"},
        {"batch": _IMAGES, "height": (1, 7, 32, 49, 64), "width": (1, 9, 33, 56, 64)},
    ),
    Case(
        "resnet50-features",
        "torch/resnet.py",
        "ResNet.features",
        "resnet50(classes=10, width=8).eval()",
        {"x": "float32[batch, 3, height, width]"},
        {"batch": _IMAGES, "height": (1, 7, 32, 49, 64), "width": (1, 9, 33, 56, 64)},
    ),
    Case(
        "googlenet-train",
        "torch/googlenet.py",
        "GoogLeNet",
        "GoogLeNet(10, divisor=8)",
        {"x": "float32[batch + 1, 3, height + 30, width + 30]"},
        {"batch": _IMAGES, "height": (1, 2, 33, 34), "width": (1, 3, 33, 66)},
    ),
    Case(
        "googlenet-eval",
        "torch/googlenet.py",
        "GoogLeNet",
        "GoogLeNet(10, divisor=8, normalise_input=True).eval()",
        {"x": "float32[batch, 3, 224, 224]"},
        {"batch": _IMAGES},
    ),
    Case(
        "bert",
        "torch/bert.py",
        "BertModel",
        f"BertModel({_BERT})",
        {"input_ids": "int64[batch, seq]"},
        _BERT_SIZES,
        {"input_ids": 99},
    ),
    Case(
        "bert-masked",
        "torch/bert.py",
        "BertModel",
        f"BertModel({_BERT})",
        {
            "input_ids": "int64[batch, seq]",
            "attention_mask": "float32[batch, seq]",
            "token_type_ids": "int64[batch, seq]",
        },
        _BERT_SIZES,
        {"input_ids": 99, "token_type_ids": 2},
    ),
    Case(
        "bert-pretraining",
        "torch/bert.py",
        "BertForPreTraining",
        f"BertForPreTraining({_BERT})",
        {
            "input_ids": "int64[batch, seq]",
            "attention_mask": "int64[batch, seq, seq]",
            "labels": "int64[batch, seq]",
            "next_sentence_label": "int64[batch]",
        },
        _BERT_SIZES,
        {"input_ids": 99, "labels": 99},
    ),
    Case(
        "unet-bilinear",
        "torch/unet.py",
        "UNet",
        "UNet(classes=5, width=8).eval()",
        {"image": "float32[batch, 3, height + 15, width + 15]"},
        {"batch": _IMAGES, "height": (1, 2, 8, 17, 25), "width": (1, 5, 17, 32)},
    ),
    Case(
        "unet-transposed",
        "torch/unet.py",
        "UNet",
        "UNet(channels=1, classes=2, width=8, bilinear=False)",
        {"image": "float32[batch, 1, height + 31, 16*w]"},
        {"batch": _IMAGES, "height": (1, 2, 8, 17, 25), "w": (2, 3)},
    ),
    Case(
        "unet-loss",
        "torch/unet.py",
        "UNet.loss",
        "UNet(classes=5, width=8)",
        {"image": "float32[batch, 3, 16*h, 16*w]", "target": "int64[batch, 16*h, 16*w]"},
        {"batch": _IMAGES, "h": (2, 3), "w": (2, 4)},
        {"target": 5},
    ),
    Case(
        "gpt2",
        "torch/gpt2.py",
        "GPT",
        _GPT,
        {"idx": "int64[batch, seq]", "targets": "int64[batch, seq]"},
        _GPT_SIZES,
        {"idx": 50, "targets": 50},
    ),
    Case(
        "gpt2-last",
        "torch/gpt2.py",
        "GPT",
        _GPT,
        {"idx": "int64[batch, seq]"},
        _GPT_SIZES,
        {"idx": 50},
    ),
    Case(
        "gpt2-cached-step",
        "torch/gpt2.py",
        "GPT.step",
        _GPT,
        {
            "idx": "int64[batch, seq]",
            "past": "list[tuple[float32[batch, 4, cached, 8], float32[batch, 4, cached, 8]], 12]",
        },
        {**_GPT_SIZES, "cached": (0, 1, 6)},
        {"idx": 50},
    ),
    Case(
        "gpt2-generate",
        "torch/gpt2.py",
        "GPT.generate",
        _GPT,
        {"idx": "int64[batch, seq]", "max_new_tokens": "steps", "top_k": "5"},
        {**_GPT_SIZES, "steps": (0, 1, 4)},
        {"idx": 50},
    ),
)
