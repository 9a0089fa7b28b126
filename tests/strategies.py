"""Hypothesis strategies that all tests share."""

from __future__ import annotations

from hypothesis import strategies as st

from hagane.symbolic import Dim, ceildiv, maximum, minimum, symbol

NAMES = ("batch", "height", "width")

sizes = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})


def _combine(children: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    divisors = st.integers(-7, 7).filter(bool)
    return st.one_of(
        st.tuples(children, children).map(lambda p: p[0] + p[1]),
        st.tuples(children, children).map(lambda p: p[0] - p[1]),
        st.tuples(children, st.integers(-4, 4)).map(lambda p: p[0] * p[1]),
        st.tuples(children, divisors).map(lambda p: p[0] // p[1]),
        st.tuples(children, divisors).map(lambda p: ceildiv(p[0], p[1])),
        st.tuples(children, divisors).map(lambda p: p[0] % p[1]),
        st.tuples(children, children).map(lambda p: minimum(*p)),
        st.tuples(children, children).map(lambda p: maximum(*p)),
    )


dims = st.recursive(
    st.one_of(st.integers(-8, 8), st.sampled_from(NAMES).map(symbol)), _combine, max_leaves=6
)
