"""``torch.utils.data``: datasets, samplers, and loaders of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.operands import BOOL, INT64, need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Fields,
    Host,
    Library,
    ListRef,
    Many,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_size,
)
from hagane.symbolic import Dim, Expr, minimum, symbols_of

_DATA = "utils.data"
_FEW = 3  # batches that are followed one by one
_SAMPLER = "torch.utils.data.Sampler"


def _names(name: str, *modules: str) -> tuple[str, ...]:
    return (f"{_DATA}.{name}", *(f"{_DATA}.{module}.{name}" for module in modules))


def _length(t: Core, value: Value) -> Value:
    if isinstance(value, list | tuple):
        return len(value)
    return t.call(Host(len), [t.wrap(value)], {})


def _position(t: Core, run: Any, count: Value) -> Value:
    """Return the result of ``run`` for a position below ``count`` that only the run knows."""
    index = t.emit.fresh("index")
    entry = t.knowledge.path
    if is_size(count):
        t.knowledge.path = entry.taking(t.within(index, count))
    try:
        return run(index)
    finally:
        t.knowledge.path = entry


@TORCH.layer(*_names("Dataset", "dataset"))
class Dataset:
    """The base class."""

    @staticmethod
    def __add__(t: Core, self: View, other: Value) -> Value:
        return t.call(Library("torch.utils.data.ConcatDataset"), [[self.instance(), other]], {})


@TORCH.layer(*_names("IterableDataset", "dataset"), base="torch.utils.data.Dataset")
class IterableDataset:
    """The base class of datasets that are iterated."""


@TORCH.layer(*_names("TensorDataset", "dataset"), base="torch.utils.data.Dataset")
class TensorDataset:
    """Rows of tensors of one length."""

    @staticmethod
    def init(t: Core, *tensors: Value) -> dict[str, Value]:
        """Return the attributes."""
        first = need_tensor(t, tensors[0], "tensors") if tensors else None
        for other in tensors[1:]:
            x = need_tensor(t, other, "tensors")
            assert first is not None
            if t.emit.differ(shape_of(t, first)[0], shape_of(t, x)[0]):
                t.fail("shape-mismatch", "expected tensors of one length, got "
                       f"{t.show(first)} and {t.show(x)}", first, x)  # fmt: skip
        return {"tensors": tuple(tensors)}

    @staticmethod
    def __getitem__(t: Core, self: View, index: Value) -> Value:
        return tuple(t.item(x, index) for x in self.tensors)

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        return shape_of(t, self.tensors[0])[0]


@TORCH.layer(*_names("Subset", "dataset"), base="torch.utils.data.Dataset")
class Subset:
    """Some items of another dataset."""

    @staticmethod
    def init(t: Core, dataset: Value, indices: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"dataset": dataset, "indices": indices}

    @staticmethod
    def __getitem__(t: Core, self: View, idx: Value) -> Value:
        return t.item(self.raw("dataset"), t.item(self.raw("indices"), idx))

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        return _length(t, self.raw("indices"))


@TORCH.layer(*_names("ConcatDataset", "dataset"), base="torch.utils.data.Dataset")
class ConcatDataset:
    """Several datasets behind each other."""

    @staticmethod
    def init(t: Core, datasets: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"datasets": datasets}

    @staticmethod
    def __getitem__(t: Core, self: View, idx: Value) -> Value:
        found = [t.item(part, 0 if isinstance(part, Instance) else idx) for part in self.datasets]
        result = found[0]
        for other in found[1:]:
            result = t.join(t.as_term(t.unknown_truth()), result, other)
        return result

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        total: Value = 0
        for part in self.datasets:
            total = total + _length(t, part)
        return total


@TORCH.function(*_names("random_split", "dataset"))
def random_split(t: Core, dataset: Value, lengths: Value, generator: Value = None) -> Value:
    """Return parts of a dataset, of given lengths or shares."""
    whole = _length(t, dataset)
    if not isinstance(lengths, list | tuple):
        return t.lost("random_split into a number of parts that is not known")
    if (
        all(isinstance(n, int) for n in lengths)
        and isinstance(whole, int)
        and sum(lengths) != whole
    ):
        t.fail("value", f"ValueError: expected lengths that sum to {whole}, got {sum(lengths)}")
    counts: list[Value] = []
    for n in lengths:
        share = isinstance(n, float) and isinstance(whole, int)
        counts.append(int(whole * n) if share else n if is_size(n) else t.emit.fresh("part"))
    if all(isinstance(n, float) for n in lengths) and isinstance(whole, int):
        rest = whole - sum(counts)
        counts = [n + (place < rest) for place, n in enumerate(counts)]
    return [
        Instance(
            t.heap.new({"dataset": dataset, "indices": t.new_list(_drawn(t, whole, n))}),
            Library("torch.utils.data.Subset"),
        )
        for n in counts
    ]


def _drawn(t: Core, whole: Value, count: Value) -> Many:
    index = t.emit.fresh("index")
    if is_size(whole):
        t.knowledge.path = t.knowledge.path.taking(t.within(index, whole))
    return Many(index, count)


# Samplers.


def _sampler(name: str, parameters: Sequence[str], count: Any) -> None:
    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        given = {**dict(zip(parameters, arguments, strict=False)), **keywords}
        return {**dict.fromkeys(parameters), **given}

    def length(t: Core, self: View) -> Value:
        return count(t, self)

    def iterate(t: Core, self: View) -> Value:
        found = count(t, self)
        element: Value = t.emit.fresh("index")
        if name == "BatchSampler":
            size: Dim = self.batch_size
            exact = self.drop_last is True
            element = t.new_list(Many(element, size if exact else _at_most(t, size)))
        return t.new_list(Many(element, found))

    def set_epoch(t: Core, self: View, epoch: Value) -> Value:
        return None

    content: dict[str, Any] = {
        "init": init,
        "__len__": length,
        "__iter__": iterate,
        "set_epoch": set_epoch,
    }
    made = type(name, (), {key: staticmethod(item) for key, item in content.items()})
    module = "distributed" if name == "DistributedSampler" else "sampler"
    TORCH.layer(*_names(name, module), base=_SAMPLER)(made)


def _of_source(t: Core, self: View) -> Value:
    own = self.get("num_samples", None)
    return own if own is not None else _length(t, self.raw("data_source"))


def _of_batches(t: Core, self: View) -> Value:
    count, size = _length(t, self.raw("sampler")), self.batch_size
    return count // size if self.drop_last is True else -(-count // size)


@TORCH.layer(*_names("Sampler", "sampler"))
class Sampler:
    """The base class."""

    @staticmethod
    def init(t: Core, data_source: Value = None) -> dict[str, Value]:
        """Return no attributes."""
        return {}


_sampler("RandomSampler", ("data_source", "replacement", "num_samples", "generator"), _of_source)
_sampler("SequentialSampler", ("data_source",), _of_source)
_sampler("SubsetRandomSampler", ("indices", "generator"), lambda t, s: _length(t, s.raw("indices")))
_sampler("WeightedRandomSampler", ("weights", "num_samples", "replacement", "generator"),
         lambda t, s: s.num_samples)  # fmt: skip
_sampler("BatchSampler", ("sampler", "batch_size", "drop_last"), _of_batches)
_sampler("DistributedSampler", ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last"),
         lambda t, s: _length(t, s.raw("dataset")))  # fmt: skip


# Batches.


def _at_most(t: Core, size: Dim) -> Dim:
    """Return a size from 1 to ``size``."""
    own = t.emit.fresh("batch")
    t.knowledge.lowest[str(own)] = 1
    return minimum(size, own)


def collate(t: Core, item: Value, size: Dim) -> Value:
    """Return ``size`` items like one as a batch, as ``default_collate`` makes it."""
    item = t.settle(item)
    match item:
        case Unknown():
            return item
        case Choice():
            return t.either(item, lambda one: collate(t, one, size))
        case Tensor():
            made = t.emit.new(item.dtype, (size, *shape_of(t, item)), kind="torch.Tensor")
            made.origin = item.origin
            return made
        case bool() | Truth():
            return t.emit.new(BOOL, (size,), kind="torch.Tensor")
        case float() | Real():
            return t.emit.new(ir.DataType.DOUBLE, (size,), kind="torch.Tensor")
        case str() | bytes():
            return t.new_list(Many(item, size))
        case Fields():
            return item.of(collate(t, part, size) for part in item)
        case tuple():
            return t.new_list([collate(t, part, size) for part in item])
        case ListRef() if isinstance(t.heap[item], tuple):
            return t.new_list([collate(t, part, size) for part in t.heap[item]])
        case DictRef() if isinstance(t.heap[item], dict):
            return t.new_dict({k: collate(t, v, size) for k, v in t.heap[item].items()}, item.kind)
        case ListRef() | DictRef():
            return t.lost("a batch of lists whose lengths are not known")
    if is_size(item):
        return t.emit.new(INT64, (size,), kind="torch.Tensor")
    t.fail(
        "type",
        f"default_collate makes batches of tensors, arrays, numbers, texts, lists and dicts, got "
        f"{t.show(item)}",
        remedy="return one of these from __getitem__, or give the loader a collate_fn",
    )
    raise AssertionError


@TORCH.function(*_names("default_collate", "dataloader"))
def default_collate(t: Core, batch: Value) -> Value:
    """Return items as a batch."""
    if isinstance(batch, Many):
        return collate(t, batch.element, batch.length)
    return collate(t, t.wrap(batch[0]), len(batch))


def _batch(t: Core, self: View, item: Value, size: Dim) -> Value:
    own = self.raw("collate_fn")
    if own is None:
        return collate(t, item, size)
    return t.call(own, [t.new_list(Many(item, size))], {})


def _count(t: Core, self: View) -> Value:
    """Return how many items a loader takes."""
    sampler = self.raw("sampler")
    source = self.raw("dataset") if sampler is None else sampler
    if isinstance(source, Unknown):
        return source
    if isinstance(source, Instance) and t.find_attribute(source, "__len__") is MISSING:
        return t.emit.fresh("items")
    found = _length(t, source)
    return found if is_size(found) else t.emit.fresh("items")


def _batches(t: Core, self: View) -> Value:
    own, size = self.raw("batch_sampler"), self.batch_size
    if own is not None:
        return _length(t, own)
    count = _count(t, self)
    if size is None or isinstance(count, Unknown):
        return count
    return count // size if self.drop_last is True else -(-count // size)


def _need_length(t: Core, dataset: Value, *samplers: Value) -> None:
    """Refuse a dataset of the program's own that does not say how many items it has."""
    if not isinstance(dataset, Instance) or not isinstance(dataset.cls, Class) or any(samplers):
        return
    plain = t.tables.libraries_of(t, dataset)[:1] == ["torch.utils.data.Dataset"]
    if plain and t.find_attribute(dataset, "__len__") is MISSING:
        t.fail("type", f"TypeError: object of type '{dataset.cls.name}' has no len()",
               remedy="define __len__, or derive it from IterableDataset")  # fmt: skip


