"""Functions inside of Chainer's files that its tests call, each by one of hagane.

Chainer's tests reach some of its functions by private names. Where hagane computes the same, the
test holds for it as well; ``chainer_suite.py`` puts it under Chainer's name.
"""

from __future__ import annotations

import importlib
import types
from typing import Any


def _bernoulli_log_prob(logit: Any, x: Any) -> Any:
    from hagane.distributions import Bernoulli

    return Bernoulli(logit=logit).log_prob(x)


def _laplace(x: Any) -> Any:
    import numpy as np

    from hagane.distributions import Laplace

    return Laplace(np.zeros((), x.dtype), np.ones((), x.dtype))


def _laplace_cdf(x: Any) -> Any:
    return _laplace(x).cdf(x)


def _laplace_icdf(x: Any) -> Any:
    return _laplace(x).icdf(x)


def _triangular_inv(x: Any, lower: bool = True) -> Any:
    import numpy as np

    from hagane import functions
    from hagane.distributions import MultivariateNormal

    if not lower:
        return functions.transpose(_triangular_inv(functions.transpose(x)))
    return MultivariateNormal(np.zeros(len(x), x.dtype), scale_tril=x).inverse_scale()[0]


def _modified_xlogx(x: Any) -> Any:
    from hagane.nn.distributions.distribution import x_log_x

    return x_log_x(x)


def _flip(x: Any, axis: int) -> Any:
    from hagane import functions

    return functions.flip(x, axis).array


def _stride_array(array: Any, shape: Any, strides: Any, storage_offset: Any) -> Any:
    """Return a view of the memory behind an array, by strides in elements."""
    import numpy as np

    from hagane.nn.functions.strides import memory_of

    memory, _ = memory_of(array)
    size = memory.itemsize
    steps = [step * size for step in strides]
    return np.ndarray(shape, memory.dtype, memory, storage_offset * size, steps)


INTERNALS = {
    "distributions.bernoulli": (_bernoulli_log_prob,),
    "distributions.laplace": (_laplace_cdf, _laplace_icdf),
    "distributions.multivariate_normal": (_triangular_inv,),
    "distributions.utils": (_modified_xlogx,),
    "functions.array.as_strided": (_stride_array,),
    "functions.array.flip": (_flip,),
}


def install() -> None:
    """Put them in the files of Chainer."""
    import chainer  # hagane, under that name

    # A file whose classes a test of labels makes; the tests of arithmetic beside it need no more.
    chainer.basic_math = types.ModuleType("chainer.basic_math")
    for name, functions in INTERNALS.items():
        module = importlib.import_module(f"chainer.{name}")
        for function in functions:
            setattr(module, function.__name__, function)
