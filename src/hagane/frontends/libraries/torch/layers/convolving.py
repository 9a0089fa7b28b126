"""Convolutions and paddings of ``torch.nn``."""

from __future__ import annotations

import inspect
from typing import Any

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.networks import windows
from hagane.frontends.libraries.torch.layers.layer import layer, made_as, weight
from hagane.frontends.libraries.torch.operands import (
    need_tensor,
    per_axis,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value
from hagane.symbolic import floordiv


def _conv(spatial: int, transposed: bool) -> None:
    def init(
        t: Core, in_channels: Value, out_channels: Value, kernel_size: Value, stride: Value = 1,
        padding: Value = 0, dilation: Value = 1, groups: Value = 1, bias: Value = True,
        padding_mode: Value = "zeros", device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        for count, name in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if isinstance(count, int) and isinstance(groups, int) and groups > 0 and count % groups:
                t.fail("value", f"expected {name} ({count}) to be divisible by groups ({groups})")
        kernel = per_axis(t, kernel_size, spatial, "kernel_size")
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        return {
            "in_channels": in_channels, "out_channels": out_channels, "kernel_size": tuple(kernel),
            "stride": _spread(t, stride, spatial, "stride"),
            "padding": _spread(t, padding, spatial, "padding"),
            "dilation": _spread(t, dilation, spatial, "dilation"), "groups": groups,
            "padding_mode": padding_mode, "output_padding": (0,) * spatial,
            "transposed": transposed,
            "weight": weight(t, first, second // groups, *kernel, dtype=dtype, device=device),
            "bias": weight(t, out_channels, dtype=dtype, device=device) if bias else None,
        }  # fmt: skip

    def init_transposed(
        t: Core, in_channels: Value, out_channels: Value, kernel_size: Value, stride: Value = 1,
        padding: Value = 0, output_padding: Value = 0, groups: Value = 1, bias: Value = True,
        dilation: Value = 1, padding_mode: Value = "zeros", device: Value = None,
        dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        found = init(t, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                     bias, padding_mode, device, dtype)  # fmt: skip
        return {**found, "output_padding": _spread(t, output_padding, spatial, "output_padding")}

    def forward(t: Core, self: View, input: Value) -> Value:
        padding = self.padding
        if self.padding_mode != "zeros":
            amounts = _around(padding, self.kernel_size, self.dilation)
            input = t.call_library("torch.nn.functional.pad", [input, amounts, self.padding_mode])
            padding = 0
        return windows.conv(
            t, spatial, input, self.weight, self.bias, self.stride, padding, self.dilation,
            self.groups,
        )  # fmt: skip

    def forward_transposed(t: Core, self: View, input: Value, output_size: Value = None) -> Value:
        y = windows.conv_transpose(
            t, spatial, input, self.weight, self.bias, self.stride, self.padding,
            self.output_padding, self.groups, self.dilation,
        )  # fmt: skip
        if output_size is not None:
            shape = (*shape_of(t, y)[:-spatial], *list(output_size)[-spatial:])
            return t.emit.typed("ConvTranspose", [y], y.dtype, shape)
        return y

    name = f"ConvTranspose{spatial}d" if transposed else f"Conv{spatial}d"
    functions = {
        "init": staticmethod(init_transposed if transposed else init),
        "forward": staticmethod(forward_transposed if transposed else forward),
    }
    layer(name)(type(name, (), functions))


def _lazy(spatial: int, kind: str) -> None:
    plain: Any = TORCH.layers[f"torch.nn.{kind}{spatial}d"]
    own = inspect.signature(plain.init)
    signature = own.replace(
        parameters=[p for p in own.parameters.values() if p.name != "in_channels"]
    )

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        bound = signature.bind(t, *arguments, **keywords).arguments
        settings = plain.init(**{**bound, "in_channels": 1, "groups": 1})
        return {**settings, "in_channels": 0, "groups": bound.get("groups", 1)}

    init.__signature__ = signature  # type: ignore[attr-defined]

    def prepare(t: Core, self: View, input: Value) -> Value:
        x = need_tensor(t, input, "input")
        if self.in_channels == 0:
            shape = shape_of(t, x)
            channels = shape[-spatial - 1] if len(shape) > spatial else 0
            self.in_channels = channels
            first, second, *kernel = shape_of(t, self.weight)
            if kind == "ConvTranspose":
                first, second = channels, floordiv(second, self.groups)
            else:
                second = floordiv(channels, self.groups)
            self.weight = weight(t, first, second, *kernel, **made_as(self.weight))
        return x

    def forward(t: Core, self: View, input: Value) -> Value:
        return plain.forward(t, self, prepare(t, self, input))

    def forward_transposed(t: Core, self: View, input: Value, output_size: Value = None) -> Value:
        return plain.forward(t, self, prepare(t, self, input), output_size)

    run = forward_transposed if kind == "ConvTranspose" else forward
    functions = {"init": staticmethod(init), "forward": staticmethod(run)}
    layer(f"Lazy{kind}{spatial}d")(type(f"Lazy{kind}{spatial}d", (), functions))


def _spread(t: Core, value: Value, count: int, what: str) -> Value:
    return value if isinstance(value, str) else tuple(per_axis(t, value, count, what))


def _around(padding: Value, kernel: Value, dilation: Value) -> tuple[Value, ...]:
    """The amounts before and after each axis, the last axis first, as ``pad`` takes them."""
    amounts: list[Value] = []
    for axis in reversed(range(len(kernel))):
        if padding == "same":
            total = dilation[axis] * (kernel[axis] - 1)
            amounts += [total // 2, total - total // 2]
        else:
            amounts += [0, 0] if padding == "valid" else [padding[axis]] * 2
    return tuple(amounts)


for _spatial in (1, 2, 3):
    _conv(_spatial, transposed=False)
    _conv(_spatial, transposed=True)
    _lazy(_spatial, "Conv")
    _lazy(_spatial, "ConvTranspose")


def _pad(name: str, spatial: int, mode: str) -> None:
    def init(t: Core, padding: Value) -> dict[str, Value]:
        amounts = (padding,) * (2 * spatial) if isinstance(padding, int) else tuple(padding)
        return {"padding": amounts, **({"value": 0.0} if name.startswith("Zero") else {})}

    def init_constant(t: Core, padding: Value, value: Value) -> dict[str, Value]:
        return {**init(t, padding), "value": value}

    def forward(t: Core, self: View, input: Value) -> Value:
        fill = [self.get("value", 0.0)] if mode == "constant" else []
        return t.call_library("torch.nn.functional.pad", [input, self.padding, mode, *fill])

    made = init_constant if name.startswith("Constant") else init
    layer(name)(type(name, (), {"init": staticmethod(made), "forward": staticmethod(forward)}))


for _n in (1, 2, 3):
    for _kind, _mode in (("Zero", "constant"), ("Constant", "constant"), ("Reflection", "reflect"),
                         ("Replication", "replicate"), ("Circular", "circular")):  # fmt: skip
        _pad(f"{_kind}Pad{_n}d", _n, _mode)
