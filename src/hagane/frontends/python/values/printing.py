"""Types as text: ``torch.Tensor(dtype=float32, shape=(2 (bsize), 64, 57))``."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.heap import Heap
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    ModuleRef,
    Super,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    Choice,
    Device,
    DictRef,
    DType,
    Host,
    Library,
    LibraryMethod,
    ListRef,
    Many,
    Method,
    Range,
    Real,
    SetRef,
    Stream,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Dim, Expr, symbols_of, written_form
from hagane.symbolic.questions import Knowledge

_MAX_ITEMS = 8
_MAX_DEPTH = 4
_FUNCTIONS = (Function, Bound, Wrapped, Method, LibraryMethod)


def size_parts(dim: Dim, knowledge: Knowledge) -> tuple[int | None, str | None]:
    """Return a size's number in the example and its formula; None for an unknown one."""
    if not isinstance(dim, Expr):
        return int(dim), None
    if not knowledge.nameless.isdisjoint(symbols_of(dim)):
        return None, None
    return knowledge.value_of(dim), written_form(dim)


def show_size(dim: Dim, knowledge: Knowledge) -> str:
    """Return ``57 (height // 4)``, ``57``, ``height // 4`` or ``None``."""
    value, formula = size_parts(dim, knowledge)
    if value is None:
        return formula or "None"
    return str(value) if formula is None else f"{value} ({formula})"


def show_dims(dims: Sequence[Dim]) -> str:
    """Return sizes in the form of a tuple, as they are called."""
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def show_shape(shape: tuple[Dim, ...] | None, knowledge: Knowledge) -> str:
    """Return a shape in the form of a tuple."""
    if shape is None:
        return "..."
    comma = "," if len(shape) == 1 else ""
    return f"({', '.join(show_size(dim, knowledge) for dim in shape)}{comma})"


def show_tensor(tensor: Tensor, knowledge: Knowledge) -> str:
    """Return a tensor's type without its class: ``float32(2 (bsize), 64)``."""
    return f"{dtype_name(tensor.dtype)}{show_shape(tensor.shape, knowledge)}"


def show_type(value: Value, heap: Heap, knowledge: Knowledge, depth: int = 0) -> str:
    """Return the printed type of any value."""
    if isinstance(value, Tensor):
        device = "" if value.device in ("cpu", "") else f", device={value.device}"
        shape = show_shape(value.shape, knowledge)
        return f"{value.kind}(dtype={dtype_name(value.dtype)}, shape={shape}{device})"
    simple = _show_simple(value, knowledge)
    if simple is not None:
        return simple
    if depth >= _MAX_DEPTH:
        return "..."

    def inner(item: Value) -> str:
        return show_type(item, heap, knowledge, depth + 1)

    if isinstance(value, tuple):
        return f"({_show_items(value, inner)}{',' if len(value) == 1 else ''})"
    if isinstance(value, ListRef):
        shown = f"[{_show_content(heap[value], inner, knowledge)}]"
        return f"deque({shown})" if isinstance(value, Deque) else shown
    if isinstance(value, SetRef):
        return f"{{{_show_content(heap[value], inner, knowledge)}}}"
    if isinstance(value, Stream):
        return f"iterator[{_show_content(heap[value.key], inner, knowledge)}]"
    if isinstance(value, DictRef):
        content = heap.contents[value.key]
        if isinstance(content, Choice):  # of keys that the data decide
            return "{...}"
        if not isinstance(content, dict):
            return f"{{{_show_content(content, inner, knowledge)}}}"
        items = [f"{key!r}: {inner(item)}" for key, item in list(content.items())[:_MAX_ITEMS]]
        return f"{{{', '.join([*items, '...'] if len(content) > _MAX_ITEMS else items)}}}"
    if isinstance(value, Choice):
        return f"{inner(value.yes)} | {inner(value.no)}"
    if isinstance(value, slice):
        parts = [
            "" if p is None else inner(p).removeprefix("int(").removesuffix(")")
            for p in (value.start, value.stop, value.step)
        ]
        return f"slice({':'.join(parts)})"
    return type(value).__name__


def _show_simple(value: Value, knowledge: Knowledge) -> str | None:
    if value is None or value is Ellipsis or isinstance(value, range):
        return repr(value)
    if isinstance(value, bool | float | str | bytes | complex):
        return f"{type(value).__name__}({value!r})"
    if isinstance(value, int | Expr):
        return f"int({show_size(value, knowledge)})"
    if isinstance(value, Real):
        return "float" if value.formula is None else f"float({show_size(value.formula, knowledge)})"
    if isinstance(value, Truth):
        return "bool"
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, Range):
        parts = (value.start, value.stop, value.step)
        return f"range({', '.join(show_size(part, knowledge) for part in parts)})"
    return _show_named(value)


def _show_named(value: Value) -> str | None:
    match value:
        case DType(dtype=dtype, library=library):
            return f"{library}.{dtype_name(dtype)}"
        case Device(name=name):
            return f"device({name!r})"
        case Instance(cls=cls):
            return cls.name
        case Class(name=name):
            return f"class {name}"
        case ModuleRef(name=name) | Library(name=name):
            return name
        case Host(object=found):
            return getattr(found, "__qualname__", type(found).__qualname__)
        case Super():
            return "super"
        case _ if isinstance(value, _FUNCTIONS):
            return f"function {name_of(value)}"
    return None


def name_of(value: Value) -> str:
    """Return the name of a function."""
    match value:
        case Function(name=name) | Method(name=name) | LibraryMethod(name=name):
            return name
        case Bound(function=function) | Wrapped(function=function):
            return name_of(function)
        case Class(name=name) | Library(name=name):
            return name
        case Instance(cls=cls):
            return cls.name
        case Host(object=found):
            return str(getattr(found, "__name__", type(found).__name__))
    return type(value).__name__


def _show_items(items: tuple[Value, ...], inner: object) -> str:
    assert callable(inner)
    texts = [inner(item) for item in items[:_MAX_ITEMS]]
    if len(items) > _MAX_ITEMS:
        if _are_of_one_class(items) or all(inner(item) == texts[0] for item in items):
            return f"{texts[0]}, ... ({len(items)} of them)"
        texts.append("...")
    return ", ".join(texts)


def _are_of_one_class(items: tuple[Value, ...]) -> bool:
    """Whether items are objects of one class, which are shown alike."""
    cls = items[0].cls if isinstance(items[0], Instance) else None
    return cls is not None and all(type(x) is Instance and x.cls is cls for x in items)


def _show_content(content: Value, inner: object, knowledge: Knowledge) -> str:
    assert callable(inner)
    if isinstance(content, Many):
        return f"{inner(content.element)}, ... ({show_size(content.length, knowledge)} of them)"
    return _show_items(content, inner) if isinstance(content, tuple) else "..."
