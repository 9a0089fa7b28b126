"""Recurrent links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.configuration import get_dtype
from hagane.nn.autograd.debugging import at_place
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import pop_options
from hagane.nn.functions.recurrent.steps import lstm_step
from hagane.nn.initializers import get_initializer
from hagane.nn.links.connection import Linear
from hagane.nn.model.chain import Chain
from hagane.nn.model.hooks import get_link_hooks


def _zeros(rows: int, columns: int, dtype: Any) -> Variable:
    return Variable(np.zeros((rows, columns), dtype))


class _LSTM(Chain):
    """Common parts of LSTM links: linear maps of inputs and outputs to four gates, interleaved."""

    def __init__(
        self,
        in_size: Any,
        out_size: Any = None,
        lateral_init: Any = None,
        upward_init: Any = None,
        bias_init: Any = None,
        forget_bias_init: Any = None,
    ):
        if out_size is None:
            out_size, in_size = in_size, None
        super().__init__()
        self.state_size = out_size
        self.lateral_init = lateral_init
        self.upward_init = upward_init
        self.bias_init = 0 if bias_init is None else bias_init
        self.forget_bias_init = 1 if forget_bias_init is None else forget_bias_init
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size, initialW=0)
            self.lateral = Linear(out_size, 4 * out_size, initialW=0, nobias=True)
        if in_size is not None:
            self._initialize_params()

    def _initialize_params(self) -> None:
        lateral, upward = get_initializer(self.lateral_init), get_initializer(self.upward_init)
        size = self.state_size
        for i in range(0, 4 * size, size):
            lateral(self.lateral.W.array[i : i + size])
            upward(self.upward.W.array[i : i + size])
        gates = self.upward.b.array.reshape(1, size, 4, 1)
        bias, forget = get_initializer(self.bias_init), get_initializer(self.forget_bias_init)
        for i, fill in enumerate((bias, bias, forget, bias)):
            fill(gates[:, :, i])

    def _prepare(self, x: Any) -> None:
        if self.upward.W.array is None:
            self.upward._initialize_params(int(np.prod(x.shape[1:], dtype=np.int64)))
            self._initialize_params()

    def _step(self, c: Any, h: Any, x: Any) -> Any:
        """Return the next cells and outputs."""
        upward, lateral = self.upward, self.lateral

        def composed() -> Any:
            return F.lstm(c, upward(x) + lateral(h))

        if (
            get_link_hooks()
            or not (_is_plain(upward) and _is_plain(lateral))
            or lateral.b is not None
        ):
            return composed()
        return lstm_step(c, h, x, upward.W, upward.b, lateral.W, composed)


def _is_plain(link: Any) -> bool:
    """Whether calls of a link are those of its function, and nobody looks at them."""
    return type(link) is Linear and not link._local_link_hooks and "forward" not in link.__dict__


class StatelessLSTM(_LSTM):
    """An LSTM that is given its states."""

    def forward(self, c: Any, h: Any, x: Any) -> Any:
        """Return the next cells and outputs; None stands for zeros."""
        self._prepare(x)
        if c is None:
            c = _zeros(x.shape[0], self.state_size, x.dtype)
        if h is not None:
            return self._step(c, h, x)
        return F.lstm(c, self.upward(x))


class LSTM(_LSTM):
    """An LSTM that keeps its states between calls; batches may shrink.

    Attributes:
        c: Its cells, None before the first call.
        h: Its outputs.
    """

    c: Any
    h: Any

    def __init__(
        self,
        in_size: Any,
        out_size: Any = None,
        lateral_init: Any = None,
        upward_init: Any = None,
        bias_init: Any = None,
        forget_bias_init: Any = None,
    ):
        super().__init__(in_size, out_size, lateral_init, upward_init, bias_init, forget_bias_init)
        self.reset_state()

    def set_state(self, c: Variable, h: Variable) -> None:
        """Set the states."""
        assert isinstance(c, Variable), f"c: expected a Variable, got {type(c)}"
        assert isinstance(h, Variable), f"h: expected a Variable, got {type(h)}"
        self.c = c
        self.h = h

    def reset_state(self) -> None:
        """Forget the states."""
        self.c = self.h = None

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_size).

        Raises:
            TypeError: The batch is larger than before.
        """
        self._prepare(x)
        batch = x.shape[0]
        if self.h is not None and self.c is not None and 0 < batch == self.h.shape[0]:
            self.c, self.h = self._step(self.c, self.h, x)
            return self.h
        gates = self.upward(x)
        rest = None
        if self.h is not None:
            before = self.h.shape[0]
            if batch == 0:
                rest = self.h
            elif before < batch:
                raise TypeError(
                    "LSTM: The batch size of x must be equal to or less than the size of the "
                    f"previous state h: {batch} and {before}{at_place()}"
                )
            elif before > batch:
                first, rest = F.split_axis(self.h, [batch], axis=0)
                gates = gates + self.lateral(first)
            else:  # they were set without cells
                gates = gates + self.lateral(self.h)
        if self.c is None:
            self.c = _zeros(batch, self.state_size, x.dtype)
        self.c, y = F.lstm(self.c, gates)
        if rest is None:
            self.h = y
        elif len(y.array) == 0:
            self.h = rest
        else:
            self.h = F.concat([y, rest], axis=0)
        return y


