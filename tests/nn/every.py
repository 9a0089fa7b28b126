"""A call or more of each public function and link of Chainer's, with sizes that are drawn.

In a call, ``n`` and ``m`` are small sizes, ``c`` and ``d`` numbers of channels, ``h`` and ``w``
sides of images; ``v`` makes a variable of numbers around zero, ``p`` one of numbers between 0.1 and
0.9, ``a`` an array as ``p``, ``i`` one of integers below ``k``; ``keep`` remembers a link, whose
parameters have gradients too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CALLS = [line for line in Path(__file__).with_name("every.txt").read_text().splitlines() if line]


class Drawn:
    """A call of ``CALLS`` with sizes, arrays and weights of results from one seed.

    Args:
        chainer: Chainer's module, or hagane in its place.
        seed: Of all draws.
        kind: The element type of arrays and parameters, ``"f"`` or ``"d"``.
    """

    def __init__(self, chainer: Any, seed: int, kind: str):
        self._chainer, self._kind = chainer, kind
        self._random = np.random.RandomState(seed)
        self._seed = seed
        self._leaves: list[Any] = []
        self._links: list[Any] = []

    def run(self, call: str) -> Iterator[tuple[str, Any]]:
        """Yield results and gradients of a call, each with its name."""
        chainer, random = self._chainer, self._random
        names = {"chainer": chainer, "F": chainer.functions, "L": chainer.links, "np": np}
        names |= {name: getattr(self, name) for name in ("v", "p", "a", "i", "keep")}
        sizes = {"n": (1, 5), "m": (1, 5), "c": (1, 6), "d": (1, 6), "h": (5, 10), "w": (5, 10)}
        names |= {name: int(random.randint(*bounds)) for name, bounds in sizes.items()}
        np.random.seed(self._seed)
        with chainer.using_config("dtype", np.dtype(self._kind).type):
            results = list(flat(eval(call, names)))
            for number, result in enumerate(results):
                yield f"result{number}", np.asarray(getattr(result, "array", result))
            yield from self._gradients(results)
        for number, link in enumerate(self._links):
            for path, inner in link.namedlinks():
                for name in sorted(getattr(inner, "_persistent", ())):
                    value = np.asarray(getattr(inner, name))
                    if value.dtype.kind in "fiub":
                        yield f"held{number}{path}/{name}", value

    def _gradients(self, results: list[Any]) -> Iterator[tuple[str, Any]]:
        chainer = self._chainer
        total = None
        for result in results:
            if getattr(result, "dtype", np.dtype("i")).kind == "f" and hasattr(result, "grad_var"):
                weights = self._random.uniform(-1, 1, result.shape).astype(result.dtype)
                term = chainer.functions.sum(result * weights)
                total = term if total is None else total + chainer.functions.cast(term, total.dtype)
        leaves = {f"{number}": leaf for number, leaf in enumerate(self._leaves)}
        for number, link in enumerate(self._links):
            leaves |= {f"{number}{path}": each for path, each in sorted(link.namedparams())}
        if total is None or total.creator is None or not leaves:
            return
        for leaf in leaves.values():
            leaf.cleargrad()  # (those of parameters are NaN at first)
        total.backward(retain_grad=False)
        for name, leaf in leaves.items():
            if leaf.grad is not None:
                yield f"gradient{name}", leaf.grad.copy()
        for leaf in leaves.values():
            leaf.cleargrad()
        try:
            firsts = chainer.grad([total], list(leaves.values()), enable_double_backprop=True)
            squares = [chainer.functions.sum(g * g) for g in firsts if g is not None]
            again = chainer.grad([sum(squares)], list(leaves.values())) if squares else []
        except Exception:  # (Chainer has no second gradient of some functions.)
            return
        for name, second in zip(leaves, again, strict=False):
            if second is not None:
                yield f"second{name}", second.array.copy()

    def v(self, *sizes: int) -> Any:
        """Return a variable of numbers around zero."""
        return self._variable(self._random.uniform(-1, 1, sizes))

    def p(self, *sizes: int) -> Any:
        """Return a variable of numbers between 0.1 and 0.9."""
        return self._variable(self._random.uniform(0.1, 0.9, sizes))

    def a(self, *sizes: int) -> Any:
        """Return an array of numbers between 0.1 and 0.9."""
        return self._random.uniform(0.1, 0.9, sizes).astype(self._kind)

    def i(self, *sizes: int, k: int = 2) -> Any:
        """Return an array of integers from 0 to k - 1."""
        return self._random.randint(0, k, sizes).astype("i")

    def keep(self, link: Any) -> Any:
        """Return a link whose parameters get gradients."""
        self._links.append(link)
        return link

    def _variable(self, array: Any) -> Any:
        made = self._chainer.Variable(np.asarray(array).astype(self._kind))
        self._leaves.append(made)
        return made


def flat(result: Any) -> Iterator[Any]:
    """Yield the variables, arrays and numbers of a result in their order."""
    if isinstance(result, tuple | list):
        for each in result:
            yield from flat(each)
    elif result is not None:
        yield result
