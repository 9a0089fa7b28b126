"""Links of Chainer that keep a state, or need one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hagane.frontends.libraries.chainer.arithmetic import binary
from hagane.frontends.libraries.chainer.links import layer
from hagane.frontends.libraries.chainer.operands import (
    computed,
    computed_parts,
    floating,
    same_shape,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.recurrent import lstm
from hagane.frontends.libraries.chainer.table import VARIABLE
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise
from hagane.ops.functions.tensors.parts import parts
from hagane.symbolic import Dim, floordiv


def _linear(t: Core, *arguments: Value, **keywords: Value) -> Value:
    return t.call_library("chainer.links.Linear", list(arguments), keywords)


def _state(t: Core, x: Tensor, batch: Dim, size: Dim) -> Tensor:
    """Return a state of zeros (batch, size) in the element type of a variable."""
    zero = np.zeros(1, x.dtype.numpy())
    run = lambda: op("ConstantOfShape", [batch, size], value=zero)  # noqa: E731
    found = computed(t, (x.dtype, (batch, size)), run)
    return found.seen_as(VARIABLE)


def _call(t: Core, name: str, *arguments: Value, **keywords: Value) -> Tensor:
    """Return the result of a function of Chainer."""
    return t.call_library(f"chainer.functions.{name}", list(arguments), keywords)


def _split(t: Core, x: Tensor, where: Value) -> Sequence[Tensor]:
    """Return the parts of a variable along axis 1."""
    found: Sequence[Tensor] = t.call_library("chainer.functions.split_axis", [x, where, 1])
    return found


def _gates(t: Core, x: Tensor) -> list[Tensor]:
    """Return the four gates that lie interleaved along axis 1."""
    batch, width = shape_of(t, x)
    promised = [(x.dtype, (batch, floordiv(width, 4)))] * 4
    return computed_parts(t, promised, lambda x: elementwise.gates(x, 4), x)


def _batch(t: Core, h: Value, x: Tensor) -> Dim:
    """Return the batch size, which may be at most that of the state before."""
    batch = shape_of(t, x)[0]
    if h is None:
        return batch
    before = shape_of(t, variable(t, h, "h"))[0]
    if not t.emit.holds(t.knowledge.less(batch, before, strict=False), f"{batch} <= {before}"):
        t.fail(
            "shape-mismatch",
            f"the batch of {t.show(x)} is larger than that of the state before, {before}",
            x,
        )
    return batch


class _Stateful:
    """A link that keeps cells and outputs from call to call."""

    @staticmethod
    def reset_state(t: Core, self: View) -> Value:
        """Forget the state."""
        self.c = self.h = None
        return None

    @staticmethod
    def set_state(t: Core, self: View, c: Value, h: Value) -> Value:
        """Replace the state."""
        self.c, self.h = variable(t, c, "c"), variable(t, h, "h")
        return None


@layer("LSTM")
class LSTM:
    """A cell that keeps its state from call to call."""

    @staticmethod
    def init(
        t: Core, in_size: Value, out_size: Value = None, *_: Value, **__: Value
    ) -> dict[str, Value]:
        """Return the attributes."""
        if out_size is None:
            in_size, out_size = None, in_size
        return {
            "state_size": out_size, "h": None, "c": None,
            "upward": _linear(t, in_size, 4 * out_size),
            "lateral": _linear(t, out_size, 4 * out_size, nobias=True),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Return the output (batch, units); a smaller batch leaves the rest of the state."""
        found = floating(t, x)
        batch = _batch(t, self.h, found)
        gates = t.call(self.upward, [found], {})
        rest = None
        if self.h is not None:
            h, units = self.h, self.state_size
            if t.emit.differ(shape_of(t, h)[0], batch):
                others = shape_of(t, h)[0] - batch
                promised = [(h.dtype, (batch, units)), (h.dtype, (others, units))]
                h, rest = computed_parts(t, promised, parts, h, 0, [batch, others])
            gates = _call(t, "add", gates, t.call(self.lateral, [h], {}))
        cell = _state(t, gates, batch, self.state_size) if self.c is None else self.c
        self.c, y = lstm(t, cell, gates)
        self.h = y if rest is None else _call(t, "concat", [y, rest], axis=0)
        return y

    reset_state = _Stateful.reset_state
    set_state = _Stateful.set_state


