"""``onnxruntime.quantization`` where that package is not installed: over ``hagane quantize``.

It offers the static quantisation to bytes in the form of QuantizeLinear and DequantizeLinear. What
it does not offer says so.
"""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import written_whole
from hagane.onnxruntime.raised import as_theirs, offered_not
from hagane.ship.quantize import QuantizeOptions, Scheme, quantize


class QuantType(enum.Enum):
    """Types of quantised numbers."""

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6


class QuantFormat(enum.Enum):
    """Forms of quantised models."""

    QOperator = 0
    QDQ = 1


class CalibrationMethod(enum.Enum):
    """Ways to find the range of values."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader:
    """Feeds for calibration: ``get_next`` returns one, and None at the end."""

    def get_next(self) -> Mapping[str, Any] | None:
        """Return the next feed, ``{input: array}``, or None."""
        raise NotImplementedError(f"{type(self).__name__}.get_next is not defined")

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        while (feed := self.get_next()) is not None:
            yield feed


_METHODS = {
    CalibrationMethod.MinMax: "minmax",
    CalibrationMethod.Entropy: "entropy",
    CalibrationMethod.Percentile: "percentile",
}


def quantize_static(
    model_input: str | Path | onnx.ModelProto,
    model_output: str | Path,
    calibration_data_reader: CalibrationDataReader,
    quant_format: QuantFormat = QuantFormat.QDQ,
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    activation_type: QuantType = QuantType.QInt8,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibration_providers: Sequence[str] | None = None,
    extra_options: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """Write a model that computes with bytes, its ranges found on feeds.

    Args:
        model_input: A path of an ONNX model, or one.
        model_output: The file to write.
        calibration_data_reader: The feeds.
        quant_format: ``QDQ``.
        op_types_to_quantize: None: convolutions and products with constant weights.
        per_channel: Whether each output channel of weights has a scale of its own.
        reduce_range: False.
        activation_type: ``QUInt8``, or ``QInt8``: around zero.
        weight_type: ``QInt8``.
        nodes_to_quantize: None.
        nodes_to_exclude: None.
        use_external_data_format: False.
        calibrate_method: ``MinMax``, ``Entropy`` or ``Percentile``.
        calibration_providers: The CPU calibrates.
        extra_options: None.
        more: None.

    Raises:
        NotOffered: An argument asks for something else.
        InvalidArgument: The feeds cannot be used.
    """
    wrong = {
        "quant_format": quant_format is not QuantFormat.QDQ,
        "op_types_to_quantize": bool(op_types_to_quantize),
        "reduce_range": reduce_range,
        "activation_type": activation_type not in (QuantType.QInt8, QuantType.QUInt8),
        "weight_type": weight_type is not QuantType.QInt8,
        "nodes_to_quantize": bool(nodes_to_quantize),
        "nodes_to_exclude": bool(nodes_to_exclude),
        "use_external_data_format": use_external_data_format,
        "calibrate_method": calibrate_method not in _METHODS,
        "extra_options": bool(extra_options),
    } | {name: value is not None for name, value in more.items()}
    asked = [name for name, is_wrong in wrong.items() if is_wrong]
    if asked:
        raise offered_not(
            f"quantization.quantize_static with {', '.join(asked)}",
            "without the package onnxruntime, `hagane quantize` does it: QDQ, weights as QInt8, "
            "activations as QInt8 or QUInt8, ranges by MinMax, Entropy or Percentile; install "
            "onnxruntime beside hagane for the rest",
        )
    if calibration_data_reader is None:
        raise InvalidArgument("quantize_static: expected a CalibrationDataReader, got None")
    scheme = Scheme(per_channel, activation_type is QuantType.QInt8)
    options = QuantizeOptions(_METHODS[calibrate_method], scheme=scheme)
    with as_theirs(), tempfile.TemporaryDirectory() as folder:
        source = model_input
        if isinstance(source, onnx.ModelProto):
            onnx.save(source, Path(folder) / "model.onnx")
            source = Path(folder) / "model.onnx"
        feeds = [dict(feed) for feed in calibration_data_reader]
        quantize(
            Path(source),
            lambda: feeds,
            Path(model_output),
            options,
            where="the calibration data reader",
        )


def quantize_dynamic(model_input: Any, model_output: Any, *_: Any, **__: Any) -> None:
    """Refuse: activations are quantised by ranges that are found ahead."""
    raise offered_not(
        "quantization.quantize_dynamic",
        "hagane finds ranges ahead: use quantize_static, or `hagane quantize --weights-only`; "
        "or install onnxruntime beside hagane, whose function runs over hagane's sessions",
    )


def quant_pre_process(input_model: Any, output_model_path: Any, **_: Any) -> None:
    """Write the model as it is: ``quantize_static`` prepares it itself."""
    model = input_model if isinstance(input_model, onnx.ModelProto) else onnx.load(input_model)
    with written_whole(output_model_path) as path:
        onnx.save(model, path)


OFFERED = (
    "CalibrationDataReader",
    "CalibrationMethod",
    "QuantFormat",
    "QuantType",
    "quant_pre_process",
    "quantize_dynamic",
    "quantize_static",
)
