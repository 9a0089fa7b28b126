"""Element types that PyTorch's operators take on the CPU, as its own samples of calls show them.

``python -m hagane.frontends.libraries.torch.published.samples`` writes the table
``element_types.txt``, which ``element_types.py`` reads; it needs an installed PyTorch with what its
tests need, and minutes. An operator takes a type if PyTorch's list of operators says so, or if one
of its samples runs.
"""

from __future__ import annotations

import inspect
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from hagane.frontends.libraries.torch.published.element_types import TEXTS, TYPES, texts_of, written
from hagane.frontends.libraries.torch.published.signatures import METHODS, table
from hagane.frontends.libraries.torch.table import TORCH

_MOST = 24  # samples of an operator for each type
_CHOICES = 8  # texts that a function is given, if each is one of a few
_LEAST = 2  # types that an operand's samples have, if the type asked for is theirs at all


@dataclass
class _Found:
    """What the samples of a function show."""

    takes: set[str] = field(default_factory=set)
    operands: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    promotes: bool = False


class _Stopped(Exception):
    """The call that was looked for: its name and its arguments."""


def _first_call(run: Callable[[], Any], names: frozenset[str]) -> tuple[str, Any, Any] | None:
    """Return the first call of a function that a table knows, by its name, that ``run`` makes."""
    from torch.overrides import TorchFunctionMode, resolve_name

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = (resolve_name(func) or "").replace("torch.functional.", "torch.")
            if name.rpartition(".")[2] in names:
                raise _Stopped(name, args, kwargs or {})
            return func(*args, **(kwargs or {}))

    try:
        with Mode():
            run()
    except _Stopped as stopped:
        return stopped.args
    except Exception:
        return None
    return None


