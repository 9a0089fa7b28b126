"""Recurrent links over whole sequences of any lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import lift, pop_options, require
from hagane.nn.initializers import get_initializer
from hagane.nn.model.chain import ChainList
from hagane.nn.model.link import Link


def argsort_list_descent(lst: Sequence[Any]) -> Any:
    """Return the order of sequences from the longest to the shortest, int32."""
    return np.argsort([-len(x) for x in lst], kind="stable").astype(np.int32)


def permutate_list(lst: Sequence[Any], indices: Any, inv: bool) -> list[Any]:
    """Return a list in another order, or back from it."""
    if not inv:
        return [lst[i] for i in indices]
    found: list[Any] = [None] * len(lst)
    for i, index in enumerate(indices):
        found[index] = lst[i]
    return found


class NStep(ChainList):
    """Layers over whole sequences of any lengths.

    Args:
        n_layers: The number of layers.
        in_size: Features of inputs.
        out_size: Units.
        dropout: The ratio between layers.
        initialW: Fills the weights.
        initial_bias: Fills the biases.
    """

    n_weights = 0
    n_cells = 1
    use_bi_direction = False
    function: Any = None
    options: dict[str, Any] = {}

    def __init__(
        self,
        n_layers: int,
        in_size: int,
        out_size: int,
        dropout: float,
        *,
        initialW: Any = None,
        initial_bias: Any = None,
        **kwargs: Any,
    ):
        pop_options(
            type(self).__name__, kwargs, removed=("use_cudnn", "use_bi_direction", "activation")
        )
        direction = 2 if self.use_bi_direction else 1
        weight, bias = (
            get_initializer(initialW),
            get_initializer(0 if initial_bias is None else initial_bias),
        )
        layers = []
        for i in range(n_layers):
            for _ in range(direction):
                layer = Link()
                with layer.init_scope():
                    for j in range(self.n_weights):
                        size = out_size
                        if j < self.n_weights // 2:
                            size = in_size if i == 0 else out_size * direction
                        setattr(layer, f"w{j}", Parameter(weight, (out_size, size)))
                        setattr(layer, f"b{j}", Parameter(bias, out_size))
                layers.append(layer)
        super().__init__(*layers)
        self.n_layers = n_layers
        self.dropout = dropout
        self.out_size = out_size
        self.direction = direction
        self._collect()

    def _collect(self) -> None:
        numbers = range(self.n_weights)
        self.ws = [[getattr(layer, f"w{i}") for i in numbers] for layer in self]
        self.bs = [[getattr(layer, f"b{i}") for i in numbers] for layer in self]

    def copy(self, mode: str = "share") -> Any:
        """Return a copy."""
        made = super().copy(mode)
        made._collect()
        return made

    def init_hx(self, xs: Sequence[Any]) -> Variable:
        """Return initial states of zeros for sequences."""
        shape = (self.n_layers * self.direction, len(xs), self.out_size)
        return Variable(np.zeros(shape, xs[0].dtype))

    def rnn(self, *args: Any) -> Any:
        """Return the result of the function for sorted sequences."""
        return type(self).function(*args, **self.options)

    def _call(self, hs: Sequence[Any], xs: Any, **kwargs: Any) -> Any:
        pop_options(type(self).__name__, kwargs)
        assert isinstance(xs, list | tuple), f"xs: expected a list of sequences, got {type(xs)}"
        where, features = type(self).function.__name__, self.ws[0][0].shape[1]
        for i, x in enumerate(xs):
            require(where, f"xs[{i}]", lift(x), kind="f", shape=(None, features))
        indices = argsort_list_descent(xs)
        xs = permutate_list(xs, indices, inv=False)
        firsts = [self.init_hx(xs) if h is None else F.permutate(h, indices, axis=1) for h in hs]
        times = F.transpose_sequence(xs)
        result = self.rnn(self.n_layers, self.dropout, *firsts, self.ws, self.bs, times)
        states = [F.permutate(h, indices, axis=1, inv=True) for h in result[:-1]]
        ys = permutate_list(F.transpose_sequence(result[-1]), indices, inv=True)
        return states, ys

    def forward(self, hx: Any, xs: Any, **kwargs: Any) -> Any:
        """Return the last states, and the outputs of each sequence.

        Args:
            hx: Initial states, (layers, batch, units); zeros if None.
            xs: Sequences, (length, features) each.
            **kwargs: None are known.
        """
        (hy,), ys = self._call([hx], xs, **kwargs)
        return hy, ys


class _NStepLSTM(NStep):
    n_weights = 8
    n_cells = 2

    def forward(self, hx: Any, cx: Any, xs: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the last outputs and cells, and the outputs of each sequence."""
        (hy, cy), ys = self._call([hx, cx], xs, **kwargs)
        return hy, cy, ys


class NStepLSTM(_NStepLSTM):
    """LSTMs over whole sequences."""

    function = staticmethod(F.n_step_lstm)


class NStepBiLSTM(_NStepLSTM):
    """LSTMs over whole sequences, in both directions."""

    use_bi_direction = True
    function = staticmethod(F.n_step_bilstm)


class NStepGRU(NStep):
    """Gated recurrent units over whole sequences."""

    n_weights = 6
    function = staticmethod(F.n_step_gru)


class NStepBiGRU(NStep):
    """Gated recurrent units over whole sequences, in both directions."""

    n_weights = 6
    use_bi_direction = True
    function = staticmethod(F.n_step_bigru)


class NStepRNNTanh(NStep):
    """Simple recurrent layers with tanh over whole sequences."""

    n_weights = 2
    function = staticmethod(F.n_step_rnn)
    options = {"activation": "tanh"}


class NStepRNNReLU(NStep):
    """Simple recurrent layers with rectifiers over whole sequences."""

    n_weights = 2
    function = staticmethod(F.n_step_rnn)
    options = {"activation": "relu"}


class NStepBiRNNTanh(NStep):
    """Simple recurrent layers with tanh over whole sequences, in both directions."""

    n_weights = 2
    use_bi_direction = True
    function = staticmethod(F.n_step_birnn)
    options = {"activation": "tanh"}


class NStepBiRNNReLU(NStep):
    """Simple recurrent layers with rectifiers over whole sequences, in both directions."""

    n_weights = 2
    use_bi_direction = True
    function = staticmethod(F.n_step_birnn)
    options = {"activation": "relu"}
