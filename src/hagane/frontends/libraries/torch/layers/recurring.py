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
        device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.layer_init(
            t, name, input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip

    def init_lstm(
        t: Core, input_size: Value, hidden_size: Value, num_layers: Value = 1, bias: Value = True,
        batch_first: Value = False, dropout: Value = 0.0, bidirectional: Value = False,
        proj_size: Value = 0, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.layer_init(
            t, name, input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, proj_size, device, dtype,
        )  # fmt: skip

    def init_plain(
        t: Core, input_size: Value, hidden_size: Value, num_layers: Value = 1,
        nonlinearity: Value = "tanh", bias: Value = True, batch_first: Value = False,
        dropout: Value = 0.0, bidirectional: Value = False, device: Value = None,
        dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        _need_nonlinearity(t, nonlinearity)
        made = init(t, input_size, hidden_size, num_layers, bias, batch_first, dropout,
                    bidirectional, device, dtype)  # fmt: skip
        return {**made, "nonlinearity": nonlinearity}

    def forward(t: Core, self: View, input: Value, hx: Value = None) -> Value:
        return recurrent.layer_forward(t, self, input, hx)

    def flatten_parameters(t: Core, self: View) -> Value:
        return None

    own = {"LSTM": init_lstm, "RNN": init_plain}.get(name, init)
    layer(name)(
        type(name, (), {"init": staticmethod(own), "forward": staticmethod(forward),
                        "flatten_parameters": staticmethod(flatten_parameters)})
    )  # fmt: skip


def _cell(name: str) -> None:
    kind = name.removesuffix("Cell")

    def init(
        t: Core, input_size: Value, hidden_size: Value, bias: Value = True, device: Value = None,
        dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        return recurrent.cell_init(t, kind, input_size, hidden_size, bias, device, dtype)

    def init_plain(
        t: Core, input_size: Value, hidden_size: Value, bias: Value = True,
        nonlinearity: Value = "tanh", device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        _need_nonlinearity(t, nonlinearity)
        made = init(t, input_size, hidden_size, bias, device, dtype)
        return {**made, "nonlinearity": nonlinearity}

    def forward(t: Core, self: View, input: Value, hx: Value = None) -> Value:
        return recurrent.cell_forward(t, kind, self, input, hx)

    own = init_plain if kind == "RNN" else init
    layer(name)(type(name, (), {"init": staticmethod(own), "forward": staticmethod(forward)}))


def _need_nonlinearity(t: Core, nonlinearity: Value) -> None:
    if isinstance(nonlinearity, str) and nonlinearity not in ("tanh", "relu"):
        t.fail("value", f"expected the nonlinearity 'tanh' or 'relu', got {nonlinearity!r}")


for _name in ("LSTM", "GRU", "RNN"):
    _recurrent(_name)
    _cell(f"{_name}Cell")
