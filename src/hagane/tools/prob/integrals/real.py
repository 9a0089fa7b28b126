"""Values of continuous draws: polynomials of them, whose comparisons are decided by a world."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn, Protocol, TypeAlias

from hagane.errors import HaganeError
from hagane.tools.prob.integrals.regions import Linear
from hagane.tools.prob.language.floats import fraction_of

# The draws of a product, ascending, each as often as its power.
Draws: TypeAlias = tuple[int, ...]
Terms: TypeAlias = Mapping[Draws, Fraction]

_MOST_TERMS = 10_000


class NotLinear(HaganeError, TypeError):
    """A comparison, or a division, of products of continuous values."""

    def __init__(self, what: str):
        super().__init__(
            f"{what}: comparisons are decided for sums of continuous values with numbers as "
            "factors; of products there are means alone, as in E[x * x]"
        )


class World(Protocol):
    """Decides comparisons on a run.

    Attributes:
        fault: What a run asked for that there is no answer to: the program may have caught it.
    """

    fault: Exception | None

    def positive(self, form: Linear) -> bool:
        """Return whether a form, which is no constant, is positive on this run."""


class Real:
    """A polynomial of continuous draws of one run.

    Comparisons ask the world of the run, which from then on holds to the answer. Different values
    are equal with probability 0, so ``==`` is true of equal polynomials only.
    """

    __slots__ = ("_hash", "terms", "world")

    def __init__(self, world: World, terms: Terms):
        self.world = world
        self.terms = {draws: value for draws, value in terms.items() if value}
        self._hash: int | None = None
        if len(self.terms) > _MOST_TERMS:
            self._refuse("a polynomial of more than 10,000 terms")

    def _made(self, terms: Terms) -> Any:
        made = Real(self.world, terms)
        return made.terms.get((), Fraction(0)) if not set(made.terms) - {()} else made

    def __add__(self, other: object) -> Any:
        terms = _terms(other)
        if terms is None:
            return NotImplemented
        total = dict(self.terms)
        for draws, value in terms.items():
            total[draws] = total.get(draws, Fraction(0)) + value
        return self._made(total)

    __radd__ = __add__

    def __neg__(self) -> Real:
        return Real(self.world, {draws: -value for draws, value in self.terms.items()})

    def __pos__(self) -> Real:
        return self

    def __sub__(self, other: object) -> Any:
        return NotImplemented if _terms(other) is None else self + -_number(other)

    def __rsub__(self, other: object) -> Any:
        return NotImplemented if _terms(other) is None else -self + other

    def __mul__(self, other: object) -> Any:
        terms = _terms(other)
        if terms is None:
            return NotImplemented
        total: dict[Draws, Fraction] = {}
        for left, value in self.terms.items():
            for right, factor in terms.items():
                key = tuple(sorted((*left, *right)))
                total[key] = total.get(key, Fraction(0)) + value * factor
        return self._made(total)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        if isinstance(other, Real):
            self._refuse("a quotient of two continuous values")
        terms = _terms(other)
        if terms is None:
            return NotImplemented
        if not terms.get((), 0):
            raise ZeroDivisionError("division by zero")
        return self * (1 / terms[()])

    def __rtruediv__(self, other: object) -> Any:
        self._refuse("a quotient by a continuous value")

    def __pow__(self, exponent: int) -> Any:
        if not isinstance(exponent, int) or exponent < 0:
            self._refuse(f"a power of {exponent}")
        whole: Any = Fraction(1)
        for _ in range(exponent):
            whole = self * whole
        return whole

    def __abs__(self) -> Any:
        return self if self > 0 else -self

    def __eq__(self, other: object) -> bool:
        terms = _terms(other)
        return NotImplemented if terms is None else self.terms == terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def _positive(self) -> bool:
        linear = linear_of(self)
        if linear is None:
            self._refuse(f"the sign of {self}")
        return self.world.positive(linear)

    def __lt__(self, other: object) -> bool:
        return _sign(other - self)

    def __le__(self, other: object) -> bool:
        return _sign(other - self, at_zero=True)

    def __gt__(self, other: object) -> bool:
        return _sign(self - other)

    def __ge__(self, other: object) -> bool:
        return _sign(self - other, at_zero=True)

    def __bool__(self) -> bool:
        return True

    def __float__(self) -> float:
        self._refuse("a function of real numbers other than + - * /")

    def _round(self, *_: object) -> NoReturn:
        self._refuse(f"{self} made a whole number")

    __round__ = __floor__ = __ceil__ = __trunc__ = __int__ = __index__ = _round
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _round

    def __rpow__(self, base: object) -> NoReturn:
        self._refuse("a power with a continuous exponent")

    def _refuse(self, what: str) -> NoReturn:
        error = NotLinear(what)
        self.world.fault = error
        raise error

    def __str__(self) -> str:
        parts: list[str] = []
        for draws, value in sorted(self.terms.items(), key=lambda item: (len(item[0]), item[0])):
            product = "*".join(f"x{draw + 1}" for draw in draws)
            size = abs(value)
            amount = str(size) if not product else product if size == 1 else f"{size}*{product}"
            parts.append(("- " if value < 0 else "+ " if parts else "") + amount)
        return " ".join(parts)

    __repr__ = __str__


def _sign(difference: Any, *, at_zero: bool = False) -> bool:
    if isinstance(difference, Real):
        return difference._positive()
    return bool(difference > 0 or (at_zero and difference == 0))


def _number(value: Any) -> Any:
    """Return a value in the numbers that are calculated with here."""
    return fraction_of(value) if isinstance(value, float) else value


def _terms(value: object) -> Terms | None:
    if isinstance(value, Real):
        return value.terms
    if isinstance(value, int | Fraction | float):
        number = Fraction(_number(value))
        return {(): number} if number else {}
    return None


def linear_of(value: Real) -> Linear | None:
    """Return a value as a linear form; None of others."""
    if any(len(draws) > 1 for draws in value.terms):
        return None
    terms = {draws[0]: v for draws, v in value.terms.items() if draws}
    return Linear.of(terms, value.terms.get((), Fraction(0)))


def terms_of(value: Any) -> Terms:
    """Return a number or a value as the polynomial that it is."""
    found = _terms(value)
    assert found is not None
    return found