@layer("StatefulPeepholeLSTM")
class StatefulPeepholeLSTM:
    """A cell whose gates see its state (Gers et al., 2002)."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value) -> dict[str, Value]:
        """Return the attributes."""
        peep = {f"peep_{gate}": _linear(t, out_size, out_size, nobias=True) for gate in "ifo"}
        return {**LSTM.init(t, in_size, out_size), **peep}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Return the output (batch, units)."""
        found = floating(t, x)
        gates = t.call(self.upward, [found], {})
        if self.h is not None:
            gates = _call(t, "add", gates, t.call(self.lateral, [self.h], {}))
        batch = shape_of(t, found)[0]
        cell = _state(t, gates, batch, self.state_size) if self.c is None else self.c
        a, i, f, o = _gates(t, gates)

        def gate(own: Tensor, peep: Value, state: Tensor) -> Tensor:
            return _call(t, "sigmoid", _call(t, "add", own, t.call(peep, [state], {})))

        new = binary(t, "mul", _call(t, "tanh", a), gate(i, self.peep_i, cell))
        self.c = _call(t, "add", new, binary(t, "mul", gate(f, self.peep_f, cell), cell))
        shown = gate(o, self.peep_o, self.c)
        self.h = binary(t, "mul", shown, _call(t, "tanh", self.c))
        return self.h

    reset_state = _Stateful.reset_state
    set_state = _Stateful.set_state


