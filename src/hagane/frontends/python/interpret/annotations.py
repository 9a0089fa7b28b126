"""Shapes that annotations promise: made into inputs, or compared with given values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from hagane.errors import InvalidArgument
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Frame, Function
from hagane.frontends.python.values.printing import show_tensor
from hagane.frontends.python.values.type_text import (
    JAXTYPING,
    Axis,
    ContainerText,
    PlainText,
    SizeText,
    TensorText,
    TypeText,
    parse_jaxtyping,
    parse_type,
    tensor_text,
)
from hagane.frontends.python.values.values import (
    Many,
    Outside,
    Real,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Dim, Expr, evaluate, symbol, symbols_of
from hagane.symbolic.expression import Atom

_KINDS = {
    "Tensor": "torch.Tensor", "ndarray": "numpy.ndarray", "NDArray": "numpy.ndarray",
    "Variable": "chainer.Variable", "Array": "numpy.ndarray",
}  # fmt: skip


def read_annotation(node: ast.expr | None) -> tuple[TypeText, str] | None:
    """Return the type that an annotation promises and the class it names; None for others.

    Raises:
        InvalidArgument: It is meant as a shape, and is none.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        tensor = tensor_text(node.value)  # "float32[batch, 3]"
        if tensor is not None:
            return tensor, ""
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return read_annotation(node.left) or read_annotation(node.right)
    if not isinstance(node, ast.Subscript):
        return None
    name = ast.unparse(node.value).rpartition(".")[2]
    inner = node.slice
    if name in ("Optional", "Annotated"):
        return read_annotation(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
    if name == "Shaped" and isinstance(inner, ast.Constant) and isinstance(inner.value, str):
        return parse_type(inner.value), ""
    if name not in JAXTYPING or not isinstance(inner, ast.Tuple) or len(inner.elts) != 2:
        return None
    array, text = inner.elts
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return None
    kind = _KINDS.get(ast.unparse(array).rpartition(".")[2], "")
    return parse_jaxtyping(name, text.value), kind


class Annotations(Core):
    """Makes values from types, and compares values with them."""

    def make_value(self, text: TypeText, name: str, kind: str) -> Value:
        """Return a value of a type; sizes become named symbols, examples are remembered."""
        return self.emit.argument(self._made(text, name, kind), name)

    def _made(self, text: TypeText, name: str, kind: str) -> Value:
        match text:
            case TensorText():
                return self._make_tensor(text, name, kind)
            case ContainerText(kind=container, items=items, times=times):
                if times is not None:
                    item = self.make_value(items[0], name, kind)
                    self._note_names(times)
                    if isinstance(times, int):
                        return self.new_list([item] * times)
                    return self.new_list(Many(item, times))
                made = [
                    self.make_value(item, self.emit.item_name(name, place), kind)
                    for place, item in enumerate(items)
                ]
                return tuple(made) if container == "tuple" else self.new_list(made)
            case SizeText(size=size, example=example):
                self._note_names(size, example)
                return size
            case PlainText(kind="value", value=value):
                return value
            case PlainText(kind="int"):
                self.knowledge.lowest[name] = None
                return symbol(name)
            case PlainText(kind="float"):
                return Real()
            case PlainText(kind="bool"):
                return Truth(self.unknown_truth())
        return Unknown(f"the value of '{name}'")

    def _make_tensor(self, text: TensorText, name: str, kind: str) -> Tensor:
        shape: list[Dim] = []
        for axis in text.axes:
            if axis.spread is not None:
                raise InvalidArgument(
                    f"input '{name}': any number of axes (...) cannot be checked; "
                    "give each axis a size or a name"
                )
            if axis.size is None:
                shape.append(self._any_size(name))
            else:
                self._note_names(axis.size, axis.example)
                shape.append(axis.size)
        dtype = (text.dtypes or JAXTYPING["Float"])[0]
        return self.emit.new(dtype, tuple(shape), kind=kind, name=name)

    def _any_size(self, name: str) -> Expr:
        made = self.emit.fresh(f"{name}_size")
        self.knowledge.lowest[str(made)] = 1
        return made

    def _note_names(self, size: Dim, example: int | None = None) -> None:
        only = _only_name(size)
        if only is None:
            self.emit.exact.update(symbols_of(size))
        else:
            self.emit.bare.add(only)
        for name in symbols_of(size):
            self.knowledge.lowest.setdefault(name, 1)
            if example is not None:
                self.knowledge.sample[name] = example

    # Comparison.

    def check_arguments(self, frame: Frame, function: Function) -> None:
        """Compare arguments with the shapes that the function's annotations promise."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        names = self.heap[frame.key]
        bound: dict[str, Dim] = {}
        names["<sizes>"] = bound
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        for argument in arguments:
            if argument.annotation is not None:
                given = names.get(argument.arg)
                if isinstance(given, Outside):
                    names[argument.arg] = self.as_annotated(argument.annotation, given)
                self._check(
                    f"argument '{argument.arg}'",
                    argument.annotation,
                    names.get(argument.arg),
                    bound,
                )

    def check_result(self, frame: Frame, function: Function, result: Value) -> Value:
        """Compare the result with the shape that the function's annotation promises."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        if node.returns is not None:
            bound = self.heap[frame.key].get("<sizes>", {})
            self._check("the result", node.returns, result, bound)
        return result

    def check_annotated(self, name: str, annotation: ast.expr, value: Value) -> Value:
        """Compare a value with the shape that an annotation promises; one from outside has it."""
        frame = self.frame
        assert frame is not None
        bound = self.heap[frame.key].setdefault("<sizes>", {})
        if isinstance(value, Outside) and not self.emit.builds:
            return self._read_as(name, annotation, self.as_annotated(annotation, value), bound)
        self._check(f"'{name}'", annotation, value, bound)
        return value

    def _read_as(
        self, name: str, annotation: ast.expr, value: Value, bound: dict[str, Dim]
    ) -> Value:
        """Return a value from outside, such as a file's, as the tensor that an annotation tells."""
        if not isinstance(value, Outside) or not self.domain.annotated:
            return value
        try:
            found = read_annotation(annotation)
            if found is None or not isinstance(found[0], TensorText):
                return value
            made = self._make_tensor(found[0], name, found[1])
        except InvalidArgument as error:
            raise CheckError("annotation", str(error)) from None
        told = {size: bound[size] for size in map(str, made.shape or ()) if size in bound}
        bound.update({size: symbol(size) for axis in made.shape or () for size in symbols_of(axis)
                      if size not in bound})  # fmt: skip
        made.shape = tuple(evaluate(size, told) for size in made.shape or ())
        return made

    def _check(self, what: str, annotation: ast.expr, value: Value, bound: dict[str, Dim]) -> None:
        if not self.domain.annotated:
            return
        try:
            found = read_annotation(annotation)
        except InvalidArgument as error:
            raise CheckError("annotation", str(error)) from None
        if found is not None and isinstance(value, Tensor) and isinstance(found[0], TensorText):
            self._compare(what, found[0], value, bound)

    def _compare(self, what: str, text: TensorText, value: Tensor, bound: dict[str, Dim]) -> None:
        if text.dtypes and value.dtype not in text.dtypes:
            expected = " or ".join(dtype_name(dtype) for dtype in text.dtypes[:3])
            self._mismatch(what, f"expected {expected}", value)
        if value.shape is None:
            return
        spread = next((i for i, axis in enumerate(text.axes) if axis.spread is not None), None)
        count = len(text.axes) - (spread is not None)
        if len(value.shape) < count or (spread is None and len(value.shape) != count):
            self._mismatch(what, f"expected {count} axes", value)
        after = 0 if spread is None else len(text.axes) - spread - 1
        pairs = list(zip(text.axes[: len(text.axes) - after], value.shape, strict=False))
        if spread is not None:
            pairs = list(zip(text.axes[:spread], value.shape, strict=False))
            pairs += list(
                zip(text.axes[spread + 1 :], value.shape[len(value.shape) - after :], strict=True)
            )
        for axis, size in pairs:
            self._compare_axis(what, axis, size, value, bound)

    def _compare_axis(
        self, what: str, axis: Axis, size: Dim, value: Tensor, bound: dict[str, Dim]
    ) -> None:
        if axis.size is None or (axis.or_one and size == 1):
            return
        name = _only_name(axis.size)
        if name is not None and name not in bound:
            bound[name] = size
            return
        expected = evaluate(axis.size, bound)
        unbound = symbols_of(axis.size) - bound.keys()
        if unbound:
            # The annotation's other names are those of the inputs, or not known here.
            return
        if self.emit.differ(size, expected):
            told = f"{axis.size} = {expected}" if symbols_of(axis.size) else f"{expected}"
            self._mismatch(what, f"expected {told} where {size} came", value)

    def _mismatch(self, what: str, message: str, value: Tensor) -> None:
        raise CheckError(
            "annotation",
            f"{what}: {message}, got {show_tensor(value, self.knowledge)}",
            tensors=(value,),
            counterexample=self.emit.counterexample,
        )


def _only_name(size: Dim) -> str | None:
    if isinstance(size, Expr):
        names = symbols_of(size)
        if len(names) == 1 and size == symbol(next(iter(names))):
            return next(iter(names))
    return None


Maker = Callable[[TypeText, str, str], Value]
__all__ = ["Annotations", "Atom", "Mapping", "read_annotation"]
