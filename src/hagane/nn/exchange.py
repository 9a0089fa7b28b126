"""Parameters shared with PyTorch: one memory, two libraries, no copies.

A link's array and a module's tensor of the same layout become the same memory by DLPack, so that
an update in place on one side is seen on the other. Names are matched by path: ``/l1/W`` of a chain
is ``l1.weight`` of a module. Tensors that PyTorch keeps in one piece (the gates of
``torch.nn.LSTM``, the projections of ``torch.nn.MultiheadAttention``) are shared in rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument, MissingExtra
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.links.attention import MultiHeadAttention
from hagane.nn.links.connection import Bilinear
from hagane.nn.links.sequences import NStep
from hagane.nn.model.link import Link
from hagane.runtime.values.dlpack import from_capsule, to_capsule

_RENAMED = {
    "W": "weight",
    "b": "bias",
    "gamma": "weight",
    "beta": "bias",
    "avg_mean": "running_mean",
    "avg_var": "running_var",
}
_BATCHES = "num_batches_tracked"


@dataclass(frozen=True, slots=True)
class _Part:
    """An array of a link."""

    link: Link
    name: str
    path: str

    @property
    def array(self) -> Any:
        value = self.link.__dict__[self.name]
        return value.array if isinstance(value, Parameter) else value

    def take(self, array: Any) -> None:
        value = self.link.__dict__[self.name]
        if isinstance(value, Parameter):
            value.array = array
            value.cleargrad()
        else:
            self.link.__dict__[self.name] = array


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor of PyTorch, and the arrays that are its rows, in order.

    Attributes:
        tensor: The tensor's name in a state dict.
        parts: One array, or several.
        axes: The tensor's axes in the order of the array's; None for the same.
    """

    tensor: str
    parts: tuple[_Part, ...]
    axes: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        return ", ".join(part.path for part in self.parts)


class _Names:
    """The names that tensors have for paths of a link.

    Args:
        given: Names by path: of a tensor for a parameter, of a module for a link.
    """

    def __init__(self, given: Mapping[str, str]):
        self._given = {path.strip("/"): name for path, name in given.items()}

    def module(self, path: str) -> str:
        """Return the module of a link."""
        parts = path.strip("/").split("/") if path.strip("/") else []
        for count in range(len(parts), -1, -1):
            found = self._given.get("/".join(parts[:count]))
            if found is not None:
                return ".".join([*([found] if found else []), *parts[count:]])
        return ".".join(parts)

    def tensor(self, path: str, link: Link, name: str) -> str:
        """Return the tensor of a parameter, or of another array, of a link."""
        given = self._given.get(f"{path}/{name}".strip("/"))
        return given if given is not None else _joined(self.module(path), _RENAMED.get(name, name))


