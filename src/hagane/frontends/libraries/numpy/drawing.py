"""Random numbers of NumPy: shapes and element types of ``numpy.random``."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from hagane.frontends.libraries.numpy.operands import (
    DOUBLE,
    FLOAT,
    INT64,
    broadcast_shape,
    dtype_of,
    holds_text,
    is_number,
    new,
    shape_of,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Library,
    Real,
    Tensor,
    Value,
)
from hagane.symbolic import Dim

Draw = Callable[..., Value]


def drawn(t: Core, dtype: ir.DataType, shape: Value, *parameters: Value) -> Value:
    """Return random numbers: one if there is neither ``size`` nor an array of parameters."""
    arrays = [to_array(t, p) for p in parameters if not is_number(p) and p is not None]
    common = broadcast_shape(t, *arrays) if arrays else ()
    if shape is not None:
        wanted = tuple(sizes(t, shape))
        if arrays:
            target = [*arrays, new(t, FLOAT, wanted)]
            both = broadcast_shape(t, *target)
            if len(both) != len(wanted):
                t.fail("shape-mismatch", f"the parameters do not broadcast to {wanted}", *arrays)
        return new(t, dtype, wanted)
    if common == () and not arrays:
        return t.emit.fresh("drawn") if dtype.is_integer() else Real()
    return new(t, dtype, common)


def _distribution(count: int, dtype: ir.DataType) -> Draw:
    def function(
        t: Core, *arguments: Value, size: Value = None, dtype: Value = None, **keywords: Value
    ) -> Value:
        parameters = [*arguments[:count], *keywords.values()]
        wanted = arguments[count] if len(arguments) > count else size
        return drawn(t, own if dtype is None else dtype_of(t, dtype, own), wanted, *parameters)

    own = dtype
    return function


def _by_counts(t: Core, *d: Dim) -> Value:
    return drawn(t, DOUBLE, d if d else None)


def _whole(default: ir.DataType) -> Draw:
    def function(
        t: Core, low: Value, high: Value = None, size: Value = None, dtype: Value = None,
        endpoint: Value = False,
    ) -> Value:  # fmt: skip
        return drawn(t, dtype_of(t, dtype, default), size, low, high)

    return function


def _permutation(t: Core, x: Value, axis: Value = 0) -> Value:
    if is_number(x):
        return new(t, INT64, (x,))
    found = to_array(t, x)
    if found.known is None or found.shape != ():
        return typed(t, "Permutation", [found], found.dtype, found.shape)
    return new(t, INT64, tuple(sizes(t, x)))


def _shuffle(t: Core, x: Value, axis: Value = 0) -> Value:
    if isinstance(x, Tensor):
        x.known = None
    return None


def _choice(
    t: Core, a: Value, size: Value = None, replace: Value = True, p: Value = None, axis: Value = 0,
    shuffle: Value = True,
) -> Value:  # fmt: skip
    if is_number(a):
        return drawn(t, INT64, size)
    if holds_text(a):
        return t.outside("a text that is drawn")
    x = to_array(t, a)
    if p is not None:
        chances = to_array(t, p)
        if t.emit.differ(shape_of(t, chances, 1, "p")[0], shape_of(t, x)[0]):
            t.fail("shape-mismatch", f"{t.show(chances)} does not fit {t.show(x)}", chances, x)
    rest = shape_of(t, x)[1:]
    wanted = () if size is None else tuple(sizes(t, size))
    return typed(t, "Choice", [x], x.dtype, (*wanted, *rest))


def _several(t: Core, parameter: Value, shape: Value, dtype: ir.DataType) -> Value:
    x = to_array(t, parameter)
    tail = shape_of(t, x)[-1]
    lead = shape_of(t, x)[:-1] if shape is None else tuple(sizes(t, shape))
    return new(t, dtype, (*lead, tail))


def _dirichlet(t: Core, alpha: Value, size: Value = None) -> Value:
    return _several(t, alpha, size, DOUBLE)


def _multinomial(t: Core, n: Value, pvals: Value, size: Value = None) -> Value:
    return _several(t, pvals, size, INT64)


def _multivariate_normal(t: Core, mean: Value, cov: Value, size: Value = None, **_: Value) -> Value:
    return _several(t, mean, size, DOUBLE)


def _permuted(t: Core, x: Value, axis: Value = None, out: Value = None) -> Value:
    found = to_array(t, x)
    return typed(t, "Permutation", [found], found.dtype, found.shape)


def _nothing(t: Core, *_: Value, **__: Value) -> Value:
    return None


def _state(t: Core, legacy: Value = True) -> Value:
    key = t.emit.new(ir.DataType.UINT32, (624,), kind="numpy.ndarray")
    place, cached = t.emit.fresh("place"), t.emit.fresh("cached")
    return ("MT19937", key, place, cached, Real()) if legacy is True else t.outside("a state")


_DRAWS: dict[str, Draw] = {
    "uniform": _distribution(2, DOUBLE), "normal": _distribution(2, DOUBLE),
    "standard_normal": _distribution(0, DOUBLE), "random": _distribution(0, DOUBLE),
    "exponential": _distribution(1, DOUBLE), "standard_exponential": _distribution(0, DOUBLE),
    "laplace": _distribution(2, DOUBLE), "gumbel": _distribution(2, DOUBLE),
    "logistic": _distribution(2, DOUBLE), "lognormal": _distribution(2, DOUBLE),
    "gamma": _distribution(2, DOUBLE), "beta": _distribution(2, DOUBLE),
    "standard_gamma": _distribution(1, DOUBLE), "chisquare": _distribution(1, DOUBLE),
    "triangular": _distribution(3, DOUBLE), "vonmises": _distribution(2, DOUBLE),
    "binomial": _distribution(2, INT64), "poisson": _distribution(1, INT64),
    "geometric": _distribution(1, INT64), "negative_binomial": _distribution(2, INT64),
    "permutation": _permutation, "shuffle": _shuffle, "choice": _choice,
    "standard_t": _distribution(1, DOUBLE), "standard_cauchy": _distribution(0, DOUBLE),
    "pareto": _distribution(1, DOUBLE), "weibull": _distribution(1, DOUBLE),
    "power": _distribution(1, DOUBLE), "rayleigh": _distribution(1, DOUBLE),
    "wald": _distribution(2, DOUBLE), "f": _distribution(2, DOUBLE),
    "zipf": _distribution(1, INT64), "logseries": _distribution(1, INT64),
    "hypergeometric": _distribution(3, INT64),
    "dirichlet": _dirichlet, "multinomial": _multinomial,
    "multivariate_normal": _multivariate_normal,
}  # fmt: skip
_OLD: dict[str, Draw] = _DRAWS | {
    "randn": _by_counts, "rand": _by_counts, "random_sample": _distribution(0, DOUBLE),
    "ranf": _distribution(0, DOUBLE), "sample": _distribution(0, DOUBLE),
    "randint": _whole(INT64), "random_integers": _whole(INT64), "seed": _nothing,
    "get_state": _state, "set_state": _nothing,
}  # fmt: skip
_NEW: dict[str, Draw] = _DRAWS | {"integers": _whole(INT64), "permuted": _permuted}

for _name, _draw in _OLD.items():
    NUMPY.function(f"random.{_name}")(_draw)


def _generator(name: str, draws: dict[str, Draw]) -> None:
    def init(t: Core, seed: Value = None, *_: Value) -> dict[str, Value]:
        return {}

    def forward(t: Core, self: Value) -> Value:
        t.fail("call", f"numpy.random.{name} cannot be called")

    NUMPY.layer(f"random.{name}")(
        type(name, (), {"init": staticmethod(init), "__call__": staticmethod(forward)})
    )
    for key, draw in draws.items():
        NUMPY.method(key, of=f"numpy.random.{name}")(_as_method(draw))


def _as_method(draw: Draw) -> Draw:
    def method(t: Core, self: Value, *arguments: Value, **keywords: Value) -> Value:
        from hagane.frontends.libraries.table import call_handler

        return call_handler(draw, t.emit.label, t, arguments, keywords)

    return method


_generator("RandomState", _OLD)
_generator("Generator", _NEW)


@NUMPY.method("spawn", of="numpy.random.Generator")
def spawn(t: Core, self: Value, n_children: Value) -> Value:
    """Return several generators."""
    if not isinstance(n_children, int):
        return t.lost("a number of generators that is not known")
    return [default_rng(t) for _ in range(n_children)]


@NUMPY.function("random.PCG64", "random.PCG64DXSM", "random.MT19937", "random.Philox",
                "random.SFC64", "random.SeedSequence")  # fmt: skip
def bits(t: Core, seed: Value = None, *_: Value, **__: Value) -> Value:
    """Return a source of random bits: what generators that use it are."""
    return default_rng(t)


@NUMPY.function("random.default_rng")
def default_rng(t: Core, seed: Value = None) -> Value:
    """Return a generator."""
    return Instance(t.heap.new({}), Library("numpy.random.Generator"))
