"""Tensors that are changed in place: every name of theirs gets the new value."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import (
    PART,
    WRITTEN,
    base_of,
    has_others,
    keep_order,
    may_be_copied,
    memory_of,
    own,
    share,
)
from hagane.frontends.python.values.objects import Frame
from hagane.frontends.python.values.values import (
    Host,
    Library,
    LibraryMethod,
    Ref,
    Tensor,
    Truth,
    Value,
)
from hagane.ops.builder import interpreting
from hagane.ops.control.own_gradient import own_gradient
from hagane.ops.gradient.marks import mark_passed
from hagane.symbolic import Expr, definitely_equal, symbols_of


def check_writable(core: Core, x: Tensor, remedy: str, *, by_statement: bool = False) -> None:
    """Refuse to change a tensor that others hold in a way that no graph tells.

    Args:
        core: The interpreter.
        x: The tensor.
        remedy: The code to write instead.
        by_statement: Whether the innermost function does it by a statement of its own.

    Raises:
        CheckError: The caller would see the change, or a part of an expression, or the tensor that
            this one is a view of.
    """
    _refuse_argument(x, remedy)
    if core.emit.is_late(x.value):
        raise CheckError(
            "capture",
            "an operation in place changes a tensor that a generator reads or hands out, whose "
            f"turns come in between; {remedy}",
        )
    if not _is_first(core, x, by_statement=by_statement):
        raise CheckError(
            "capture",
            "an operation in place follows others in one expression, which may hold what it "
            "changes; give it a statement of its own",
        )
    if base_of(x.value) is not x.value and not _is_own(x):
        raise CheckError(
            "capture",
            "an operation in place changes a tensor that is part of another one, which changes "
            f"with it; {remedy}",
        )


def _refuse_argument(x: Tensor, remedy: str) -> None:
    if _is_argument(x):
        raise CheckError(
            "capture",
            f"an operation in place changes an argument, which the caller sees; {remedy}",
        )


@dataclass(frozen=True, slots=True)
class Into:
    """A call whose result goes into an array that it is given.

    Attributes:
        target: The array: the argument ``out``.
        where: The elements that are written, True for all.
        arguments: The call's other arguments.
        keywords: Those given by name.
    """

    target: Tensor
    where: Value
    arguments: Sequence[Value]
    keywords: Mapping[str, Value]


def written_into(
    name: str, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Into | None:
    """Return a call of NumPy or PyTorch that has an argument ``out``; None for others.

    Raises:
        CheckError: Results go into several arrays, or only some elements are computed at all.
    """
    library, _, last = name.rpartition(".")
    if library.partition(".")[0] not in ("numpy", "torch"):
        return None
    given, named = list(arguments), dict(keywords)
    ufunc = getattr(np, last, None) if library == "numpy" else None
    out = named.pop("out", None)
    if isinstance(ufunc, np.ufunc):
        if out is None and len(given) == ufunc.nin + 1:
            out = given.pop()
        where = named.pop("where", True)
    else:
        place = _place_of_out(handler) if len(given) > 2 else len(given)
        if out is None and place < len(given):
            out, given[place] = given[place], None
        where = True
    if isinstance(out, tuple | list) and len(out) == 1:
        out = out[0]
    if out is None and where is not True:
        raise CheckError(
            "capture",
            f"'{name}' with where= leaves elements as they happen to be in memory; give it out=, "
            "as in out=np.zeros_like(x)",
        )
    if out is None:
        return None
    if not isinstance(out, Tensor):
        raise CheckError("capture", f"'{name}' writes into several arrays; use its results")
    return Into(out, where, given, named)


@cache
def _place_of_out(handler: Any) -> int:
    """Return the place of the argument ``out`` of a function, the interpreter left out."""
    names = [] if handler is None else list(inspect.signature(handler).parameters)[1:]
    return names.index("out") if "out" in names else len(names) + 100


def copied(core: Core, made: Value, x: Tensor | None) -> Value:
    """Return a tensor that shares its memory with no other one, from any operator."""
    if not isinstance(made, Tensor):
        return made
    if x is not None and made.value is x.value:
        made = core.op("Identity", made)
    own(made.value)
    return made


def write(
    core: Core, x: Tensor, made: Value, renewed: dict[ir.Value, Tensor] | None = None,
    views: dict[ir.Value, ir.Value] | None = None,
    view_now: Callable[[Tensor, Tensor], Tensor | None] | None = None,
) -> Value:  # fmt: skip
    """Give all names of a tensor the content that it has now.

    Args:
        core: The interpreter.
        x: The tensor.
        made: Its new content.
        renewed: Takes the tensors that stand for it and for its views from here on.
        views: Takes what stands for values between it and its views, which may have no names.
        view_now: Returns a view of known content, which no operator took from the tensor, as one
            of the new content; None for what is no view of it.

    Raises:
        CheckError: The new one is of another type or shape.
    """
    made = fitting(core, x, made)
    if core.emit.still:
        made = unrecorded(core, x, made)
    check_handed_on(core, x)
    held = [t for content in core.heap.contents.values() for t in tensors_in(content)]
    if base_of(made.value) is not made.value or any(t.value is made.value for t in held):
        made = copied(core, core.op("Identity", made), None)
    _note(core, x, made)
    keep_order(made.value, x.value)
    # Of a part, and of its new contents, the whole may be written next.
    if base_of(x.value) is not x.value or has_others(x.value):
        share(made.value, memory_of(x.value))
    fresh = {x.value: made}
    views = {} if views is None else views
    memory = memory_of(x.value)
    for view in held:
        if view.value in fresh or view.value is x.value or may_be_copied(view.value):
            continue  # of a copy, the old content may not be read any more: see `written_since`
        if base_of(view.value) is x.value:
            value = core.emit.again(view.value, x.value, made.value, views)
            fresh[view.value] = replace(view, value=value, known=None)
            core.emit.tensors[value] = fresh[view.value]
        elif memory_of(view.value) & memory:
            now = None if view_now is None else view_now(view, made)
            if now is not None:
                fresh[view.value] = now
            elif view.known is not None:
                fresh[view.value] = replace(view, known=None)  # it may be another one
    if renewed is not None:
        renewed.update(fresh)
    rename(core, fresh)
    return made


def rename(core: Core, fresh: Mapping[ir.Value, Tensor]) -> None:
    """Give all names of tensors the ones that stand for them from here on."""
    for key, content in list(core.heap.contents.items()):
        if any(tensor.value in fresh for tensor in tensors_in(content)):
            # Another path may have the same content, which the heap copies for this one.
            core.heap.contents[key] = _replaced(core.heap[key], fresh)


def unrecorded(core: Core, old: Tensor, new: Tensor) -> Tensor:
    """Return the content that a write without gradients gives a tensor, in a loss.

    Gradients pass over the write: they go on to what the tensor was computed from, all of them, as
    its record stays as it was (``torch.no_grad``, ``.data``, ``.detach()``).
    """
    if not core.emit.builds or core.emit.began_still or not old.dtype.is_floating_point():
        return new
    trained, closed = core.emit.gradients_from(old)
    if closed and not trained:
        return new
    if core.emit.training is None:  # whoever wants gradients of the graph is told
        made = copied(core, core.op("Identity", new), None)
        node = core.emit.value_of(made).producer()
        assert node is not None
        mark_passed(node)
        return made
    before, core.emit.still = core.emit.still, False
    try:
        with interpreting(core.emit):
            (made,) = own_gradient([new], [old], lambda gradient: [gradient])
    finally:
        core.emit.still = before
    return replace(new, value=made.value, known=None)


def fitting(core: Core, x: Tensor, made: Value) -> Tensor:
    """Return the new content of a tensor that changes in place.

    Raises:
        CheckError: It is of another type or shape.
    """
    if isinstance(made, Tensor) and made.shape != x.shape and _may_be_alike(core, made, x):
        assert x.shape is not None
        made = core.op("Identity", made)
        core.emit.show_sizes(made, x.shape)
    if not isinstance(made, Tensor) or made.dtype != x.dtype or made.shape != x.shape:
        raise CheckError(
            "capture",
            f"an operation in place makes {core.show(made)} of {core.show(x)}; in place, type and "
            "shape stay",
        )
    return made


def _may_be_alike(core: Core, made: Tensor, x: Tensor) -> bool:
    """Whether sizes of which nobody but the run knows are all that differs between two shapes."""
    if made.shape is None or x.shape is None or len(made.shape) != len(x.shape):
        return False
    nameless = core.knowledge.nameless
    return all(
        definitely_equal(a, b)
        or any(name in nameless for size in (a, b) for name in symbols_of(size))
        for a, b in zip(made.shape, x.shape, strict=True)
    )


def check_handed_on(core: Core, x: Tensor) -> None:
    """Refuse to change a tensor that lies outside of the loop that changes it."""
    if not core.collector.muted and core.emit.leaves_loop(base_of(x.value)):
        raise CheckError(
            "capture",
            "an operation in place in a loop changes a tensor that iterations have no name for "
            "to hand it on; give it one before the loop, and write rows by their numbers: for i in "
            "range(len(x)): x[i] += y",
        )


def renew(core: Core, x: Tensor, new: Callable[[Tensor], Any]) -> None:
    """Give a tensor that outlives the call, such as running statistics, another content.

    Args:
        core: The interpreter.
        x: The tensor.
        new: Makes the new content of the present one, in operators.

    Raises:
        CheckError: The caller gave the tensor, who would see the change.
    """
    if not core.emit.builds:
        return
    training = core.emit.training
    if training is not None and not training.written:
        if core.emit.object_of(x) is not None:
            with interpreting(core.emit):
                core.emit.change(x, new)
            return
        training.written = True  # the program wrote it before
    if training is None:
        _refuse_argument(x, "give the module statistics of its own, or call eval() first")
    with interpreting(core.emit):
        made = new(x)
    write(core, x, made if training is None else core.emit.stopped(made))


def _note(core: Core, x: Tensor, made: Tensor) -> None:
    """Note that the memory of a tensor has the content of a new value from here on."""
    here = core.here()
    place = "" if here is None else f"{here.file}:{here.line}"
    when = core.emit.born(made.value)
    when = core.emit.made_so_far() if when < 0 else when
    marks = {(part, when, place) for part in memory_of(x.value)}
    core.heap.contents[WRITTEN] = core.heap.contents[WRITTEN] | marks


def _is_first(core: Core, x: Tensor, *, by_statement: bool) -> bool:
    """Whether nothing but names of functions was evaluated before, in all expressions around."""
    held = {
        key
        for key, content in core.heap.contents.items()
        if any(tensor.value is x.value for tensor in tensors_in(content))
    }
    frame = core.frame
    if by_statement and frame is not None:
        held.discard(frame.key)
        frame = frame.caller
    while frame is not None and held:
        node = core.collector.nodes.get(frame.key)
        body = None if frame.function is None else frame.function.node
        if isinstance(node, ast.expr) and body is not None:
            around: list[ast.AST] = [body]
            while around:
                top = around.pop()
                inside = [
                    c for c in ast.iter_child_nodes(top) if any(d is node for d in ast.walk(c))
                ]
                if not inside:
                    break
                if isinstance(top, ast.expr) and top is not body and not _leads(top, inside[0]):
                    parts = _before(top, inside[0])
                    if parts is None or any(_may_hold(frame, part, x) for part in parts):
                        return False
                around.append(inside[0])
        held.discard(frame.key)  # frames around hold only named values
        frame = frame.caller
    return True


def _leads(top: ast.expr, inner: ast.AST) -> bool:
    """Whether a part of an expression is evaluated before all others that hold tensors."""
    if top is inner:
        return True
    if isinstance(top, ast.Call):
        named = all(isinstance(n, ast.Name | ast.Attribute | ast.expr_context)
                    for n in ast.walk(top.func))  # fmt: skip
        return inner is top.func or (named and bool(top.args) and inner is top.args[0])
    return next(iter(ast.iter_child_nodes(top)), None) is inner


_IN_ORDER = (
    ast.Tuple, ast.List, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Call, ast.Compare, ast.Subscript,
    ast.Attribute,
)  # fmt: skip


def _before(top: ast.expr, inner: ast.AST) -> list[ast.AST] | None:
    """Return the parts of an expression evaluated before one of them, None if that is not known."""
    if isinstance(top, ast.IfExp):
        return [] if inner is top.test else [top.test]
    if not isinstance(top, _IN_ORDER):
        return None
    parts = list(ast.iter_child_nodes(top))
    return [part for part in parts[: parts.index(inner)] if isinstance(part, ast.expr)]


def _may_hold(frame: Frame, part: ast.AST, x: Tensor) -> bool:
    """Whether the value of a part of an expression may have the memory of a tensor.

    What objects hold gets the new content by their names.
    """
    value = frame.made.get(part, x)
    if isinstance(value, LibraryMethod):  # which holds no more than that
        value = value.receiver
    own = {x.value, *memory_of(x.value)}
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, Tensor):
            if own & {item.value, *memory_of(item.value)}:
                return True
        elif not isinstance(item, int | float | str | Expr | Truth | Ref | Host | Library | None):
            return True
    return False


def _is_own(x: Tensor) -> bool:
    """Whether all the memory that a tensor may have was made by the program itself."""
    return all(part.producer() is not None or has_others(part) for part in memory_of(x.value))


def _is_argument(x: Tensor) -> bool:
    """Whether a tensor is an input of the graph that the caller holds."""
    graph = x.value.graph if x.value.is_graph_input() else None
    held = x.value.meta.keys() & {"hagane.state", PART}  # whose new content is an output
    return graph is not None and graph.name == "captured" and not held


def tensors_in(content: Any) -> Iterator[Tensor]:
    """Yield the tensors that an object of the program holds."""
    if isinstance(content, Tensor):
        yield content
    elif isinstance(content, dict):
        for item in content.values():
            yield from tensors_in(item)
    elif isinstance(content, tuple | list):
        for item in content:
            yield from tensors_in(item)


def _replaced(content: Any, fresh: Mapping[ir.Value, Tensor]) -> Any:
    if isinstance(content, Tensor):
        return fresh.get(content.value, content)
    if isinstance(content, dict):
        for name, item in content.items():
            content[name] = _replaced(item, fresh)
        return content
    if type(content) in (tuple, list):
        return type(content)(_replaced(item, fresh) for item in content)
    return content


__all__ = [
    "Into", "check_handed_on", "check_writable", "copied", "fitting", "rename", "renew",
    "tensors_in", "write", "written_into",
]  # fmt: skip
