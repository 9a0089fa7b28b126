"""Python's own random numbers as draws, while a function is followed.

``random.random`` is a continuous draw, and ``random.uniform``, which is made of it by sums;
``gauss``, ``normalvariate`` and ``expovariate`` are those of their laws. ``secrets`` and
``SystemRandom``, which nothing seeds, draw likewise. NumPy's and PyTorch's random numbers, and
generators of the program's own, are refused.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hagane.tools.prob.draws import Decider, continuous_draw, exact
from hagane.tools.prob.replay.frozen import freeze
from hagane.tools.prob.replay.reached import Reached

# The generator behind the functions of ``random``: randint, randrange, choice, shuffle and sample
# ask it for a whole number below another.
_GENERATOR = random.randint.__self__  # type: ignore[attr-defined]
_SAMPLE, _SHUFFLE = random.Random.sample, random.Random.shuffle
_OF_NUMPY = ("default_rng", "Generator", "RandomState", "SeedSequence")
_NOTHING = object()


class OtherChance(Exception):
    """A random number that is no draw."""


class _Draws:
    """The numbers of ``random`` as draws, by the names of its methods."""

    def __init__(self, decider: Callable[[], Decider | None]) -> None:
        self.decider = decider
        self._shared_below = _GENERATOR._randbelow

    def _randbelow(self, size: int) -> int:
        deciding = self.decider()
        if deciding is None:  # of another thread
            return self._shared_below(size)  # type: ignore[no-any-return]
        frame = sys._getframe(1)
        if frame.f_code.co_filename == __file__ and frame.f_back is not None:
            frame = frame.f_back
        if frame.f_code is not _SAMPLE.__code__:
            return deciding.uniform(size)
        # A sample of few draws again, as often as it meets a place that it has taken.
        taken = frame.f_locals.get("selected")
        taken = taken if isinstance(taken, set) else set()
        place = deciding.uniform(size - len(taken))
        for other in sorted(taken):
            place += other <= place
        return place

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        deciding: Any = self.decider()
        plain = isinstance(population, Sequence) and counts is None and 0 <= k <= len(population)
        if plain and hasattr(deciding, "dealt"):
            return deciding.dealt(population, k)  # type: ignore[no-any-return]
        return _SAMPLE(_GENERATOR, population, k, counts=counts)

    def shuffle(self, x: Any) -> None:
        deciding: Any = self.decider()
        if hasattr(deciding, "dealt") and isinstance(x, list):
            x[:] = deciding.dealt(x, len(x))
        else:
            _SHUFFLE(_GENERATOR, x)

    def getrandbits(self, k: int) -> int:
        deciding = self.decider()
        assert deciding is not None
        return deciding.uniform(1 << k)

    def random(self) -> Any:
        return continuous_draw("uniform")

    def gauss(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        return exact(mu) + exact(sigma) * continuous_draw("normal")

    normalvariate = gauss

    def expovariate(self, lambd: Any = 1.0) -> Any:
        return continuous_draw("exponential") / exact(lambd)


_DRAWN = (
    "_randbelow", "getrandbits", "random", "gauss", "normalvariate", "expovariate", "sample",
    "shuffle",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Source:
    """Random numbers of another kind, whose state tells whether some were drawn."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], Any]


def _sources(reached: Reached) -> list[_Source]:
    """Return NumPy's and PyTorch's shared numbers, and the generators that a function reaches."""
    numpy: Any = sys.modules.get("numpy.random")
    torch: Any = sys.modules.get("torch")
    found = []
    if numpy is not None:
        found.append(_Source("numpy.random", numpy.get_state, numpy.set_state))
    if hasattr(torch, "get_rng_state"):
        found.append(_Source("torch", torch.get_rng_state, torch.set_rng_state))
    return [*found, *map(_source, reached.generators)]


def _source(generator: Any) -> _Source:
    kind = type(generator)
    name = f"{kind.__module__.partition('._')[0]}.{kind.__name__}"
    bits = getattr(generator, "bit_generator", None)
    if bits is None:
        return _Source(name, generator.get_state, generator.set_state)
    return _Source(name, lambda: bits.state, lambda state: setattr(bits, "state", state))