def _joined(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name


def _arrays(link: Link) -> list[str]:
    values = link.__dict__
    kept = [name for name in link._persistent if isinstance(values[name], np.ndarray)]
    # A running mean whose sizes come with the first batch is none yet.
    kept += [name for name in link._persistent if name in _RENAMED and values[name] is None]
    return sorted([*link._params, *kept])


def _places(link: Link, names: _Names, there: Mapping[str, Any]) -> Iterator[_Place]:
    """Return the tensors of a link; packed ones where ``there`` has them."""
    taken: set[int] = set()
    for path, inner in link.namedlinks():
        path = "" if path == "/" else path
        module = names.module(path)
        if id(inner) in taken:
            continue
        if isinstance(inner, NStep):
            taken.update(id(layer) for layer in inner)
            yield from _recurrent(inner, path, module)
        packed = _joined(module, "in_proj_weight")
        if isinstance(inner, MultiHeadAttention) and packed in there:
            yield from _projections(inner, path, module)
            taken.update(map(id, (inner.query, inner.key, inner.value, inner.out)))
        for name in _arrays(inner):
            axes = (1, 2, 0) if isinstance(inner, Bilinear) and name == "W" else None
            part = _Part(inner, name, f"{path}/{name}")
            yield _Place(names.tensor(path, inner, name), (part,), axes)


def _recurrent(link: NStep, path: str, module: str) -> Iterator[_Place]:
    half = link.n_weights // 2
    for i, layer in enumerate(link):
        number, reverse = divmod(i, link.direction)
        suffix = f"_l{number}{'_reverse' if reverse else ''}"
        for letter, kind in (("w", "weight"), ("b", "bias")):
            for first, source in ((0, "ih"), (half, "hh")):
                parts = [
                    _Part(layer, f"{letter}{j}", f"{path}/{i}/{letter}{j}")
                    for j in range(first, first + half)
                ]
                yield _Place(_joined(module, f"{kind}_{source}{suffix}"), tuple(parts))


def _projections(link: MultiHeadAttention, path: str, module: str) -> Iterator[_Place]:
    for name, packed, out in (
        ("W", "in_proj_weight", "out_proj.weight"),
        ("b", "in_proj_bias", "out_proj.bias"),
    ):
        if getattr(link.query, name, None) is None:
            continue
        parts = [
            _Part(getattr(link, one), name, f"{path}/{one}/{name}")
            for one in ("query", "key", "value")
        ]
        yield _Place(_joined(module, packed), tuple(parts))
        yield _Place(_joined(module, out), (_Part(link.out, name, f"{path}/out/{name}"),))


def to_torch(link: Link, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the parameters of a link as tensors of PyTorch that share their memory.

    ``module.load_state_dict(link.to_torch(), assign=True)`` puts them into a module. Weights that
    PyTorch keeps in one piece are brought together first, and the link has rows of that piece from
    then on. The number of batches of a normalisation is a tensor of its own.

    Args:
        link: The link.
        names: Names that differ: of a tensor by the path of a parameter (``/l1/W``), of a module by
            that of a link (``/l1``).

    Returns:
        Tensors by their name in a state dict.

    Raises:
        InvalidArgument: Parameters have no array yet, or the memory of one may not be written.
        MissingExtra: PyTorch is not installed.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise MissingExtra("sharing parameters with PyTorch", "torch") from None
    chosen = _Names(names or {})
    places = list(_places(link, chosen, {}))
    empty = [part.path for place in places for part in place.parts if part.array is None]
    if empty:
        raise InvalidArgument(
            "these parameters have no array yet; call the link on an input first:\n"
            + "\n".join(f"  {path}" for path in empty)
        )
    found: dict[str, Any] = {}
    for place in places:
        array = _piece(place.parts)
        if place.axes is not None:
            array = array.transpose(np.argsort(place.axes))
        found[place.tensor] = torch.from_dlpack(to_capsule(array))
    for path, inner in link.namedlinks():
        if "avg_mean" in inner._persistent and "N" in inner._persistent:
            name = _joined(chosen.module(path), _BATCHES)
            found[name] = torch.tensor(int(inner.__dict__["N"]))
    return found


def _piece(parts: Sequence[_Part]) -> Any:
    """Return the arrays of parts in one piece, of which they are rows afterwards."""
    arrays = [part.array for part in parts]
    if len(arrays) == 1:
        return arrays[0]
    base = arrays[0].base
    if base is not None and _is_piece(base, arrays):
        return base
    whole = np.concatenate(arrays)
    _share_rows(whole, parts)
    return whole


def _is_piece(base: Any, arrays: Sequence[Any]) -> bool:
    if not isinstance(base, np.ndarray) or base.shape != (
        sum(len(array) for array in arrays),
        *arrays[0].shape[1:],
    ):
        return False
    rows = _rows(base, [len(array) for array in arrays])
    return all(
        row.__array_interface__ == array.__array_interface__
        for row, array in zip(rows, arrays, strict=True)
    )


def _rows(whole: Any, counts: Sequence[int]) -> list[Any]:
    ends = np.cumsum(counts)
    return [whole[end - count : end] for count, end in zip(counts, ends, strict=True)]


def _share_rows(whole: Any, parts: Sequence[_Part]) -> None:
    counts = [len(whole) // len(parts)] * len(parts)
    if all(part.array is not None for part in parts):
        counts = [len(part.array) for part in parts]
    for part, row in zip(parts, _rows(whole, counts), strict=True):
        part.take(row)


def from_torch(
    link: Link, source: Any, names: Mapping[str, str] | None = None, strict: bool = True
) -> None:
    """Let the parameters of a link be those of a module of PyTorch, in the module's memory.

    Gradients are dropped. Settings that are no parameters, such as the ``eps`` of a normalisation,
    stay as they are.

    Args:
        link: The link.
        source: A module, or tensors by name; any object that speaks DLPack is a tensor.
        names: Names that differ: of a tensor by the path of a parameter (``/l1/W``), of a module by
            that of a link (``/l1``).
        strict: Whether parameters without a tensor, and tensors without a parameter, are an error.

    Raises:
        InvalidArgument: Names, sizes or types do not fit, or a tensor cannot be shared; all of them
            are listed, and the link is as it was.
    """
    tensors = dict(source.state_dict() if hasattr(source, "state_dict") else source)
    chosen = _Names(names or {})
    places = list(_places(link, chosen, tensors))
    wrong: list[str] = []
    shared: list[tuple[_Place, Any]] = []
    for place in places:
        if place.tensor not in tensors:
            if strict:
                wrong.append(f"  {place.label}: there is no tensor '{place.tensor}'")
            continue
        try:
            array = _array(tensors[place.tensor])
            if place.axes is not None:
                array = array.transpose(place.axes)
            _check(place, array)
        except InvalidArgument as error:
            wrong.append(f"  {place.label} from '{place.tensor}': {error}")
        else:
            shared.append((place, array))
    wanted = {place.tensor for place in places}
    extra = [name for name in tensors if name not in wanted and not name.endswith(_BATCHES)]
    if strict:
        wrong += [f"  '{name}': the link has no such parameter" for name in extra]
    if wrong:
        remedy = "\nnames={'/path': 'name'} maps names that differ" if strict else ""
        raise InvalidArgument("the tensors do not fit the link:\n" + "\n".join(wrong) + remedy)
    for place, array in shared:
        if len(place.parts) == 1:
            place.parts[0].take(array)
        else:
            _share_rows(array, place.parts)


def _array(tensor: Any) -> Any:
    if isinstance(tensor, np.ndarray):
        return tensor
    return from_capsule(tensor.detach() if hasattr(tensor, "detach") else tensor)


def _check(place: _Place, array: Any) -> None:
    parts = [part.array for part in place.parts]
    if len(parts) > 1 and (array.ndim == 0 or len(array) % len(parts)):
        raise InvalidArgument(f"expected rows of {len(parts)} arrays, got shape {array.shape}")
    if any(part is None for part in parts):
        return
    shape = parts[0].shape if len(parts) == 1 else (sum(map(len, parts)), *parts[0].shape[1:])
    if array.shape != shape:
        raise InvalidArgument(f"expected shape {shape}, got {array.shape}")
    if array.dtype != parts[0].dtype:
        raise InvalidArgument(f"expected {parts[0].dtype}, got {array.dtype}")
