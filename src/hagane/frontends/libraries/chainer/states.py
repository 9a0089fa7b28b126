"""Links of Chainer that normalise, keep a state, or need one."""

from __future__ import annotations

from hagane.frontends.libraries.chainer import normalising
from hagane.frontends.libraries.chainer.links import layer
from hagane.frontends.libraries.chainer.operands import (
    FLOAT,
    axes,
    dtype_of,
    floating,
    is_lazy,
    lazy_parameter,
    made,
    same_shape,
    shape_of,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.chainer.recurrent import lstm
from hagane.frontends.libraries.numpy.operands import new
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import Dim, product


@layer("BatchNormalization", "BatchRenormalization")
class BatchNormalization:
    """Normalises by the statistics of the batch, or by those kept."""

    @staticmethod
    def init(
        t: Core,
        size: Value = None,
        decay: Value = 0.9,
        eps: Value = 2e-5,
        dtype: Value = None,
        use_gamma: Value = True,
        use_beta: Value = True,
        initial_gamma: Value = None,
        initial_beta: Value = None,
        axis: Value = None,
        initial_avg_mean: Value = None,
        initial_avg_var: Value = None,
    ) -> dict[str, Value]:
        """Return the attributes."""
        if size is None and axis is None:
            t.fail("value", "RuntimeError: size or axis is required")
        found = {"axis": axis, "decay": decay, "eps": eps, "N": 0, "use_gamma": bool(use_gamma),
                 "use_beta": bool(use_beta), "dtype": dtype}  # fmt: skip
        shape = None if size is None else sizes(t, size)
        return {**found, **BatchNormalization.parameters(t, found, shape)}

    @staticmethod
    def parameters(t: Core, found: dict[str, Value], shape: list[Dim] | None) -> dict[str, Value]:
        """Return the parameters and statistics for a shape."""
        dtype = dtype_of(t, found["dtype"], FLOAT)
        made_: dict[str, Value] = {}
        for name, used in (("gamma", "use_gamma"), ("beta", "use_beta")):
            fresh = lazy_parameter(t) if shape is None else weight(t, *shape, dtype=dtype)
            made_[name] = fresh if found[used] else None
        for name in ("avg_mean", "avg_var"):
            made_[name] = None if shape is None else new(t, dtype, shape)
        return made_

    @staticmethod
    def forward(t: Core, self: View, x: Value, finetune: Value = False, **_: Value) -> Value:
        """Apply the layer."""
        found = variable(t, x)
        if self.avg_mean is None:
            gone = axes(t, self.axis, len(shape_of(t, found)), found)
            rest = [n for i, n in enumerate(shape_of(t, found)) if i not in gone]
            names = {k: getattr(self, k) for k in ("use_gamma", "use_beta", "dtype")}
            for name, value in BatchNormalization.parameters(t, names, rest).items():
                setattr(self, name, value)
        scale = variable(t, self.avg_mean, "avg_mean")
        return normalising.normalised(t, found, scale, scale, self.axis)


@layer("DecorrelatedBatchNormalization")
class DecorrelatedBatchNormalization:
    """Whitens the batch."""

    @staticmethod
    def init(t: Core, size: Value, groups: Value = 16, *_: Value, **__: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"size": size, "groups": groups}

    @staticmethod
    def forward(t: Core, self: View, x: Value, **_: Value) -> Value:
        """Apply the layer."""
        return normalising.decorrelated(t, x)


@layer("LayerNormalization")
class LayerNormalization:
    """Normalises each sample of (batch, features)."""

    @staticmethod
    def init(t: Core, size: Value = None, eps: Value = 1e-6, initial_gamma: Value = None,
             initial_beta: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        pair = [lazy_parameter(t) if size is None else weight(t, size) for _ in range(2)]
        return {"eps": eps, "gamma": pair[0], "beta": pair[1]}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        if is_lazy(self.gamma):
            count = product(shape_of(t, variable(t, x))[1:])
            self.gamma, self.beta = weight(t, count), weight(t, count)
        return normalising.layer_normalization(t, x, self.gamma, self.beta)


@layer("GroupNormalization")
class GroupNormalization:
    """Normalises over groups of channels."""

    @staticmethod
    def init(
        t: Core, groups: Value, size: Value = None, *_: Value, **__: Value
    ) -> dict[str, Value]:
        """Return the attributes."""
        pair = [lazy_parameter(t) if size is None else weight(t, size) for _ in range(2)]
        return {"groups": groups, "gamma": pair[0], "beta": pair[1]}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        shape = shape_of(t, variable(t, x))
        if is_lazy(self.gamma) and len(shape) > 1:
            self.gamma, self.beta = weight(t, shape[1]), weight(t, shape[1])
        return normalising.group_normalization(t, x, self.groups, self.gamma, self.beta)


def _linear(t: Core, *arguments: Value, **keywords: Value) -> Value:
    return t.call_library("chainer.links.Linear", list(arguments), keywords)


def _state(t: Core, x: Tensor, batch: Dim, size: Dim) -> Tensor:
    return made(t, "Zeros", [x], x.dtype, (batch, size))


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


@layer("LSTM", "StatefulPeepholeLSTM", "StatefulZoneoutLSTM")
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
        cell = _state(t, gates, batch, self.state_size) if self.c is None else self.c
        self.c, y = lstm(t, cell, gates)
        if self.h is None or not t.emit.differ(shape_of(t, self.h)[0], batch):
            self.h = y
        return y

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
            gates = t.call_library("chainer.functions.add", [gates, t.call(self.lateral, [h], {})])
        cell = c
        if c is None:
            cell = _state(t, gates, shape_of(t, found)[0], self.state_size)
        return lstm(t, cell, gates)


def _gru(name: str, *, stateful: bool) -> None:
    def init(
        t: Core, in_size: Value, out_size: Value = None, *_: Value, **__: Value
    ) -> dict[str, Value]:
        found = {"state_size": out_size, "h": None}
        for gate in ("W_r", "W_z", "W"):
            found[gate] = _linear(t, in_size, out_size)
        for gate in ("U_r", "U_z", "U"):
            found[gate] = _linear(t, out_size, out_size)
        return found

    def step(t: Core, self: View, h: Value, x: Value) -> Value:
        y = t.call(self.W, [x], {})
        t.call(self.W_r, [x], {})
        t.call(self.W_z, [x], {})
        if h is not None:
            inner = t.call(self.U, [h], {})
            same_shape(t, y, inner, "the input's and the state's part")
        return y

    def forward_stateful(t: Core, self: View, x: Value) -> Value:
        self.h = step(t, self, self.h, x)
        return self.h

    def forward(t: Core, self: View, h: Value, x: Value) -> Value:
        return step(t, self, h, x)

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


_gru("StatelessGRU", stateful=False)
_gru("StatelessMGU", stateful=False)
_gru("StatefulMGU", stateful=True)
_gru("StatefulGRU", stateful=True)
_gru("GRU", stateful=True)


def _tree(name: str) -> None:
    def init(t: Core, in_size: Value, out_size: Value, n_ary: Value = 2) -> dict[str, Value]:
        return {"state_size": out_size, "W_x": _linear(t, in_size, 4 * out_size)}

    def forward(t: Core, self: View, *cshsx: Value) -> Value:
        x = floating(t, cshsx[-1])
        t.call(self.W_x, [x], {})
        for state in cshsx[:-1]:
            if state is not None:
                expected = _state(t, x, shape_of(t, x)[0], self.state_size)
                same_shape(t, expected, floating(t, state, "state"), "the states")
        y = _state(t, x, shape_of(t, x)[0], self.state_size)
        return (y, y)

    layer(name)(type(name, (), {"init": staticmethod(init), "forward": staticmethod(forward)}))


_tree("ChildSumTreeLSTM")
_tree("NaryTreeLSTM")
