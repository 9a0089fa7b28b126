"""Normalization links."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.configuration import config, get_dtype
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.functions.applying import pop_options
from hagane.nn.initializers import generate_array, get_initializer
from hagane.nn.model.link import Link


def _parameter(initial: Any, default: float, dtype: Any) -> Parameter:
    initializer = get_initializer(default if initial is None else initial)
    initializer.dtype = dtype
    return Parameter(initializer)


class BatchNormalization(Link):
    """Normalizes by the moments of a batch, in training, else by their running means.

    Args:
        size: The number of channels, or sizes; None for those of the first input.
        decay: Of the running means.
        eps: Added to variances.
        dtype: The element type of parameters and means.
        use_gamma: Whether it scales.
        use_beta: Whether it moves.
        initial_gamma: Fills the scales; ones if None.
        initial_beta: Fills the offsets; zeros if None.
        axis: The axes that are averaged over, by default all but the second.
        initial_avg_mean: Fills the running mean.
        initial_avg_var: Fills the running variance.
    """

    gamma: Any = None
    beta: Any = None

    def __init__(
        self,
        size: Any = None,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: Any = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Any = None,
        initial_beta: Any = None,
        axis: Any = None,
        initial_avg_mean: Any = None,
        initial_avg_var: Any = None,
    ):
        super().__init__()
        if size is None and axis is None:
            raise RuntimeError("size or axis is required")
        self._initial_avg_mean = initial_avg_mean
        self._initial_avg_var = initial_avg_var
        self.N = 0
        self.register_persistent("N")
        self.decay = decay
        self.eps = eps
        self.axis = (axis,) if isinstance(axis, int) else axis
        self._highprec_dtype = get_dtype(dtype, map_mixed16=np.float32)
        with self.init_scope():
            if use_gamma:
                self.gamma = _parameter(initial_gamma, 1, self._highprec_dtype)
            if use_beta:
                self.beta = _parameter(initial_beta, 0, self._highprec_dtype)
        self.avg_mean: Any = None
        self.avg_var: Any = None
        if size is not None:
            self._initialize_params(size)
        self.register_persistent("avg_mean")
        self.register_persistent("avg_var")

    def _initialize_params(self, shape: Any) -> None:
        self.avg_mean = self._init_array(self._initial_avg_mean, 0, shape)
        self.avg_var = self._init_array(self._initial_avg_var, 1, shape)
        self._initial_avg_mean = self._initial_avg_var = None
        for parameter in (self.gamma, self.beta):
            if parameter is not None:
                parameter.initialize(shape)

    def _init_array(self, initializer: Any, default: float, size: Any) -> Any:
        chosen = get_initializer(default if initializer is None else initializer)
        return generate_array(chosen, size, np, dtype=self._highprec_dtype)

    @property
    def printable_specs(self) -> Any:
        """Sizes and options."""
        size = None if self.avg_mean is None else self.avg_mean.shape[0]
        return iter(
            [
                ("size", size),
                ("decay", self.decay),
                ("eps", self.eps),
                ("dtype", self._highprec_dtype),
                ("use_gamma", hasattr(self, "gamma")),
                ("use_beta", hasattr(self, "beta")),
            ]
        )

    def _scale_and_shift(self) -> tuple[Any, Any]:
        shape, dtype = self.avg_mean.shape, self._highprec_dtype
        gamma = np.ones(shape, dtype) if self.gamma is None else self.gamma
        return gamma, np.zeros(shape, dtype) if self.beta is None else self.beta

    def _next_decay(self, finetune: bool) -> float:
        if not finetune:
            return self.decay
        self.N += 1
        return 1.0 - 1.0 / self.N

    def forward(self, x: Any, **kwargs: Any) -> Any:
        """Return the normalized array.

        Args:
            x: (batch, channels, *sizes).
            kwargs: With ``finetune`` the running means become plain means from
                ``start_finetuning`` on.
        """
        (finetune,) = pop_options(type(self).__name__, kwargs, ("test",), finetune=False)
        if self.avg_mean is None:
            self._initialize_params(tuple(n for i, n in enumerate(x.shape) if i not in self.axis))
        gamma, beta = self._scale_and_shift()
        if not config.train:
            return F.fixed_batch_normalization(
                x, gamma, beta, self.avg_mean, self.avg_var, self.eps, axis=self.axis
            )
        decay = self._next_decay(finetune)
        mean, var = self.avg_mean, self.avg_var
        if config.in_recomputing:
            self.N -= int(finetune)
            mean = var = None
        return F.batch_normalization(
            x,
            gamma,
            beta,
            eps=self.eps,
            running_mean=mean,
            running_var=var,
            decay=decay,
            axis=self.axis,
        )

    def start_finetuning(self) -> None:
        """Begin the running means anew."""
        self.N = 0


class BatchRenormalization(BatchNormalization):
    """Batch normalization corrected towards the running moments (Ioffe 2017)."""

    def __init__(
        self,
        size: Any,
        rmax: float = 1,
        dmax: float = 0,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: Any = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Any = None,
        initial_beta: Any = None,
        initial_avg_mean: Any = None,
        initial_avg_var: Any = None,
    ):
        super().__init__(
            size,
            decay,
            eps,
            dtype,
            use_gamma,
            use_beta,
            initial_gamma,
            initial_beta,
            None,
            initial_avg_mean,
            initial_avg_var,
        )
        self.rmax = rmax
        self.dmax = dmax
        self.r = None
        self.d = None

    _before: Any = None

    def forward(self, x: Any, finetune: bool = False) -> Any:  # type: ignore[override]
        """Return the normalized array."""
        gamma, beta = self._scale_and_shift()
        if not config.train:
            return F.fixed_batch_normalization(
                x, gamma, beta, self.avg_mean, self.avg_var, self.eps
            )
        decay = self._next_decay(finetune)
        mean, var, update = self.avg_mean, self.avg_var, True
        if config.in_recomputing:
            self.N -= int(finetune)
            mean, var, update = self._before[0], self._before[1], False
        elif config._will_recompute:
            self._before = (mean.copy(), var.copy())
        return F.batch_renormalization(
            x,
            gamma,
            beta,
            self.rmax,
            self.dmax,
            self.eps,
            mean,
            var,
            decay,
            update_statistics=update,
        )


class LayerNormalization(Link):
    """Normalizes each sample by its own moments (Ba, Kiros and Hinton 2016)."""

    def __init__(
        self,
        size: Any = None,
        eps: float = 1e-6,
        initial_gamma: Any = None,
        initial_beta: Any = None,
    ):
        super().__init__()
        with self.init_scope():
            self.gamma = Parameter(1 if initial_gamma is None else initial_gamma)
            self.beta = Parameter(0 if initial_beta is None else initial_beta)
        self.eps = eps
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size: int) -> None:
        self.gamma.initialize(size)
        self.beta.initialize(size)

    def forward(self, x: Any) -> Any:
        """Return the normalized array, (batch, features)."""
        if self.gamma.array is None:
            self._initialize_params(int(np.prod(x.shape[1:])))
        return F.layer_normalization(x, self.gamma, self.beta, self.eps)


class GroupNormalization(Link):
    """Normalizes groups of channels of each sample (Wu and He 2018)."""

    def __init__(
        self,
        groups: int,
        size: Any = None,
        eps: float = 1e-5,
        initial_gamma: Any = None,
        initial_beta: Any = None,
    ):
        super().__init__()
        dtype = get_dtype(None, map_mixed16=np.float32)
        with self.init_scope():
            self.gamma = _parameter(initial_gamma, 1, dtype)
            self.beta = _parameter(initial_beta, 0, dtype)
        self.groups = groups
        self.eps = eps
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size: int) -> None:
        self.gamma.initialize(size)
        self.beta.initialize(size)

    def forward(self, x: Any) -> Any:
        """Return the normalized array, (batch, channels, *sizes)."""
        if self.gamma.array is None:
            if x.ndim < 2:
                raise ValueError(
                    "Input dimension must be at least 2, including batch size dimension "
                    "(first dimension)."
                )
            self._initialize_params(x.shape[1])
        return F.group_normalization(x, self.groups, self.gamma, self.beta, self.eps)
