"""8-bit models in QDQ form, as ONNX Runtime's quantiser writes them, in several engines.

    python benchmarks/qdq.py [MODEL ...]

Needs PyTorch, onnxruntime and openvino. Weights have a scale for each channel, activations are
uint8; the ratio is the peer's median time over hagane's.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from inference import timed
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from models import make

NAMES = ("ResNet-50", "MobileNetV2", "BERT-base")


class RandomReader(CalibrationDataReader):  # type: ignore[misc]
    """Two samples of random numbers: times do not depend on what they are."""

    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]):
        random = np.random.default_rng(0)
        self._left = [
            {
                value.name: random.standard_normal(self._shape(value, shapes)).astype(np.float32)
                if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
                else random.integers(0, 100, self._shape(value, shapes))
                for value in model.graph.input
            }
            for _ in range(2)
        ]

    @staticmethod
    def _shape(
        value: onnx.ValueInfoProto, shapes: Mapping[str, tuple[int, ...]]
    ) -> tuple[int, ...]:
        dims = value.type.tensor_type.shape.dim
        return shapes.get(value.name) or tuple(dim.dim_value or 1 for dim in dims)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


def quantised(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> Path:
    """Return the QDQ form of a model, made if it is not there."""
    result = path.with_name(f"{path.stem}_qdq.onnx")
    if not result.exists():
        plain = path.with_name(f"{path.stem}_plain.onnx")
        quant_pre_process(str(path), str(plain), skip_symbolic_shape=True)
        reader = RandomReader(onnx.load(plain), shapes)
        quantize_static(
            str(plain),
            str(result),
            reader,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    return result


def main() -> None:
    folder = Path.home() / ".cache" / "hagane" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    print(
        "| model | threads | onnxruntime ÷ hagane | openvino ÷ hagane |\n| --- | --- | --- | --- |"
    )
    for name in sys.argv[1:] or NAMES:
        path, shapes = make(name, folder)
        model = quantised(path, shapes)
        for threads in (1, 2):
            found = timed(model, ["onnxruntime", "openvino"], shapes, threads, 3, 0.5)
            ratios = [
                f"{found['ratios'].get(f'{other}/hagane', float('nan')):.2f}"
                for other in ("onnxruntime", "openvino")
            ]
            print(f"| {name} | {threads} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