@layer("StatefulZoneoutLSTM")
class StatefulZoneoutLSTM:
    """A cell of which parts keep their state (Krueger et al., 2016)."""

    @staticmethod
    def init(
        t: Core, in_size: Value, out_size: Value, c_ratio: Value = 0.5, h_ratio: Value = 0.5
    ) -> dict[str, Value]:
        """Return the attributes."""
        return {**LSTM.init(t, in_size, out_size), "c_ratio": c_ratio, "h_ratio": h_ratio}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Return the output (batch, units)."""
        found = floating(t, x)
        gates = t.call(self.upward, [found], {})
        batch, size = shape_of(t, found)[0], self.state_size
        if self.h is None:
            self.h = _state(t, gates, batch, size)
        else:
            gates = _call(t, "add", gates, t.call(self.lateral, [self.h], {}))
        if self.c is None:
            self.c = _state(t, gates, batch, size)
        new, y = lstm(t, self.c, gates)
        self.c = _call(t, "zoneout", self.c, new, self.c_ratio)
        self.h = _call(t, "zoneout", self.h, y, self.h_ratio)
        return self.h

    reset_state = _Stateful.reset_state
    set_state = _Stateful.set_state


@layer("StatelessLSTM")
class StatelessLSTM:
    """A cell whose state comes in and goes out."""

    @staticmethod
    def init(
        t: Core, in_size: Value, out_size: Value = None, *_: Value, **__: Value
    ) -> dict[str, Value]:
        """Return the attributes."""
        return LSTM.init(t, in_size, out_size)

    @staticmethod
    def forward(t: Core, self: View, c: Value, h: Value, x: Value) -> Value:
        """Return the next cell and output (batch, units)."""
        found = floating(t, x)
        gates = t.call(self.upward, [found], {})
        if h is not None:
            gates = _call(t, "add", gates, t.call(self.lateral, [h], {}))
        cell = c
        if c is None:
            cell = _state(t, gates, shape_of(t, found)[0], self.state_size)
        return lstm(t, cell, gates)


def _cell(t: Core, self: View, h: Value, x: Value) -> Tensor:
    """Return the next state of a gated recurrent unit (Cho et al., 2014)."""

    def of(name: str, value: Value) -> Tensor:
        return t.call(getattr(self, name), [value], {})

    z, y = of("W_z", x), of("W", x)
    r = of("W_r", x)
    if h is None:
        return binary(t, "mul", _call(t, "sigmoid", z), _call(t, "tanh", y))
    inner = of("U_r", h)
    same_shape(t, y, inner, "the input's and the state's part")
    reset = _call(t, "sigmoid", _call(t, "add", r, inner))
    update = _call(t, "sigmoid", _call(t, "add", z, of("U_z", h)))
    kept = of("U", binary(t, "mul", reset, h))
    new = _call(t, "tanh", _call(t, "add", y, kept))
    return _call(t, "linear_interpolate", update, new, h)


def _minimal(t: Core, self: View, h: Value, x: Value) -> Tensor:
    """Return the next state of a minimal gated unit (Zhou et al., 2016)."""
    found = floating(t, x)
    if h is None:
        h = _state(t, found, shape_of(t, found)[0], self.get("_state_size", None))
    forget = _call(t, "sigmoid", t.call(self.W_f, [_call(t, "concat", [h, found])], {}))
    joined = _call(t, "concat", [binary(t, "mul", forget, h), found])
    new = _call(t, "tanh", t.call(self.W_h, [joined], {}))
    return _call(t, "linear_interpolate", forget, new, h)


def _unit(name: str, run: Callable[..., Tensor], *, stateful: bool) -> None:
    def init(
        t: Core, in_size: Value, out_size: Value = None, *_: Value, **__: Value
    ) -> dict[str, Value]:
        found = {"state_size": out_size, "_state_size": out_size, "h": None}
        if run is _minimal:
            found |= {gate: _linear(t, in_size + out_size, out_size) for gate in ("W_f", "W_h")}
            return found
        for gate in ("W_r", "W_z", "W"):
            found[gate] = _linear(t, in_size, out_size)
        for gate in ("U_r", "U_z", "U"):
            found[gate] = _linear(t, out_size, out_size)
        return found

    def forward_stateful(t: Core, self: View, x: Value) -> Value:
        self.h = run(t, self, self.h, x)
        return self.h

    def forward(t: Core, self: View, h: Value, x: Value) -> Value:
        return run(t, self, h, x)

    def reset_state(t: Core, self: View) -> Value:
        self.h = None
        return None

    def set_state(t: Core, self: View, h: Value) -> Value:
        self.h = variable(t, h, "h")
        return None

    functions = {
        "init": staticmethod(init),
        "forward": staticmethod(forward_stateful if stateful else forward),
    }
    if stateful:
        functions |= {
            "reset_state": staticmethod(reset_state), "set_state": staticmethod(set_state),
        }  # fmt: skip
    layer(name)(type(name, (), functions))


_unit("StatelessGRU", _cell, stateful=False)
_unit("StatelessMGU", _minimal, stateful=False)
_unit("StatefulMGU", _minimal, stateful=True)
_unit("StatefulGRU", _cell, stateful=True)
_unit("GRU", _cell, stateful=True)


def _children(
    t: Core, self: View, given: Sequence[Value]
) -> tuple[list[Tensor | None], list[Tensor | None], Tensor]:
    """Return the cells and outputs of children, and the input; zeros where that is None."""
    half = len(given) // 2
    cells, outputs, x = list(given[:half]), list(given[half:-1]), given[-1]
    states = [floating(t, one, "state") for one in (*cells, *outputs) if one is not None]
    if x is None:
        if not states:
            t.fail("value", "ValueError: all of cs, hs and x are None")
        x = _state(t, states[0], shape_of(t, states[0])[0], self.in_size)
    found = floating(t, x)
    for state in states:
        expected = (shape_of(t, found)[0], self.state_size)
        own = shape_of(t, state)
        if len(own) != 2 or any(map(t.emit.differ, own, expected)):
            t.fail(
                "shape-mismatch", f"the states {t.show(state)} do not fit {t.show(found)}", state
            )
    return cells, outputs, found


def _zeros_for(t: Core, self: View, x: Tensor, states: Sequence[Value]) -> list[Tensor]:
    batch = shape_of(t, x)[0]
    return [_state(t, x, batch, self.state_size) if one is None else one for one in states]


@layer("ChildSumTreeLSTM")
class ChildSumTreeLSTM:
    """A tree LSTM over the sum of any number of children (Tai et al., 2015)."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {
            "in_size": in_size, "state_size": out_size, "W_x": _linear(t, in_size, 4 * out_size),
            "W_h_aio": _linear(t, out_size, 3 * out_size, nobias=True),
            "W_h_f": _linear(t, out_size, out_size, nobias=True),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, *cshsx: Value) -> Value:
        """Return cell and output, from the children's cells, their outputs, and the input."""
        cells, outputs, x = _children(t, self, cshsx)
        gates = t.call(self.W_x, [x], {})
        aio, forget = _split(t, gates, [3 * self.state_size])
        if not outputs:
            a, i, o = _split(t, aio, 3)
            cell = binary(t, "mul", _call(t, "sigmoid", i), _call(t, "tanh", a))
            return (cell, binary(t, "mul", _call(t, "sigmoid", o), _call(t, "tanh", cell)))
        hs, cs = _zeros_for(t, self, x, outputs), _zeros_for(t, self, x, cells)
        total = hs[0]
        for h in hs[1:]:
            total = _call(t, "add", total, h)
        joined = _call(t, "add", t.call(self.W_h_aio, [total], {}), aio)
        forgets = [_call(t, "add", t.call(self.W_h_f, [h], {}), forget) for h in hs]
        return _call(t, "tree_lstm", *cs, _call(t, "concat", [joined, *forgets], axis=1))


@layer("NaryTreeLSTM")
class NaryTreeLSTM:
    """A tree LSTM with weights for each child (Tai et al., 2015)."""

    @staticmethod
    def init(t: Core, in_size: Value, out_size: Value, n_ary: Value = 2) -> dict[str, Value]:
        """Return the attributes."""
        width = (3 + n_ary) * out_size
        inner = {f"W_h{i}": _linear(t, out_size, width, nobias=True) for i in range(1, n_ary + 1)}
        return {
            "in_size": in_size, "state_size": out_size, "n_ary": n_ary,
            "W_x": _linear(t, in_size, width), **inner,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, *cshsx: Value) -> Value:
        """Return cell and output, from the children's cells, their outputs, and the input."""
        if len(cshsx) != 2 * self.n_ary + 1:
            t.fail("call", f"expected {2 * self.n_ary + 1} arguments, got {len(cshsx)}")
        cells, outputs, x = _children(t, self, cshsx)
        gates = t.call(self.W_x, [x], {})
        for number, h in enumerate(outputs, 1):
            if h is not None:
                own = t.call(getattr(self, f"W_h{number}"), [h], {})
                gates = _call(t, "add", gates, own)
        return _call(t, "tree_lstm", *_zeros_for(t, self, x, cells), gates)