def _others(decider: Callable[[], Decider | None], drawn: list[str]) -> list[tuple[Any, str, Any]]:
    """Return what refuses other numbers: a module or class, the name there, and the refusal."""

    def refusing(told: str, original: Any = None) -> Callable[..., Any]:
        def refuse(*arguments: Any, **named: Any) -> Any:
            if original is not None and decider() is None:  # of another thread
                return original(*arguments, **named)
            drawn.append(told)  # a run may take the error for one of its own
            raise _other(told)

        return refuse

    found: list[tuple[Any, str, Any]] = [(random, "Random", refusing("random.Random"))]
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        found += [(numpy, name, refusing(f"numpy.random.{name}")) for name in _OF_NUMPY]
    found += [(os, "urandom", refusing("os.urandom", os.urandom))]
    found += [(random, "_urandom", found[-1][2])]
    for name in ("_randbelow", "getrandbits", "random"):
        original = getattr(random.Random, name)
        found.append((random.Random, name, refusing("random.Random", original)))
    return found


def _own(decider: Callable[[], Decider | None]) -> list[tuple[Any, str, Any]]:
    """Return what makes draws of the numbers that all of a program shares."""
    draws = _Draws(decider)
    found = []
    for name in _DRAWN:
        draw = getattr(draws, name)
        shared = (
            draw if name == "_randbelow" else _drawing(decider, draw, getattr(_GENERATOR, name))
        )
        of_system = _drawing(decider, draw, getattr(random.SystemRandom, name), own=True)
        found += [(_GENERATOR, name, shared), (random.SystemRandom, name, of_system)]
        if hasattr(random, name):
            found.append((random, name, shared))
    return found


def _drawing(
    decider: Callable[[], Decider | None],
    draw: Callable[..., Any],
    original: Callable[..., Any],
    own: bool = False,
) -> Callable[..., Any]:
    """Return a function that draws, and in other threads does what it does.

    Args:
        decider: Returns what decides the draws of this thread.
        draw: Draws.
        original: What it is in the place of.
        own: The first argument is the generator.
    """

    def drawing(*arguments: Any, **named: Any) -> Any:
        if decider() is None:
            return original(*arguments, **named)
        return draw(*arguments[own:], **named)

    return drawing


@contextmanager
def _replaced(items: list[tuple[Any, str, Any]], reached: Reached) -> Iterator[None]:
    """Set attributes, and the names under which a program's own files know their values."""
    before = [(owner, name, vars(owner).get(name, _NOTHING)) for owner, name, _ in items]
    places: list[tuple[dict[str, Any], str, Any]] = []
    by_identity = {
        id(value): new
        for (_, _, value), (_, _, new) in zip(before, items, strict=True)
        if value is not _NOTHING
    }
    for names in reached.namespaces:
        places += [(names, n, value) for n, value in names.items() if id(value) in by_identity]
    try:
        for owner, name, new in items:
            setattr(owner, name, new)
        for names, name, value in places:
            names[name] = by_identity[id(value)]
        yield
    finally:
        for names, name, value in places:
            names[name] = value
        for owner, name, value in before:
            if value is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@contextmanager
def no_other_chance(decider: Callable[[], Decider | None], reached: Reached) -> Iterator[None]:
    """Let the numbers of ``random`` be draws.

    Args:
        decider: Returns what decides the draws of this thread.
        reached: What the function that is followed knows.

    Raises:
        OtherChance: Random numbers were drawn that are no draws.
    """
    drawn: list[str] = []
    state = random.getstate()
    sources = [(each, each.get()) for each in _sources(reached)]
    others = _others(decider, drawn)
    try:
        with _replaced([*others, *_own(decider)], reached):
            yield
    except Exception as error:
        moved = _moved(sources)
        if not drawn and moved:
            # Whatever went wrong, such as runs that differ, this is why.
            raise _other(moved) from error
        raise
    if drawn:
        raise _other(drawn[0])
    moved = _moved(sources)
    if moved:
        raise _other(moved)
    if random.getstate() != state:
        random.setstate(state)
        raise OtherChance("the function draws random numbers that prob does not know of")


def _other(name: str) -> OtherChance:
    """Return the error of a generator that is met."""
    return OtherChance(
        f"'{name}' is no draw; draw with prob.rand, prob.flip or prob.choose, or with the "
        "functions of random, such as random.randint"
    )


def refuse_generators(outside: Mapping[str, Any]) -> None:
    """Refuse a function that knows a generator of its own, by the values that it knows by name.

    Raises:
        OtherChance: One of them is a generator, or a function of one.
    """
    for name, value in outside.items():
        owner = getattr(value, "__self__", value)
        if owner is _GENERATOR or isinstance(owner, random.SystemRandom):
            continue
        if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
            raise _other(name)


def _moved(sources: list[tuple[_Source, Any]]) -> str:
    """Return the name of random numbers that went on, or nothing; take them back."""
    found = ""
    for source, before in sources:
        if _key(source.get()) != _key(before):
            source.set(before)
            found = found or source.name
    return found


def _key(state: Any) -> Any:
    return freeze([("state", state.numpy() if hasattr(state, "numpy") else state)])
