"""Quantities as Kubernetes writes them: ``100m``, ``1.5Gi``, ``2e3``.

Source: ``k8s.io/apimachinery/pkg/api/resource``, the grammar at type ``Quantity``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from hagane.tools.cluster.errors import InvalidManifest

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_GRAMMAR = re.compile(
    r"([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+|[numkMGTPE]|)", re.ASCII
)
# Kubernetes counts resources in signed 64-bit integers.
_LARGEST = 2**63 - 1


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity.

    Raises:
        InvalidManifest: if the text does not follow the grammar.
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise InvalidManifest(
            f"quantity {text!r} is malformed: expected a number with one of the suffixes "
            "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent, like '100m' or '2Gi'"
        )
    sign, digits, suffix = found.groups()
    value = Fraction(digits if not digits.endswith(".") else digits[:-1])
    if suffix in _BINARY:
        value *= 1024 ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        value *= Fraction(1000) ** _DECIMAL[suffix]
    else:
        exponent = int(suffix[1:])
        if abs(exponent) > 30:
            raise InvalidManifest(f"quantity {text!r} is out of range: the exponent exceeds 30")
        value *= Fraction(10) ** exponent
    return -value if sign == "-" else value


def amount(resource: str, quantity: object) -> int:
    """Return how the scheduler counts a quantity: CPU in thousandths, all else in units.

    Both round up, as ``MilliValue`` and ``Value`` do.

    Raises:
        InvalidManifest: if the quantity is malformed, negative or beyond 64 bits.
    """
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        raise InvalidManifest(
            f"quantity of {resource!r}: expected a string or a number, got {quantity!r}"
        )
    value = parse_quantity(quantity if isinstance(quantity, str) else repr(quantity))
    if value < 0:
        raise InvalidManifest(
            f"quantity {quantity!r} of {resource!r} is negative: must be at least 0"
        )
    if resource == "cpu":
        value *= 1000
    whole = -(-value.numerator // value.denominator)
    if whole > _LARGEST:
        raise InvalidManifest(f"quantity {quantity!r} of {resource!r} exceeds 64 bits")
    return whole


def format_amount(resource: str, value: int) -> str:
    """Return a counted amount as a quantity in the shortest form that Kubernetes prints."""
    if resource == "cpu":
        return f"{value // 1000}" if value % 1000 == 0 else f"{value}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, power in reversed(_BINARY.items()):
            if value and value % 1024**power == 0:
                return f"{value // 1024**power}{suffix}"
    return str(value)