def _places(name: str, placed: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as ``place=name``, as the table writes them."""
    found = {}
    known = _names(name, placed)
    for place, value in enumerate(placed):
        found[f"{place}={known[place]}" if place < len(known) else f"{place}"] = value
    for key, value in named.items():
        found[f"{known.index(key)}={key}" if key in known else f"={key}"] = value
    return found


def _names(name: str, placed: Sequence[Any]) -> list[str]:
    """Return the names of a function's arguments by place, those of a method with its own.

    Of its overloads, it is the first with a tensor wherever one is given.
    """
    import torch

    overloads = table().get(name)
    if overloads is not None:
        first = ["input"] if name.startswith(METHODS) else []
        for overload in overloads:
            own = [p for p in overload if not p.by_name]
            given = zip(own, placed[len(first) :], strict=False)
            misfits = (
                isinstance(value, torch.Tensor) and not {"T", "L", "*"} & {*p.kinds}
                for p, value in given
            )
            if len(own) >= len(placed) - len(first) and not any(misfits):
                return [*first, *(p.name for p in own)]
        return first
    try:
        signature = inspect.signature(attrgetter(name.removeprefix("torch."))(torch))
    except (TypeError, ValueError, AttributeError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in signature.parameters.values() if p.kind in kinds]


def _dtype_of(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor | torch.dtype):
        return getattr(value, "dtype", value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
        return value[0].dtype
    return None


def _samples(op: Any, dtype: Any) -> Iterator[Any]:
    import torch

    torch.manual_seed(0)
    try:
        yield from itertools.islice(op.sample_inputs("cpu", dtype), _MOST)
    except Exception:
        return


def _read(op: Any, found: defaultdict[str, _Found]) -> None:
    """Add what the samples of an operator show of its function, its method and that in place."""
    import torch
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo

    last = {op.aten_name, *(a.name.rpartition(".")[2] for a in (op, *op.aliases))}
    names = frozenset(last | {f"{name}_" for name in last})
    claimed = op.supported_dtypes("cpu")
    for text in TYPES:
        dtype = getattr(torch, text)
        for sample in _samples(op, dtype):
            given = [sample.input, *sample.args, *sample.kwargs.values()]
            for run in (op.op, op.method_variant, op.inplace_variant):
                if run is None:
                    continue
                call = partial(run, sample.input, *sample.args, **sample.kwargs)
                first = _first_call(call, names)
                if first is None:
                    continue
                own = found[first[0] + texts_of([*first[1], *first[2].values()])]
                own.promotes = own.promotes or isinstance(op, BinaryUfuncInfo)
                carry = [p for p, v in _places(*first).items() if _dtype_of(v) == dtype]
                for place in carry:
                    own.operands[place].add(text)
                is_claimed = dtype in claimed and run is not op.inplace_variant
                if carry and text not in own.takes and (is_claimed or _runs(call, given)):
                    own.takes.add(text)


def _read_layer(module: Any, found: defaultdict[str, _Found]) -> None:
    """Add what the samples of a layer show of the arguments of its forward."""
    import torch

    name = f"torch.nn.{module.module_cls.__name__}.forward"
    for text in TYPES:
        dtype = getattr(torch, text)
        torch.manual_seed(0)
        try:
            samples = module.module_inputs_func(module, "cpu", dtype, False, training=True)
            given = [*itertools.islice(samples, _MOST)]
        except Exception:
            continue
        for sample in given:
            made, forward = sample.constructor_input, sample.forward_input
            try:
                layer = module.module_cls(*made.args, **made.kwargs)
                layer = layer.to(dtype) if dtype.is_floating_point or dtype.is_complex else layer
            except Exception:
                continue
            if forward is None:
                continue
            carry = [i for i, value in enumerate(forward.args) if _dtype_of(value) == dtype]
            for place in carry:
                found[name].operands[str(place)].add(text)
            if carry and text not in found[name].takes:
                call = partial(layer, *forward.args, **forward.kwargs)
                if _runs(call, [*forward.args, *forward.kwargs.values()]):
                    found[name].takes.add(text)


def _runs(call: Callable[[], Any], given: Sequence[Any]) -> bool:
    """Whether a call runs, which one of no elements, or of one, may for any type."""
    import torch

    flat = [v for g in given for v in (g if isinstance(g, list | tuple) else [g])]
    counts = [v.numel() for v in flat if isinstance(v, torch.Tensor)]
    if not all(counts) or (counts and max(counts) == 1):
        return False
    try:
        with torch.no_grad():
            call()
    except Exception:
        return False
    return True


def shown() -> Mapping[str, _Found]:
    """Return what all samples show, by the names of functions and the texts that they are given."""
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

    found: defaultdict[str, _Found] = defaultdict(_Found)
    for op in op_db:
        _read(op, found)
    for module in module_db:
        _read_layer(module, found)
    return found


def element_types(found: Mapping[str, _Found]) -> dict[str, dict[str, str]]:
    """Return what the table tells of each function, method and layer, by the texts given."""
    from torch.testing._internal.common_methods_invocations import op_db

    known = {*TORCH.functions, *(f"{METHODS}{name}" for name in TORCH.methods[TORCH.tensor])}
    known |= {f"{name}.forward" for name in TORCH.layers}
    calls: defaultdict[str, dict[str, _Found]] = defaultdict(dict)
    for key, own in sorted(found.items()):
        name, mark, texts = key.partition(TEXTS)
        calls[name][mark + texts] = own
    for name, own_calls in calls.items():
        usual = own_calls.get(texts_of(_defaults(name)))
        if usual is not None:
            own_calls.setdefault(TEXTS, usual)
    for op in op_db:
        for alias in op.aliases:
            if f"torch.{op.name}" in calls:
                calls.setdefault(f"torch.{alias.name}", calls[f"torch.{op.name}"])
    for name in sorted(known - calls.keys()):
        same = next((other for other in calls if _is(name, other)), None)
        if same is not None:
            calls[name] = calls[same]
    return {n: told for n in sorted(known & calls.keys()) if (told := _told(calls[n]))}


def _defaults(name: str) -> list[Any]:
    """Return the defaults of the arguments of a function in Python."""
    import torch

    try:
        signature = inspect.signature(attrgetter(name.removeprefix("torch."))(torch))
    except (TypeError, ValueError, AttributeError):
        return []
    return [p.default for p in signature.parameters.values()]


def _is(name: str, other: str) -> bool:
    """Whether two names, of which the last parts are equal, are those of one function."""
    import torch

    if name.rpartition(".")[2] != other.rpartition(".")[2]:
        return False
    try:
        one, two = (attrgetter(n.removeprefix("torch."))(torch) for n in (name, other))
    except AttributeError:
        return False
    return one is two


def _told(calls: Mapping[str, _Found]) -> dict[str, str]:
    """Return what the table tells of a function, by the texts that calls give it.

    Of calls with certain texts, types that only samples with other texts have are not refused.
    """
    takes: set[str] = set().union(*(own.takes for own in calls.values()))
    varied: defaultdict[str, set[str]] = defaultdict(set)
    for own in calls.values():
        for place, types in own.operands.items():
            varied[place] |= types
    operands = [p for p, types in sorted(varied.items()) if len(types) >= _LEAST and takes <= types]
    if not operands:
        return {}
    told = " ".join(["promoted"] * any(own.promotes for own in calls.values()) + operands)
    drawn = set().union(*varied.values())
    by_texts = {
        texts: own.takes | (drawn - set().union(*own.operands.values()))
        for texts, own in calls.items()
    }
    alike = all(types == takes for types in by_texts.values())
    if alike or len(calls) == 1 or len(calls) > _CHOICES:
        return {"": f"{told}: {written(takes)}"} if len(takes) < len(TYPES) else {}
    return {texts: f"{told}: {written(types)}" for texts, types in by_texts.items()}


def lines(found: Mapping[str, _Found]) -> list[str]:
    """Return the lines of the table; methods that are as their function have none."""
    known = element_types(found)
    return [
        f"{name}{texts} {told}"
        for name, calls in known.items()
        if not name.startswith(METHODS) or known.get(f"torch.{name.removeprefix(METHODS)}") != calls
        for texts, told in calls.items()
    ]


if __name__ == "__main__":
    print("\n".join(lines(shown())))
