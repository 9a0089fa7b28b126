"""How a call of a function looks to programs: to hooks, as ``creator``, by rank, in drawings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def lines(calls: list[str], chainer: Any) -> Iterator[str]:
    """Return a line for each call: the call, what hooks see, labels and ranks of its results.

    Args:
        calls: Expressions; ``v`` and ``a`` make variables and arrays of sizes, ``i`` integers.
        chainer: Chainer's module, or hagane in its place.
    """

    class Seen(chainer.FunctionHook):  # type: ignore[misc]
        name = "Seen"

        def __init__(self) -> None:
            self.forward: list[str] = []
            self.backward: list[str] = []
            self.within = 0

        def forward_preprocess(self, function: Any, in_data: Any) -> None:
            if not self.within:
                self.forward.append(f"{function._impl_name}:{len(in_data)}")

        def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
            self.within += 1
            self.backward.append(f"{function._impl_name}:{len(in_data)}:{len(out_grad)}")

        def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
            self.within -= 1

    for call in calls:
        random = np.random.RandomState(1)
        np.random.seed(0)

        def v(*sizes: int, source: Any = random) -> Any:
            return chainer.Variable(source.uniform(0.2, 0.9, sizes).astype("f"))

        def a(*sizes: int, source: Any = random) -> Any:
            return source.uniform(0.2, 0.9, sizes).astype("f")

        def i(*sizes: int, n: int = 2, source: Any = random) -> Any:
            return source.randint(0, n, sizes).astype("i")

        names = {"chainer": chainer, "F": chainer.functions, "L": chainer.links, "np": np}
        hook = Seen()
        with hook:
            made = list(_variables(eval(call, names | {"v": v, "a": a, "i": i})))
            seen = " ".join(hook.forward)
            again = [y for y in made if y.dtype.kind == "f" and y.creator is not None]
            for y in again:
                y.grad = np.ones_like(y.array)
            if again:
                chainer.backward(again)
        labels = "|".join("-" if y.creator is None else y.creator.label for y in made)
        ranks = ",".join(str(y.rank) for y in made)
        drawn = chainer.computational_graph.build_computational_graph(made)
        nodes = "; ".join(sorted(node.label for node in drawn.nodes))
        parts = (call, seen, " ".join(hook.backward), labels, ranks, f"{nodes}; {len(drawn.edges)}")
        yield "\t".join(part or "-" for part in parts)


def _variables(result: Any) -> Iterator[Any]:
    if isinstance(result, tuple | list):
        for each in result:
            yield from _variables(each)
    elif hasattr(result, "creator"):
        yield result