@TORCH.layer(*_names("DataLoader", "dataloader"))
class DataLoader:
    """Batches of a dataset; the last one is smaller where the items do not fill it."""

    @staticmethod
    def init(
        t: Core, dataset: Value, batch_size: Value = 1, shuffle: Value = None,
        sampler: Value = None, batch_sampler: Value = None, num_workers: Value = 0,
        collate_fn: Value = None, pin_memory: Value = False, drop_last: Value = False,
        timeout: Value = 0, worker_init_fn: Value = None, multiprocessing_context: Value = None,
        generator: Value = None, *, prefetch_factor: Value = None,
        persistent_workers: Value = False, pin_memory_device: Value = "", in_order: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if sampler is not None and shuffle is True:
            t.fail("value", "ValueError: sampler and shuffle exclude each other")
        if batch_sampler is not None:
            batch_size = None
        if isinstance(batch_size, bool) or not (batch_size is None or is_size(batch_size)):
            t.fail("type", f"expected an integer as batch_size, got {t.show(t.wrap(batch_size))}")
        _need_length(t, dataset, sampler, batch_sampler)
        return {
            "dataset": dataset, "batch_size": batch_size, "sampler": sampler,
            "batch_sampler": batch_sampler, "num_workers": num_workers, "collate_fn": collate_fn,
            "pin_memory": pin_memory, "drop_last": drop_last, "generator": generator,
        }  # fmt: skip

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        return _batches(t, self)

    @staticmethod
    def __iter__(t: Core, self: View) -> Value:
        source, size = self.raw("dataset"), self.batch_size
        if isinstance(source, Unknown):
            return source
        item, count = _item(t, self, source)
        own = self.raw("batch_sampler")
        if own is not None:
            found = t.sequence(own)
            number = found.length if isinstance(found, Many) else len(found)
            inner = found.element if isinstance(found, Many) else None
            length = _length(t, inner) if isinstance(inner, ListRef) else t.emit.fresh("batch")
            return t.new_list(Many(_batch(t, self, item, length), number))
        if size is None:
            return t.new_list(Many(item, count))
        number = count // size if self.drop_last is True else -(-count // size)
        if isinstance(number, int) and number <= _FEW:
            sizes = [minimum(size, count - size * k) for k in range(number)]
            return t.new_list([_batch(t, self, item, n) for n in sizes])
        if self.drop_last is True or count % size == 0:
            return t.new_list(Many(_batch(t, self, item, size), number))
        some = _at_most(t, size)
        element = _batch(t, self, item, some)
        return t.new_list(
            Many(element, number, lambda k: _batch(t, self, item, minimum(size, count - size * k)))
        )


def _item(t: Core, self: View, source: Value) -> tuple[Value, Value]:
    """Return one item of a loader's dataset, and how many there are."""
    iterated = isinstance(source, Instance) and (
        "torch.utils.data.IterableDataset" in t.tables.libraries_of(t, source)
    )
    if iterated:
        found = t.sequence(source)
        items = found if isinstance(found, Many) else t.many_items(found)
        return items.element, items.length
    count = _count(t, self)
    return _position(t, lambda index: _fitting(t, self, t.item(source, index), index), count), count


def _fitting(t: Core, self: View, item: Value, index: Value) -> Value:
    """Return an item, whose size has to be that of all others where they become a batch."""
    names = symbols_of(index) if isinstance(index, Expr) else frozenset()
    if self.raw("collate_fn") is not None or self.batch_size in (None, 1) or len(names) != 1:
        return item
    for part in item if type(item) is tuple else (item,):
        if isinstance(part, Tensor) and any(
            isinstance(size, Expr) and names <= symbols_of(size) for size in part.shape or ()
        ):
            t.fail("shape-mismatch", "default_collate expects items of one size, got items whose "
                   f"size depends on their place: {t.show(part)}", part,
                   remedy="pad them, or give the loader a collate_fn")  # fmt: skip
    return item


@TORCH.function(*_names("get_worker_info"))
def get_worker_info(t: Core) -> Value:
    """Return None: batches are made in this process."""
    return None


__all__ = ["DataLoader", "collate"]
