"""Linear links, embeddings, and links made of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.parameter import Parameter as ParameterVariable
from hagane.nn.initializers import Constant, Initializer, Normal, get_initializer
from hagane.nn.model.chain import Chain
from hagane.nn.model.link import Link


def bias_initializer(initial_bias: Any) -> Any:
    """Return the initializer of a bias: zeros where None."""
    return get_initializer(0 if initial_bias is None else initial_bias)


class Linear(Link):
    """``x @ W.T + b``.

    Args:
        in_size: The number of features; None for that of the first input. With one argument, it
            is the number of outputs.
        out_size: The number of outputs.
        nobias: Whether there is no bias.
        initialW: Fills the weight, (out_size, in_size); LeCun's normal one if None.
        initial_bias: Fills the bias, (out_size,); zeros if None.
    """

    def __init__(
        self,
        in_size: Any,
        out_size: Any = None,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ):
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        self.in_size = in_size
        self.out_size = out_size
        with self.init_scope():
            self.W = ParameterVariable(get_initializer(initialW))
            if in_size is not None:
                self._initialize_params(in_size)
            self.b: Any = None
            if not nobias:
                self.b = ParameterVariable(bias_initializer(initial_bias), out_size)

    def _initialize_params(self, in_size: int) -> None:
        self.W.initialize((self.out_size, in_size))

    @property
    def printable_specs(self) -> Any:
        """Sizes."""
        return iter(
            [("in_size", self.in_size), ("out_size", self.out_size), ("nobias", self.b is None)]
        )

    @classmethod
    def from_params(cls, W: Any, b: Any = None, nobias: bool = False) -> Linear:
        """Return a link on given arrays."""
        out_size, in_size = W.shape
        if b is not None and out_size != b.size:
            raise ValueError(f"`out_size` does not match the size of `b`: {out_size} and {b.size}")
        return cls(
            in_size, out_size, nobias or b is None, initialW=_given(W), initial_bias=_given(b)
        )

    def forward(self, x: Any, n_batch_axes: int = 1) -> Any:
        """Return the outputs, (batch, out_size)."""
        if self.W.array is None:
            self._initialize_params(int(np.prod(x.shape[n_batch_axes:], dtype=np.int64)))
        return F.linear(x, self.W, self.b, n_batch_axes=n_batch_axes)


def _given(array: Any) -> Any:
    return None if array is None else Constant(getattr(array, "array", array))


class Bias(Link):
    """Adds a parameter at some axes.

    Args:
        axis: The first of them.
        shape: The parameter's sizes; None takes the bias as second argument.
    """

    def __init__(self, axis: int = 1, shape: Any = None):
        super().__init__()
        if shape is not None:
            with self.init_scope():
                self.b = ParameterVariable(0, shape)
        self.axis = axis

    def forward(self, *xs: Any) -> Any:
        """Return ``x + b``."""
        if hasattr(self, "b"):
            (x,) = _counted(xs, 1, "Bias with a parameter")
            return F.bias(x, self.b, self.axis)
        x, b = _counted(xs, 2, "Bias without a parameter")
        return F.bias(x, b, self.axis)


class Scale(Chain):
    """Multiplies by a parameter at some axes, and may add one.

    Args:
        axis: The first of them.
        W_shape: The parameter's sizes; None takes the factors as second argument.
        bias_term: Whether a bias is added.
        bias_shape: Its sizes, where ``W_shape`` is None.
    """

    def __init__(
        self, axis: int = 1, W_shape: Any = None, bias_term: bool = False, bias_shape: Any = None
    ):
        super().__init__()
        self.axis = axis
        with self.init_scope():
            if W_shape is not None:
                self.W = ParameterVariable(1, W_shape)
                if bias_term:
                    self.bias = Bias(axis, W_shape)
            elif bias_term:
                if bias_shape is None:
                    raise ValueError("bias_shape should be given if W is not learnt parameter.")
                self.bias = Bias(axis, bias_shape)

    def forward(self, *xs: Any) -> Any:
        """Return ``x * W``, with the bias if there is one."""
        if hasattr(self, "W"):
            (x,) = _counted(xs, 1, "Scale with a parameter")
            z = F.scale(x, self.W, self.axis)
        else:
            x, y = _counted(xs, 2, "Scale without a parameter")
            z = F.scale(x, y, self.axis)
        return self.bias(z) if hasattr(self, "bias") else z


def _counted(xs: tuple[Any, ...], count: int, what: str) -> tuple[Any, ...]:
    if len(xs) != count:
        raise AssertionError(f"{what} takes {count} argument(s), got {len(xs)}")
    return xs


class Bilinear(Link):
    """``e1 W e2 + e1 V1 + e2 V2 + b``.

    Args:
        left_size: Features of ``e1``.
        right_size: Features of ``e2``.
        out_size: Outputs.
        nobias: Whether only the first term is there.
        initialW: Fills ``W``.
        initial_bias: Three initializers, of V1, V2 and b.
    """

    def __init__(
        self,
        left_size: Any,
        right_size: Any,
        out_size: int,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ):
        super().__init__()
        self.in_sizes = (left_size, right_size)
        self.nobias = nobias
        self.out_size = out_size
        with self.init_scope():
            shape = None
            if left_size is not None and right_size is not None:
                shape = (left_size, right_size, out_size)
            if isinstance(initialW, np.ndarray):
                assert initialW.shape == shape, f"initialW: expected {shape}, got {initialW.shape}"
            self.W = ParameterVariable(get_initializer(initialW), shape)
            if not nobias:
                if isinstance(initial_bias, tuple):
                    v1, v2, b = initial_bias
                elif initial_bias is None:
                    v1 = v2 = b = None
                else:
                    raise ValueError("initial_bias must be tuple or None")
                if isinstance(b, np.ndarray):
                    assert b.shape == (out_size,), f"b: expected {(out_size,)}, got {b.shape}"
                for name, array, size in (("V1", v1, left_size), ("V2", v2, right_size)):
                    if isinstance(array, np.ndarray):
                        assert array.shape == (size, out_size), f"{name}: {array.shape}"
                self.V1 = ParameterVariable(
                    get_initializer(v1), None if left_size is None else (left_size, out_size)
                )
                self.V2 = ParameterVariable(
                    get_initializer(v2), None if right_size is None else (right_size, out_size)
                )
                self.b = ParameterVariable(get_initializer(0 if b is None else b), out_size)

    def forward(self, e1: Any, e2: Any) -> Any:
        """Return the outputs, (batch, out_size)."""
        if self.W.array is None:
            left, right = (int(np.prod(e.shape[1:], dtype=np.int64)) for e in (e1, e2))
            self.in_sizes = (left, right)
            self.W.initialize((left, right, self.out_size))
            if not self.nobias:
                self.V1.initialize((left, self.out_size))
                self.V2.initialize((right, self.out_size))
        if self.nobias:
            return F.bilinear(e1, e2, self.W)
        return F.bilinear(e1, e2, self.W, self.V1, self.V2, self.b)

    def zero_grads(self) -> None:
        """Set the gradients to zeros."""
        for parameter in self.params():
            parameter.grad = np.zeros_like(parameter.array)


class EmbedID(Link):
    """Rows of a weight by index.

    Args:
        in_size: The number of rows.
        out_size: Their size.
        initialW: Fills the weight; standard normal if None.
        ignore_label: An index that gives zeros.
    """

    # Links that were pickled before there was the argument lack it.
    ignore_label: Any = None

    def __init__(self, in_size: int, out_size: int, initialW: Any = None, ignore_label: Any = None):
        super().__init__()
        self.ignore_label = ignore_label
        with self.init_scope():
            initializer = Normal(1.0) if initialW is None else get_initializer(initialW)
            self.W = ParameterVariable(initializer, (in_size, out_size))

    @classmethod
    def from_params(cls, W: Any, ignore_label: Any = None) -> EmbedID:
        """Return a link on a given array."""
        in_size, out_size = W.shape
        return cls(in_size, out_size, initialW=_given(W), ignore_label=ignore_label)

    def forward(self, x: Any) -> Any:
        """Return the rows at the indices."""
        return F.embed_id(x, self.W, ignore_label=self.ignore_label)


class Highway(Chain):
    """A layer that lets a share of its input pass (Srivastava et al. 2015)."""

    def __init__(
        self,
        in_out_size: int,
        nobias: bool = False,
        activate: Any = F.relu,
        init_Wh: Any = None,
        init_Wt: Any = None,
        init_bh: Any = None,
        init_bt: Any = -1,
    ):
        super().__init__()
        self.activate = activate
        with self.init_scope():
            self.plain = Linear(in_out_size, in_out_size, nobias, init_Wh, init_bh)
            self.transform = Linear(in_out_size, in_out_size, nobias, init_Wt, init_bt)

    def forward(self, x: Any) -> Any:
        """Return the outputs, of the sizes of the inputs."""
        out = self.activate(self.plain(x))
        share = F.sigmoid(self.transform(x))
        return out * share + x * (1 - share)


class Maxout(Chain):
    """The largest of each ``pool_size`` outputs of a linear link."""

    def __init__(
        self,
        in_size: Any,
        out_size: int,
        pool_size: int,
        initialW: Any = None,
        initial_bias: Any = 0,
    ):
        super().__init__()
        rows = out_size * pool_size
        if isinstance(initialW, np.ndarray) and initialW.ndim != 3:
            raise ValueError(f"initialW: expected three axes, got shape {initialW.shape}")
        if isinstance(initial_bias, np.ndarray) and initial_bias.ndim != 2:
            raise ValueError(f"initial_bias: expected two axes, got {initial_bias.shape}")
        initialW = _by_pools(initialW, out_size, pool_size)
        initial_bias = _by_pools(initial_bias, out_size, pool_size)
        self.out_size = out_size
        self.pool_size = pool_size
        with self.init_scope():
            self.linear = Linear(
                in_size,
                rows,
                nobias=initial_bias is None,
                initialW=initialW,
                initial_bias=initial_bias,
            )

    def forward(self, x: Any) -> Any:
        """Return the outputs, (batch, out_size)."""
        return F.maxout(self.linear(x), self.pool_size)


def _by_pools(initializer: Any, outputs: int, pools: int) -> Any:
    """Return an initializer of rows made from one whose first two axes are outputs and pools."""
    if isinstance(initializer, np.ndarray):
        return initializer.reshape(outputs * pools, *initializer.shape[2:])
    if not callable(initializer) or isinstance(initializer, Initializer):
        return initializer
    return lambda rows: initializer(rows.reshape(outputs, pools, *rows.shape[1:]))


class SimplifiedDropconnect(Link):
    """A linear link whose weights are dropped at random in training."""

    def __init__(
        self,
        in_size: Any,
        out_size: int,
        ratio: float = 0.5,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ):
        super().__init__()
        self.out_size = out_size
        if not 0.0 <= ratio < 1.0:
            raise ValueError("ratio must be in the range [0, 1)")
        self.ratio = ratio
        with self.init_scope():
            self.W = ParameterVariable(get_initializer(initialW))
            if in_size is not None:
                self._initialize_params(in_size)
            self.b = None if nobias else ParameterVariable(bias_initializer(initial_bias), out_size)

    def _initialize_params(self, in_size: int) -> None:
        self.W.initialize((self.out_size, in_size))

    def forward(
        self, x: Any, train: bool = True, mask: Any = None, use_batchwise_mask: bool = True
    ) -> Any:
        """Return the outputs, (batch, out_size)."""
        if self.W.array is None:
            self._initialize_params(x.size // len(x.array if hasattr(x, "array") else x))
        if mask is not None and hasattr(mask, "array"):
            mask = mask.array
        return F.simplified_dropconnect(
            x, self.W, self.b, self.ratio, train, mask, use_batchwise_mask
        )


class Parameter(Link):
    """A parameter as a link."""

    def __init__(self, array: Any):
        super().__init__()
        self.add_param("W", array.shape, dtype=array.dtype)
        self.W.array = array
        self.W.grad = np.full_like(array, np.nan)

    def forward(self) -> Any:
        """Return the parameter."""
        return self.W


class PReLU(Link):
    """A rectifier with learned slopes."""

    def __init__(self, shape: Any = (), init: Any = 0.25):
        super().__init__()
        with self.init_scope():
            self.W = ParameterVariable(get_initializer(init), shape)

    def forward(self, x: Any) -> Any:
        """Return the outputs."""
        return F.prelu(x, self.W)


class Swish(Link):
    """``x * sigmoid(beta * x)`` with a learned ``beta``."""

    def __init__(self, beta_shape: Any, beta_init: Any = 1.0):
        super().__init__()
        with self.init_scope():
            if beta_shape is not None:
                self.beta = ParameterVariable(beta_init, beta_shape)
            else:
                self.beta = ParameterVariable(beta_init)

    def forward(self, x: Any) -> Any:
        """Return the outputs."""
        if self.beta.array is None:
            self.beta.initialize(x.shape[1:])
        return F.swish(x, self.beta)


class TheanoFunction(Link):
    """Refused: Theano is not maintained.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, inputs: Any, outputs: Any):
        raise NotImplementedError(
            "TheanoFunction: hagane runs no Theano graphs; write the function as a FunctionNode"
        )


class CaffeFunction(Link):
    """Refuses models of Caffe by name.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, model_path: Any):
        raise NotImplementedError(
            f"CaffeFunction: hagane reads no models of Caffe, as {model_path!r}; convert it to "
            "ONNX elsewhere, and use hagane.load"
        )
