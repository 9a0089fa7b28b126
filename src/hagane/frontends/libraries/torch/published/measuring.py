"""Runs PyTorch's functions to see how their results lie in memory.

``python -m hagane.frontends.libraries.torch.published.measuring`` writes the table
``layouts.txt``, which ``layouts.py`` reads. It needs an installed PyTorch, whose test suite has
samples for most functions and layers (``torch.testing._internal``); these need ``expecttest``.
Each sample runs with its tensors laid in several ways, and a rule stays that holds for all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as trees

from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.values.strides import Strides, by_format, dense, in_order, iterated

_RULES = "cpkmnawof"  # in the order in which one is chosen
_SAMPLES = 16
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}

# A function, whose results are wanted, and the arguments of a call.
Run = tuple[Callable[..., Any], Any]


def _turned(x: Any) -> Any:
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def _rolled(x: Any) -> Any:
    return x.movedim(0, -1).contiguous().movedim(-1, 0)


def _last(x: Any) -> Any:
    if x.dim() in _FORMATS:
        return x.contiguous(memory_format=_FORMATS[x.dim()])
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def _apart(x: Any) -> Any:
    return torch.stack([x, x], -1)[..., 0]


def _ways(tensors: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the tensors laid in several ways: the first alone, and all."""
    for way in (torch.Tensor.contiguous, _turned, _rolled, _last, _apart):
        laid = [way(x) if x.dim() > 1 else x for x in tensors]
        yield [laid[0], *tensors[1:]]
        if len(tensors) > 1:
            yield laid


def _spread(x: Any, shape: Sequence[int]) -> Strides | None:
    rest = len(shape) - x.dim()
    if rest < 0 or any(s not in (1, whole) for s, whole in zip(x.shape, shape[rest:], strict=True)):
        return None
    own = zip(x.stride(), x.shape, shape[rest:], strict=True)
    return (*[0] * rest, *(stride if size == whole else 0 for stride, size, whole in own))


def _has_gaps(x: Any) -> bool:
    reach = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return reach != x.numel()


def _lies_last(x: Any) -> int:
    """Return the axes of a tensor in a format of memory that has channels last, 0 for others."""
    format_ = _FORMATS.get(x.dim())
    lies = format_ is not None and x.is_contiguous(memory_format=format_)
    return x.dim() if lies and not x.is_contiguous() else 0


def _fits(made: Any, tensors: Sequence[Any]) -> set[str]:
    """Return the rules by which a result lies."""
    shape, first = tuple(made.shape), tensors[0]
    rank = len(shape)
    found: dict[str, Strides | None] = {"c": dense(shape)}

    def order(operands: Iterable[Any]) -> Strides | None:
        spread = [_spread(x, shape) for x in operands]
        known = [strides for strides in spread if strides is not None]
        return (
            iterated(shape, known, lambda x: isinstance(x, int) and x >= 0)
            if len(known) == len(spread)
            else None
        )

    found["k"] = order(tensors)
    if tuple(first.shape) == shape:
        found["p"] = order([first]) if _has_gaps(first) else first.stride()
    found["m"] = by_format(shape, [_lies_last(x) for x in tensors[:1]], any)
    found["n"] = by_format(shape, [_lies_last(x) for x in tensors], any)
    found["a"] = by_format(shape, [_lies_last(x) for x in tensors], all)
    turned = first.dim() == rank == 3 and first.is_contiguous() < first.mT.is_contiguous()
    found["w"] = in_order(shape, (0, 2, 1)) if turned else found["m"]
    if first.dim() == rank:
        found["o"] = in_order(shape, sorted(range(rank), key=lambda axis: -first.stride(axis)))
    found["f"] = in_order(shape, (*range(rank - 2), rank - 1, rank - 2))
    strides = made.stride()
    return {
        rule for rule, told in found.items()
        if told is not None and all(
            size == 1 or a == b for size, a, b in zip(shape, told, strides, strict=True)
        )
    }  # fmt: skip


def _rules(runs: Iterable[Run]) -> str:
    """Return the letters of the results of a function; empty where nothing is learnt."""
    rules: list[set[str] | None] = []
    for function, arguments in runs:
        leaves, tree = trees.tree_flatten(arguments)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        strided = all(leaves[place].layout == torch.strided for place in places)
        if not strided or not any(leaves[place].dim() > 1 for place in places):
            continue
        for tensors in _ways([leaves[place].detach() for place in places]):
            for place, tensor in zip(places, tensors, strict=True):
                leaves[place] = tensor
            args, kwargs = trees.tree_unflatten(leaves, tree)
            try:
                made = trees.tree_leaves(function(*args, **kwargs))
            except Exception:
                continue  # a sample of an error, or a way that the function refuses
            if not all(isinstance(x, torch.Tensor) and x.layout == torch.strided for x in made):
                return ""
            memory = {x.untyped_storage().data_ptr() for x in tensors if x.numel()}
            if any(x.untyped_storage().data_ptr() in memory for x in made if x.numel()):
                continue  # a view, whose strides are those of what it is a view of
            rules += [None] * (len(made) - len(rules))
            for place, x in enumerate(made):
                if x.dim() > 1 and x.numel() > 1:
                    known = rules[place]
                    fits = _fits(x, tensors)
                    rules[place] = fits if known is None else known & fits
    if all(rule is None for rule in rules):
        return ""
    return "".join(
        "-" if rule is None else next((one for one in _RULES if one in rule), "?") for rule in rules
    )


def _functions() -> Iterator[tuple[str, list[Run]]]:
    for info in op_db:
        names = {name.rpartition(".")[2] for name in (info.name, *(a.name for a in info.aliases))}
        if torch.float32 not in info.supported_dtypes("cpu"):
            continue
        try:
            samples = info.sample_inputs("cpu", torch.float32, requires_grad=False)
            runs = [(info.op, ((s.input, *s.args), s.kwargs)) for s in islice(samples, _SAMPLES)]
        except Exception:
            continue  # samples that need what is not installed
        for name in names:
            yield name, runs


def _layers() -> Iterator[tuple[str, list[Run]]]:
    for info in module_db:
        runs: list[Run] = []
        made = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )
        for sample in made:
            built, given = sample.constructor_input, sample.forward_input
            if given is not None:
                layer = info.module_cls(*built.args, **built.kwargs).eval()
                runs.append((layer, (given.args, given.kwargs)))
        yield f"{info.module_cls.__name__}.forward", runs


def lines() -> list[str]:
    """Return the lines of the table."""
    found: dict[str, str] = {}
    known = {name.rpartition(".")[2] for name in TORCH.functions} | set(TORCH.methods[TORCH.tensor])
    known |= {f"{name.removeprefix('torch.nn.')}.forward" for name in TORCH.layers}
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, runs in (*_functions(), *_layers()):
            if name not in known:
                continue
            rules = _rules(runs)
            if rules:
                before = found.setdefault(name, rules)
                pairs = zip_longest(before, rules, fillvalue="-")
                found[name] = "".join(
                    a if b in (a, "-") else b if a == "-" else "?" for a, b in pairs
                )
    return [f"{name} {rules}" for name, rules in sorted(found.items())]


if __name__ == "__main__":
    print("\n".join(lines()))
