"""Gradients of whole models, imported and captured, beside PyTorch's.

    python tests/outside/whole_gradients.py [NAME ...]

``resnet18`` is ResNet-18 at 96 by 96 pixels in float64, ``minilm`` is Transformers' ``BertModel``
in the sizes of all-MiniLM-L6 (both with random weights), ``lstm`` an LSTM whose output walks
through a loop that the exporter keeps. Each is differentiated by all its parameters: as the ONNX
model that PyTorch exports and as the graph that ``hagane.capture`` makes of its source, where it
can. The gradients run in hagane's engine and, for exported models in float32, in ONNX Runtime too.
A line has the greatest difference of all parameters, over the largest gradient of each. It needs
``torch``, ``onnxruntime``, ``onnxscript`` and, for MiniLM, ``transformers``.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import hagane  # noqa: E402
from hagane.graph import to_proto  # noqa: E402

TOLERANCE = 1e-4
SIZE = 96  # pixels


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, channels: int, maps: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, maps, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(maps)
        self.conv2 = nn.Conv2d(maps, maps, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(maps)
        self.downsample: Any = None
        if stride != 1 or channels != maps:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, maps, 1, stride, bias=False), nn.BatchNorm2d(maps)
            )

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """ResNet-18 with its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2)]
        sizes += [(256, 256, 1), (256, 512, 2), (512, 512, 1)]
        self.blocks = nn.Sequential(*[Block(*size) for size in sizes])
        self.fc = nn.Linear(512, 1000)

    def forward(self, x: Any, target: Any) -> Any:
        y = self.blocks(self.stem(x)).mean((2, 3))
        return functional.cross_entropy(self.fc(y), target)


class MiniLM(nn.Module):
    """The encoder of all-MiniLM-L6, its mean over tokens and a loss of it."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        config = BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager",
        )  # fmt: skip
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, ids: Any, mask: Any, target: Any) -> Any:
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return ((mean - target) ** 2).mean()


class Recurrent(nn.Module):
    """A bidirectional LSTM, then a loop over its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(32, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.weight = nn.Parameter(torch.randn(48, 48) / 8)
        # The exporter keeps loops of TorchScript alone; a capture reads those of Python.
        self.scripted = True

    def forward(self, x: Any) -> Any:
        y, _ = self.layer(x)
        return walked(y, self.weight) if self.scripted else _walked(y, self.weight)


def _walked(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    h = torch.zeros_like(y[:, 0])
    for t in range(y.size(1)):
        h = torch.tanh(h @ weight + y[:, t])
    return (h * h).mean()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    walked = torch.jit.script(_walked)


def resnet18() -> tuple[Any, tuple[Any, ...]]:
    """Return the model in training mode, in float64, and a batch of 4.

    In float32 rounding turns rectifiers and maxima of pools the other way: PyTorch's own gradients
    differ by a tenth of the largest from those that it computes in float64.
    """
    images = torch.randn(4, 3, SIZE, SIZE, dtype=torch.float64)
    return ResNet18().double(), (images, torch.randint(0, 1000, (4,)))


def minilm() -> tuple[Any, tuple[Any, ...]]:
    """Return the model and a batch of 3 sentences of 32 tokens, one of them shorter."""
    mask = torch.ones(3, 32, dtype=torch.int64)
    mask[1, 20:] = 0
    return MiniLM(), (torch.randint(0, 30522, (3, 32)), mask, torch.randn(3, 384))


def lstm() -> tuple[Any, tuple[Any, ...]]:
    """Return the model and 5 sequences of 21 steps."""
    return Recurrent(), (torch.randn(5, 21, 32),)


MODELS = {"resnet18": resnet18, "minilm": minilm, "lstm": lstm}
# Inputs of a capture whose sizes are to be unknown, so that its loop is a Loop.
TYPES = {"lstm": ("float32[batch, steps, 32]",)}


def exported(model: Any, inputs: tuple[Any, ...]) -> Any:
    """Return PyTorch's ONNX model in training mode."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, inputs, file, input_names=[f"input_{i}" for i in range(len(inputs))],
            output_names=["loss"], opset_version=17, dynamo=False, do_constant_folding=False,
            training=torch.onnx.TrainingMode.TRAINING,
        )  # fmt: skip
    return onnx.load_from_string(file.getvalue())


def compared(result: Any, wanted: dict[str, Any], feeds: dict[str, Any], engine: str) -> str:
    """Return the greatest difference of gradients that an engine computes."""
    if engine == "onnxruntime":
        import onnxruntime

        session: Any = onnxruntime.InferenceSession(to_proto(result).SerializeToString())
    else:
        session = hagane.InferenceSession(result)
    found = session.run([f"{name}.gradient" for name in wanted], feeds)
    worst, where = 0.0, ""
    for (name, want), got in zip(wanted.items(), found, strict=True):
        scale = max(float(np.abs(want).max()), 1e-6)
        error = float(np.abs(got - want).max()) / scale
        if not error <= worst:
            worst, where = error, name
    return f"{worst:.1e} ({where}){'' if worst < TOLERANCE else ' TOO MUCH'}"


def lines(name: str) -> Iterator[str]:
    """Yield what was compared for a model."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model(*inputs).backward()
    gradients = {key: p.grad.numpy() for key, p in model.named_parameters() if p.grad is not None}
    feeds = {f"input_{i}": x.numpy() for i, x in enumerate(inputs)}
    proto = exported(model, inputs)
    held = {tensor.name for tensor in proto.graph.initializer}
    wanted = {key: value for key, value in gradients.items() if key in held}
    result = hagane.gradient(proto, "loss", list(wanted))
    count = f"{len(wanted)} of {len(gradients)} parameters"
    single = next(model.parameters()).dtype == torch.float32
    for engine in ("hagane", "onnxruntime") if single else ("hagane",):  # which convolves float32
        yield f"imported, {count}, {engine}: {compared(result, wanted, feeds, engine)}"
    model.scripted = False
    try:
        captured = hagane.capture(model, *TYPES.get(name, inputs))
    except hagane.errors.HaganeError as error:
        yield f"captured: refused: {' '.join(str(error).split())[:200]}"
        return
    names = [value.name for value in captured.graph.inputs]
    loss = captured.graph.outputs[0].name
    held = set(captured.graph.initializers)
    wanted = {key: value for key, value in gradients.items() if key in held}
    result = hagane.gradient(captured, loss, list(wanted))
    # Statistics of norms are states, which come in under their paths.
    states = (model.get_buffer(path) for path in names[len(inputs) :])
    feeds = dict(zip(names, (x.numpy() for x in (*inputs, *states)), strict=True))
    count = f"{len(wanted)} of {len(gradients)} parameters"
    yield f"captured, {count}, hagane: {compared(result, wanted, feeds, 'hagane')}"


def main() -> int:
    """Compare the models; return 1 if a difference is too large."""
    bad = 0
    for name in sys.argv[1:] or MODELS:
        for line in lines(name):
            print(f"{name}: {line}", flush=True)
            bad += "TOO MUCH" in line
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
