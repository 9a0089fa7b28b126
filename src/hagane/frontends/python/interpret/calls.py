"""Calls: arguments bound as Python binds them, functions interpreted at every call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import BuiltinFunctionType
from typing import Any

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.fitting import check_arguments, check_method
from hagane.frontends.python.interpret.library_calls import LibraryCalls
from hagane.frontends.python.interpret.recursion import comes_nearer
from hagane.frontends.python.interpret.setting.metaclasses import refuse_construction
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Frame,
    Function,
    Generated,
    Instance,
    Managed,
    ModuleRef,
    Super,
    Wrapped,
    is_configuration,
    is_enumeration,
)
from hagane.frontends.python.values.printing import name_of
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DType,
    Host,
    Library,
    LibraryMethod,
    Many,
    Method,
    Unknown,
    Value,
)
from hagane.graph.types import dtype_name

# Calls of a function by itself that are followed, where open conditions decide whether there are
# more (in graphs: by data alone, by known arguments too), and where all is known.
_STILL, _MAX_RECURSION, _DEEPEST = 6, 40, 150
# Functions that take all items at once; two of them may stop early.
_CONSUMERS = (list, tuple, set, dict, sorted, sum, max, min, any, all)
_READERS = frozenset((*_CONSUMERS, frozenset, zip, enumerate, map, filter, iter)) - {dict}


class Calls(LibraryCalls):
    """Calls functions, methods, classes and objects of the program."""

    tables: Tables

    def _Call(self, node: ast.Call) -> Value:
        function = self.evaluate(node.func)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and _is_super(function):
            return self._super(node)
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="extend" | "update"), args=[grown]):
                if self.extend_in_turn(owner, grown):
                    return None
        arguments: list[Value] = []
        for argument in node.args:
            if not isinstance(argument, ast.Starred):
                host = function.object if isinstance(function, Host) else None
                if host not in _CONSUMERS:
                    arguments.append(self.evaluate(argument))
                else:
                    whole = host not in (any, all) and _is_last(node, argument)
                    arguments.append(self.evaluate_to_end(argument, whole=whole))
                continue
            items = self.sequence(self.evaluate_to_end(argument.value))
            if isinstance(items, Many):
                return self._unpacked_many(function, arguments, items)
            arguments += items
        named = [(each.arg, self.evaluate(each.value)) for each in node.keywords]
        self.emit.label = self.collector.text(node.func)
        return self._named_call(function, arguments, {}, named)

    def _named_call(
        self,
        function: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
        named: Sequence[tuple[str | None, Value]],
    ) -> Value:
        """Call a function with keywords, and with those that stand in dictionaries.

        Args:
            function: The function.
            arguments: Its arguments by position.
            keywords: Those by keyword so far.
            named: Further ones; dictionaries have no name.
        """
        keywords = dict(keywords)
        for place, (name, value) in enumerate(named):
            if name is not None:
                keywords[name] = value
                continue
            value = self.settle(self.parted(value))
            if isinstance(value, Choice):
                follow = partial(
                    self._named_from, function, arguments, keywords, named[place + 1 :]
                )
                return self.either(value, follow)
            content = self.mapping(value)
            if content is None:
                if isinstance(value, Unknown):
                    return value
                return self.lost("keyword arguments from a dictionary that is not known")
            keywords.update(content)
        return self.settle(self.call(function, arguments, keywords))

    def _named_from(
        self,
        function: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
        named: Sequence[tuple[str | None, Value]],
        first: Value,
    ) -> Value:
        return self._named_call(function, arguments, keywords, [(None, first), *named])

    def _unpacked_many(self, function: Value, arguments: list[Value], items: Many) -> Value:
        if isinstance(function, Host) and function.object is zip:
            columns = None if arguments else self.columns_of(items)
            if columns is not None:
                return self.new_stream(columns)
            return self.lost("zip(*items) of a number of items that is not known")
        if isinstance(items.element, Unknown) and items.element.failed:
            return items.element
        return self.lost(f"a call of {name_of(function)} with a number of arguments not known")

    def _super(self, node: ast.Call) -> Value:
        if node.args:
            start, receiver = (self.evaluate(argument) for argument in node.args[:2])
            return Super(start, receiver)
        frame = self.frame
        while frame is not None and (frame.function is None or frame.function.owner is None):
            frame = frame.parent
        if frame is None or frame.function is None or frame.function.owner is None:
            raise CheckError("call", "super() outside of a method")
        return Super(frame.function.owner, frame.receiver)

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program."""
        if isinstance(function, Method):
            check_method(function.receiver, function.name, arguments, keywords)
        if isinstance(function, Host) and isinstance(function.object, type | BuiltinFunctionType):
            check_arguments(function.object, arguments, keywords)
            many = function.object in (max, min) and len(arguments) > 1
            if function.object in _READERS and not many:
                arguments = [self.read_once(argument) for argument in arguments]
        return self.domain.call(function, arguments, keywords)

    def apply(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program, with Python's own meaning."""
        match function:
            case Function():
                return self._call_function(function, arguments, keywords)
            case Bound(function=inner, receiver=receiver):
                return self.call(inner, [receiver, *arguments], keywords)
            case Wrapped(kind="partial"):
                return self.call(
                    function.function,
                    [*function.arguments, *arguments],
                    {**function.keywords, **keywords},
                )
            case Wrapped(kind="reference"):
                return function.function
            case Wrapped(kind="cached") if self.emit.builds:
                return self.call_kept(function, arguments, keywords)
            case Wrapped(kind="dispatching"):
                return self.lost("a function that depends on the class of its argument")
            case Wrapped(kind="managed"):
                return Managed(function.function, tuple(arguments), dict(keywords))
            case Wrapped(kind="within", arguments=(manager,)):
                self.call(self.attribute(manager, "__enter__"), [], {})
                try:
                    return self.call(function.function, arguments, keywords)
                finally:
                    self.call(self.attribute(manager, "__exit__"), [None, None, None], {})
            case Wrapped():
                return self.call(function.function, arguments, keywords)
            case Generated():
                return self.fill_fields(arguments[0], function.cls, arguments[1:], keywords)
            case Managed():
                return self.lost("a context manager as a decorator")
            case Class():
                return self._instantiate(function, arguments, keywords)
            case Instance():
                return self._call_instance(function, arguments, keywords)
            case Library():
                return self.library(function.name, arguments, keywords)
            case LibraryMethod():
                return self.library_method(function, arguments, keywords)
            case DType(library="numpy"):
                name = f"numpy.{dtype_name(function.dtype)}"
                return self.library(name, arguments, keywords)
            case Method() | Host():
                return self.call_builtin(function, arguments, keywords)
            case Choice():
                return self.either(function, lambda f: self.call(f, arguments, keywords))
            case Unknown():
                counting = function in self.from_outside.counting
                return self.emit.fresh("place") if counting else function
        raise CheckError("call", f"{self.show(function)} cannot be called")

    # Functions of the program.

    def managed(self, manager: Managed, resume: Callable[[Value], None]) -> None:
        """Run the generator of a context manager, and ``resume`` where it yields."""
        function, arguments = manager.function, list(manager.arguments)
        while isinstance(function, Bound | Wrapped):
            if isinstance(function, Bound):
                arguments.insert(0, function.receiver)
            function = function.function
        if not isinstance(function, Function):
            raise CheckError("call", f"{self.show(function)} is no generator")
        self._call_function(function, arguments, manager.keywords, resume)

    def _call_function(
        self,
        function: Function,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        resume: Callable[[Value], None] | None = None,
    ) -> Value:
        names = bind(function, arguments, keywords, self.new_dict)
        given = tuple(names.values())
        followed = self._followed(function, given)
        if followed:
            self.collector.notice(
                self.here(), f"the recursion of '{function.name}' is followed {followed} calls deep"
            )
            return self.lost(
                f"recursion of '{function.name}' without an end in sight: it has to end on values "
                "that are known before the run; write a loop"
            )
        scope = function.scope
        caller = self.frame
        frame = Frame(
            self.heap.new(names),
            scope.file,
            scope.module,
            scope,
            scope.is_user,
            function=function,
            receiver=arguments[0] if arguments else None,
            call=self.here(),
            caller=caller,
            resume=resume,
            decisions=len(self.knowledge.path.decisions),
            given=given,
        )
        node = function.node
        if isinstance(node, ast.Lambda):
            result = self.inside(frame, lambda: self.evaluate(node.body))
        else:
            result = self.inside(frame, lambda: self._run_body(frame, function))
        if not frame.kept:
            self.heap.drop(frame.key)
        return result

    def _followed(self, function: Function, given: tuple[Value, ...]) -> int:
        """Return how many calls of a function by itself were followed, if they are too many.

        They may be more where nothing open decides that, and fewer where no known argument comes
        nearer to an end. Once its end is out of sight, its other calls of itself are not followed
        either: with two in a body (Fibonacci's numbers) they would double at each depth.
        """
        decisions = len(self.knowledge.path.decisions)
        count, still, frame = 0, 0, self.frame
        nearer = not self.emit.builds
        while frame is not None and count < _DEEPEST:
            if frame.function is not None and frame.function.node is function.node:
                count += 1
                if not nearer:
                    nearer = comes_nearer(frame.given, given, self.heap.contents)
                    given, still = frame.given, still + (not nearer)
                limit = 1 if function.node in self.endless else _MAX_RECURSION
                if (count == limit or still == _STILL) and frame.decisions != decisions:
                    self.endless.add(function.node)
                    return count
            frame = frame.caller
        if not count:
            self.endless.discard(function.node)
        return count if count >= _DEEPEST else 0

    def inside(self, frame: Frame, run: Any) -> Value:
        """Run something in another frame."""
        caller, self.frame = self.frame, frame
        loops, self.loops = self.loops, []
        label = self.emit.label
        try:
            return run()
        finally:
            self.frame = caller
            self.loops = loops
            self.emit.label = label
            self.collector.nodes.pop(frame.key, None)

    def _run_body(self, frame: Frame, function: Function) -> Value:
        node = function.node
        assert not isinstance(node, ast.Lambda)
        if isinstance(node, ast.AsyncFunctionDef):
            return self.lost(f"'{function.name}' is a coroutine")
        generator = is_generator(node)
        if generator:
            self.heap[frame.key]["<yielded>"] = self.new_list()
        self.check_arguments(frame, function)
        entry = self.knowledge.path
        lazily = self.emit.lazily() if generator else nullcontext()
        with lazily, self.heap.reading() if generator else nullcontext() as noted:
            self.execute(node.body)
        exits = list(frame.exits)
        if not self.dead:
            exits.append(Exit("return", None, self.heap.contents, self.knowledge.path))
        if not exits:
            return Unknown("the call does not return", told=True)
        result = self.merge(exits, entry)
        if generator:
            made = self.new_stream(self.heap[self.heap[frame.key]["<yielded>"]])
            self.results[made.key] = result
            if noted is not None and self.emit.literal:
                self.heap.late.read_later(made.key, noted, own=frame.key)
            return made
        return self.check_result(frame, function, result)

    # Classes and objects.

    def _instantiate(
        self, cls: Class, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        if is_enumeration(cls):
            return self.member_by_value(cls, arguments)
        if self.imports and is_configuration(cls.host):
            made = self.made_for_real(cls.host, arguments, keywords)
            if made is not MISSING:
                return made
        if self.emit.builds:
            refuse_construction(self, cls)
        made = Instance(self.heap.new({}), cls)
        order = self.resolution_order(cls)
        library = next((base for base in order if isinstance(base, Library)), None)
        if library is not None:
            self.tables.prepare(self, made, library)
            if self.emit.recorded is not None:
                self.emit.recorded.unready.add(made.key)
        new = self.find_in_class(cls, "__new__")
        if new is MISSING and isinstance(self.inherited(made), tuple):
            made = self.object_method(cls, "__new__", [cls, *arguments], {})
            if not isinstance(made, Instance):
                return made
        if isinstance(new, Function | Wrapped) and "named tuple" not in cls.flags:
            new = new.function if isinstance(new, Wrapped) else new
            found = self.call(new, [cls, *arguments], keywords)
            own = isinstance(found, Instance) and isinstance(found.cls, Class)
            if not own or cls not in self.resolution_order(found.cls):
                return found  # of another class, whose __init__ Python does not call
            made = found
        raised = self.exception_base(cls) is not None
        if raised:
            self.heap[made]["args"] = tuple(arguments)
        init = self.find_in_class(cls, "__init__")
        if init is not MISSING:
            self.call(init, [made, *arguments], keywords)
        elif "dataclass" in cls.flags or (cls.fields and library is None):
            self.fill_fields(made, cls, arguments, keywords)
        elif library is not None:
            self.tables.initialise(self, made, library, arguments, keywords)
        elif isinstance(self.inherited(made), tuple):
            return made
        elif self.inherited(made) is not None:
            self.call(self.method_of(made, "__init__"), arguments, keywords)
        elif new is not MISSING:
            return made
        elif (arguments and not raised) or keywords:
            raise CheckError("call", f"{cls.name}() takes no arguments")
        return made

    def _call_instance(
        self, value: Instance, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        for name in self.tables.call_order(self, value):
            # (Python looks for __call__ in the class alone; that looks for forward in the object.)
            own = self.own_attribute(value, name) if name == "forward" else MISSING
            method = self.method_of(value, name) if own is MISSING else own
            if method is not MISSING:
                return self.tables.call_forward(self, value, method, arguments, keywords)
        raise CheckError("call", f"an object of {value.cls.name} cannot be called")


def _is_super(function: Value) -> bool:
    return isinstance(function, Host) and function.object is super


def is_generator(node: ast.FunctionDef) -> bool:
    """Whether a function yields; functions inside it don't count."""
    queue: list[ast.AST] = list(node.body)
    while queue:
        current = queue.pop()
        if isinstance(current, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(current, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            queue += ast.iter_child_nodes(current)
    return False


def bind(
    function: Function,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    new_dict: Any,
) -> dict[str, Value]:
    """Return a function's names with the arguments bound to them.

    Raises:
        CheckError: Too many, too few, repeated or unknown arguments.
    """
    formal = function.node.args
    positional = [a.arg for a in (*formal.posonlyargs, *formal.args)]
    names: dict[str, Value] = dict(zip(positional, arguments, strict=False))
    if formal.vararg is not None:
        names[formal.vararg.arg] = tuple(arguments[len(positional) :])
    elif len(arguments) > len(positional):
        raise CheckError(
            "call",
            f"{function.name}() takes {len(positional)} positional arguments, got {len(arguments)}",
        )
    allowed = {a.arg for a in formal.args} | {a.arg for a in formal.kwonlyargs}
    extra: dict[str, Value] = {}
    for name, value in keywords.items():
        if name in allowed:
            if name in names:
                raise CheckError("call", f"{function.name}() got two values for '{name}'")
            names[name] = value
        elif formal.kwarg is not None:
            extra[name] = value
        else:
            known = ", ".join([*positional, *(a.arg for a in formal.kwonlyargs)])
            raise CheckError(
                "call",
                f"{function.name}() got an unexpected argument '{name}'; its arguments: {known}",
            )
    if formal.kwarg is not None:
        names[formal.kwarg.arg] = new_dict(extra)
    first = len(positional) - len(function.defaults)
    for place, name in enumerate(positional):
        if name not in names and place >= first:
            names[name] = function.defaults[place - first]
    for name, default in function.keyword_defaults.items():
        names.setdefault(name, default)
    missing = [n for n in (*positional, *(a.arg for a in formal.kwonlyargs)) if n not in names]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        listed = ", ".join(f"'{name}'" for name in missing)
        raise CheckError("call", f"{function.name}() is missing the argument{plural} {listed}")
    return names


def _is_last(node: ast.Call, argument: ast.expr) -> bool:
    """Whether nothing that computes comes between an argument and the call."""
    rest = [*node.args[node.args.index(argument) + 1 :], *(each.value for each in node.keywords)]
    return all(isinstance(each, ast.Constant | ast.Lambda | ast.Name) for each in rest)


__all__ = ["Calls", "ModuleRef", "bind", "is_generator"]