def _four(x: Any) -> Any:
    n, units = x.shape
    found = F.split_axis(F.reshape(x, (n, units // 4, 4)), 4, 2)
    return [F.reshape(one, (n, units // 4)) for one in found]


class StatefulPeepholeLSTM(Chain):
    """An LSTM whose gates see the cells (Gers and Schmidhuber 2000)."""

    c: Any
    h: Any

    def __init__(self, in_size: Any, out_size: int):
        super().__init__()
        self.state_size = out_size
        self.reset_state()
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size)
            self.lateral = Linear(out_size, 4 * out_size, nobias=True)
            self.peep_i = Linear(out_size, out_size, nobias=True)
            self.peep_f = Linear(out_size, out_size, nobias=True)
            self.peep_o = Linear(out_size, out_size, nobias=True)

    def reset_state(self) -> None:
        """Forget the states."""
        self.c = self.h = None

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_size)."""
        gates = self.upward(x)
        if self.h is not None:
            gates = gates + self.lateral(self.h)
        if self.c is None:
            self.c = _zeros(len(x), self.state_size, x.dtype)
        a, i, f, o = _four(gates)
        i = F.sigmoid(i + self.peep_i(self.c))
        f = F.sigmoid(f + self.peep_f(self.c))
        self.c = F.tanh(a) * i + f * self.c
        self.h = F.sigmoid(o + self.peep_o(self.c)) * F.tanh(self.c)
        return self.h


class StatefulZoneoutLSTM(Chain):
    """An LSTM of which states stay as they were at random (Krueger et al. 2016)."""

    c: Any
    h: Any

    def __init__(
        self,
        in_size: Any,
        out_size: int,
        c_ratio: float = 0.5,
        h_ratio: float = 0.5,
        **kwargs: Any,
    ):
        pop_options("StatefulZoneoutLSTM", kwargs)
        super().__init__()
        self.state_size = out_size
        self.c_ratio = c_ratio
        self.h_ratio = h_ratio
        self.reset_state()
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size)
            self.lateral = Linear(out_size, 4 * out_size, nobias=True)

    def set_state(self, c: Variable, h: Variable) -> None:
        """Set the states."""
        assert isinstance(c, Variable), f"c: expected a Variable, got {type(c)}"
        assert isinstance(h, Variable), f"h: expected a Variable, got {type(h)}"
        self.c = c
        self.h = h

    def reset_state(self) -> None:
        """Forget the states."""
        self.c = self.h = None

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_size)."""
        gates = self.upward(x)
        if self.h is not None:
            gates = gates + self.lateral(self.h)
        else:
            self.h = _zeros(len(x), self.state_size, x.dtype)
        if self.c is None:
            self.c = _zeros(len(x), self.state_size, x.dtype)
        a, i, f, o = _four(gates)
        new = F.tanh(a) * F.sigmoid(i) + F.sigmoid(f) * self.c
        self.c = F.zoneout(self.c, new, self.c_ratio)
        self.h = F.zoneout(self.h, F.sigmoid(o) * F.tanh(new), self.h_ratio)
        return self.h


class _GRU(Chain):
    def __init__(
        self,
        in_size: Any,
        out_size: int,
        init: Any = None,
        inner_init: Any = None,
        bias_init: Any = None,
    ):
        super().__init__()
        with self.init_scope():
            for gate in ("_r", "_z", ""):
                setattr(
                    self,
                    f"W{gate}",
                    Linear(in_size, out_size, initialW=init, initial_bias=bias_init),
                )
                setattr(
                    self,
                    f"U{gate}",
                    Linear(out_size, out_size, initialW=inner_init, initial_bias=bias_init),
                )


class StatelessGRU(_GRU):
    """A gated recurrent unit that is given its state (Cho et al. 2014)."""

    def forward(self, h: Any, x: Any) -> Any:
        """Return the next state."""
        r = F.sigmoid(self.W_r(x) + self.U_r(h))
        z = F.sigmoid(self.W_z(x) + self.U_z(h))
        new = F.tanh(self.W(x) + self.U(r * h))
        return F.linear_interpolate(z, new, h)


class StatefulGRU(_GRU):
    """A gated recurrent unit that keeps its state between calls."""

    h: Any

    def __init__(
        self,
        in_size: Any,
        out_size: int,
        init: Any = None,
        inner_init: Any = None,
        bias_init: Any = 0,
    ):
        super().__init__(in_size, out_size, init, inner_init, bias_init)
        self.state_size = out_size
        self.reset_state()

    def set_state(self, h: Variable) -> None:
        """Set the state."""
        assert isinstance(h, Variable), f"h: expected a Variable, got {type(h)}"
        self.h = h

    def reset_state(self) -> None:
        """Forget the state."""
        self.h = None

    def forward(self, x: Any) -> Any:
        """Return the next state."""
        z, new = self.W_z(x), self.W(x)
        if self.h is None:
            self.h = F.sigmoid(z) * F.tanh(new)
            return self.h
        r = F.sigmoid(self.W_r(x) + self.U_r(self.h))
        z = F.sigmoid(z + self.U_z(self.h))
        new = F.tanh(new + self.U(r * self.h))
        self.h = F.linear_interpolate(z, new, self.h)
        return self.h


class GRU(StatefulGRU):
    """``StatefulGRU``, under the name that once was the stateless one's."""

    def forward(self, *args: Any) -> Any:
        """Return the next state.

        Raises:
            ValueError: There is not one argument.
        """
        if len(args) != 1:
            raise ValueError(
                f"Invalid argument. The length of GRU.forward must be 1. But {len(args)} is given. "
                "StatelessGRU takes a state too."
            )
        return super().forward(args[0])


class _MGU(Chain):
    def __init__(self, n_inputs: int, n_units: int):
        super().__init__()
        with self.init_scope():
            self.W_f = Linear(n_inputs + n_units, n_units)
            self.W_h = Linear(n_inputs + n_units, n_units)

    def _next(self, h: Any, x: Any) -> Any:
        f = F.sigmoid(self.W_f(F.concat([h, x])))
        return F.linear_interpolate(f, F.tanh(self.W_h(F.concat([f * h, x]))), h)


class StatelessMGU(_MGU):
    """A minimal gated unit that is given its state (Zhou et al. 2016)."""

    def forward(self, h: Any, x: Any) -> Any:
        """Return the next state."""
        return self._next(h, x)


class StatefulMGU(_MGU):
    """A minimal gated unit that keeps its state between calls."""

    h: Any

    def __init__(self, in_size: int, out_size: int):
        super().__init__(in_size, out_size)
        self._state_size = out_size
        self.reset_state()

    def set_state(self, h: Variable) -> None:
        """Set the state."""
        assert isinstance(h, Variable), f"h: expected a Variable, got {type(h)}"
        self.h = h

    def reset_state(self) -> None:
        """Forget the state."""
        self.h = None

    def forward(self, x: Any) -> Any:
        """Return the next state."""
        h = _zeros(x.shape[0], self._state_size, get_dtype()) if self.h is None else self.h
        self.h = self._next(h, x)
        return self.h


def _tree_input(cs: Sequence[Any], hs: Sequence[Any], x: Any, size: int) -> Any:
    if x is not None:
        return x
    given = [one for one in (*cs, *hs) if one is not None]
    if not given:
        raise ValueError("All inputs (cs, hs, x) are None.")
    return np.zeros((given[0].shape[0], size), given[0].dtype)


def _filled(states: Sequence[Any], shape: tuple[int, int], dtype: Any) -> tuple[Any, ...]:
    return tuple(np.zeros(shape, dtype) if one is None else one for one in states)


class ChildSumTreeLSTM(Chain):
    """A tree LSTM that adds the outputs of any number of children (Tai et al. 2015)."""

    def __init__(self, in_size: int, out_size: int):
        super().__init__()
        with self.init_scope():
            self.W_x = Linear(in_size, 4 * out_size)
            self.W_h_aio = Linear(out_size, 3 * out_size, nobias=True)
            self.W_h_f = Linear(out_size, out_size, nobias=True)
        self.in_size = in_size
        self.state_size = out_size

    def forward(self, *cshsx: Any) -> Any:
        """Return cells and outputs, from the children's cells, then outputs, then the input."""
        assert len(cshsx) % 2 == 1, "expected as many cells as outputs, and an input"
        half = len(cshsx) // 2
        cs, hs, x = cshsx[:half], cshsx[half:-1], cshsx[-1]
        x = _tree_input(cs, hs, x, self.in_size)
        aio, forget = F.split_axis(self.W_x(x), [3 * self.state_size], axis=1)
        if not hs:
            a, i, o = F.split_axis(aio, 3, axis=1)
            c = F.sigmoid(i) * F.tanh(a)
            return c, F.sigmoid(o) * F.tanh(c)
        shape = (x.shape[0], self.state_size)
        hs, cs = _filled(hs, shape, x.dtype), _filled(cs, shape, x.dtype)
        total = hs[0]
        for h in hs[1:]:
            total = total + h
        aio = self.W_h_aio(total) + aio
        forgets = [self.W_h_f(h) + forget for h in hs]
        return F.tree_lstm(*cs, F.concat([aio, *forgets], axis=1))


class NaryTreeLSTM(Chain):
    """A tree LSTM with weights for each of ``n_ary`` children (Tai et al. 2015)."""

    def __init__(self, in_size: int, out_size: int, n_ary: int = 2):
        assert n_ary >= 1, f"n_ary: expected one or more, got {n_ary}"
        super().__init__()
        with self.init_scope():
            self.W_x = Linear(in_size, (3 + n_ary) * out_size)
            for i in range(1, n_ary + 1):
                setattr(self, f"W_h{i}", Linear(out_size, (3 + n_ary) * out_size, nobias=True))
        self.in_size = in_size
        self.state_size = out_size
        self.n_ary = n_ary

    def forward(self, *cshsx: Any) -> Any:
        """Return cells and outputs, from the children's cells, then outputs, then the input."""
        assert len(cshsx) == self.n_ary * 2 + 1, f"expected {self.n_ary * 2 + 1} arguments"
        cs, hs, x = cshsx[: self.n_ary], cshsx[self.n_ary : -1], cshsx[-1]
        x = _tree_input(cs, hs, x, self.in_size)
        gates = self.W_x(x)
        for i, h in enumerate(hs, start=1):
            if h is not None:
                gates = gates + getattr(self, f"W_h{i}")(h)
        cs = _filled(cs, (x.shape[0], self.state_size), x.dtype)
        return F.tree_lstm(*cs, gates)
