"""Recurrent layers of ``torch.nn``."""

from __future__ import annotations

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.networks import recurrent
from hagane.frontends.libraries.torch.layers.layer import layer
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value


def _recurrent(name: str) -> None:
    def init(
        t: Core, input_size: Value, hidden_size: Value, num_layers: Value = 1, bias: Value = True,
        batch_first: Value = False, dropout: Value = 0.0, bidirectional: Value = False,
        proj_size: Value = 0, device: Value = None, dtype: Value = None,
        nonlinearity: Value = "tanh",
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.layer_init(
            t,
            name,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
        )

    def forward(t: Core, self: View, input: Value, hx: Value = None) -> Value:
        return recurrent.layer_forward(t, self, input, hx)

    def flatten_parameters(t: Core, self: View) -> Value:
        return None

    layer(name)(
        type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward),
                        "flatten_parameters": staticmethod(flatten_parameters)})
    )  # fmt: skip


def _cell(name: str) -> None:
    def init(
        t: Core, input_size: Value, hidden_size: Value, bias: Value = True, device: Value = None,
        dtype: Value = None, nonlinearity: Value = "tanh",
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.cell_init(t, name.removesuffix("Cell"), input_size, hidden_size, bias)

    def forward(t: Core, self: View, input: Value, hx: Value = None) -> Value:
        return recurrent.cell_forward(t, name.removesuffix("Cell"), self, input, hx)

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


for _name in ("LSTM", "GRU", "RNN"):
    _recurrent(_name)
    _cell(f"{_name}Cell")
