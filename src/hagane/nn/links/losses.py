"""Links that are losses with parameters."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np

from hagane.errors import OutOfRange
from hagane.nn import functions as F
from hagane.nn.autograd.configuration import get_dtype
from hagane.nn.autograd.debugging import at_place
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import array_of, function
from hagane.nn.initializers import Uniform, Zero
from hagane.nn.links.sequences import argsort_list_descent, permutate_list
from hagane.nn.model.link import Link
from hagane.nn.walker_alias import WalkerAlias


class NegativeSampling(Link):
    """The loss of right classes against drawn ones (Mikolov et al. 2013).

    Args:
        in_size: The number of features.
        counts: How often each class occurs.
        sample_size: How many classes are drawn for each sample.
        power: Of the counts.
        dtype: The element type.
    """

    def __init__(
        self, in_size: int, counts: Any, sample_size: int, power: float = 0.75, dtype: Any = None
    ):
        super().__init__()
        found = get_dtype(dtype)
        self.sample_size = sample_size
        self.sampler = WalkerAlias(np.power(np.array(counts, found), found.type(power)))
        with self.init_scope():
            self.W = Parameter(0, (len(counts), in_size))

    def forward(self, x: Any, t: Any, reduce: str = "sum", **kwargs: Any) -> Any:
        """Return the loss; with ``return_samples`` the drawn classes too."""
        return F.negative_sampling(
            x, t, self.W, self.sampler.sample, self.sample_size, reduce=reduce, **kwargs
        )


class BlackOut(Link):
    """The loss of right classes against drawn ones (Ji et al. 2015).

    Attributes:
        sample_data: Classes that stand for drawn ones.
    """

    sample_data: Any = None

    def __init__(self, in_size: int, counts: Any, sample_size: int):
        super().__init__()
        self.sampler = WalkerAlias(np.array(counts, np.float32))
        self.sample_size = sample_size
        with self.init_scope():
            self.W = Parameter(shape=(len(counts), in_size))

    def forward(self, x: Any, t: Any) -> Any:
        """Return the loss."""
        samples = self.sample_data
        if samples is None:
            samples = self.sampler.sample((x.shape[0], self.sample_size))
        return F.black_out(x, t, self.W, Variable(samples, requires_grad=False))


class CRF1d(Link):
    """Chains of labels (Lafferty et al. 2001).

    Args:
        n_label: The number of labels.
        initial_cost: Fills the costs of pairs; zeros if None.
    """

    def __init__(self, n_label: int, initial_cost: Any = None):
        super().__init__()
        with self.init_scope():
            initializer = Zero() if initial_cost is None else initial_cost
            self.cost = Parameter(initializer, (n_label, n_label))

    def forward(self, xs: Any, ys: Any, reduce: str = "mean", transpose: bool = False) -> Any:
        """Return the loss.

        Args:
            xs: Costs of labels at each time; of each sequence with ``transpose``.
            ys: Labels likewise.
            reduce: ``mean`` or ``no``.
            transpose: Whether both are given by sequences.
        """
        if transpose:
            order = argsort_list_descent(xs)
            xs = F.transpose_sequence(permutate_list(xs, order, inv=False))
            ys = F.transpose_sequence(permutate_list(ys, order, inv=False))
        return F.crf1d(self.cost, xs, ys, reduce)

    def argmax(self, xs: Any, transpose: bool = False) -> Any:
        """Return the best scores, and their labels at each time, or of each sequence."""
        if not transpose:
            return F.argmax_crf1d(self.cost, xs)
        order = argsort_list_descent(xs)
        times = F.transpose_sequence(permutate_list(xs, order, inv=False))
        score, path = F.argmax_crf1d(self.cost, times)
        rows = [one.array for one in F.transpose_sequence(path)]
        return score, permutate_list(rows, order, inv=True)


class BinaryHierarchicalSoftmax(Link):
    """A softmax over the leaves of a binary tree (Morin and Bengio 2005).

    Args:
        in_size: The number of features.
        tree: Pairs of trees; leaves are classes.
        dtype: The element type.
    """

    def __init__(self, in_size: int, tree: Any, dtype: Any = None):
        super().__init__()
        self._dtype = get_dtype(dtype)
        self._paths: dict[int, list[int]] = {}
        self._codes: dict[int, list[float]] = {}
        size = self._walk(tree, [], [], 0)
        with self.init_scope():
            self.W = Parameter(Uniform(1), (size, in_size))

    def _walk(self, node: Any, path: list[int], code: list[float], number: int) -> int:
        if not isinstance(node, tuple):
            self._paths[node], self._codes[node] = path, code
            return number
        if len(node) != 2:
            raise ValueError("All internal nodes must have two child nodes")
        here = number
        number = self._walk(node[0], [*path, here], [*code, 1.0], number + 1)
        return self._walk(node[1], [*path, here], [*code, -1.0], number)

    @staticmethod
    def create_huffman_tree(word_counts: Mapping[int, int]) -> Any:
        """Return the tree in which frequent classes lie high.

        Args:
            word_counts: How often each class occurs.

        Raises:
            ValueError: There is none.
        """
        if not word_counts:
            raise ValueError("Empty vocabulary")
        heap = [(count, i, word) for i, (word, count) in enumerate(word_counts.items())]
        heapq.heapify(heap)
        while len(heap) > 1:
            (a, first, left), (b, second, right) = heapq.heappop(heap), heapq.heappop(heap)
            heapq.heappush(heap, (a + b, min(first, second), (left, right)))  # type: ignore[misc]
        return heap[0][2]

    def forward(self, x: Any, t: Any) -> Any:
        """Return the sum of losses.

        Args:
            x: (batch, features).
            t: Classes, int32 (batch,).
        """
        labels = array_of(t).tolist()
        unknown = [one for one in labels if one not in self._paths]
        if unknown:
            raise OutOfRange(
                f"BinaryHierarchicalSoftmax: the tree has no class {unknown[0]}{at_place()}"
            )
        nodes = [node for one in labels for node in self._paths[one]]
        codes = np.array([c for one in labels for c in self._codes[one]], self._dtype)
        rows = np.repeat(np.arange(len(labels)), [len(self._paths[one]) for one in labels])
        return _on_the_ways(x, t, self.W, np.array(nodes, np.int32), rows, codes)


@function("x", ":t", "W", name="BinaryHierarchicalSoftmaxFunction")
def _on_the_ways(x: Any, t: Any, W: Any, nodes: Any, rows: Any, codes: Any) -> Any:
    """Return the loss at all nodes on the ways from the root to the samples' classes."""
    scores = F.sum(F.embed_id(nodes, W) * F.get_item(x, rows), axis=1)
    return F.sum(F.softplus(-scores * codes))
