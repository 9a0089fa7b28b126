"""Questions of the interpreter's parts to each other; each is answered by one of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.objects import (
    Class,
    Frame,
    Function,
    Instance,
    Managed,
    ModuleRef,
)
from hagane.frontends.python.values.values import (
    DictRef,
    ListRef,
    Many,
    Outside,
    Ref,
    SetRef,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import Dim
from hagane.symbolic.term import Term


class Parts:
    """The methods that one part of the interpreter calls in another."""

    tables: Tables
    runs_modules: bool

    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression in the current frame."""
        raise NotImplementedError

    def evaluate_to_end(self, node: ast.expr, *, whole: bool = True) -> Value:
        """Return the value of an expression; an iterator made by it is run to its end at once."""
        raise NotImplementedError

    def columns_of(self, items: Many) -> list[Value] | None:
        """Return the columns of rows that ``zip(*rows)`` turns; None if there is no telling."""
        raise NotImplementedError

    def own_name(self, value: Value, name: str) -> str:
        """Return the name that an object has for a private one of a class."""
        raise NotImplementedError

    def extend_in_turn(self, receiver: ast.expr, value: ast.expr) -> bool:
        """Extend a container by a generator expression that reads it itself, item by item."""
        raise NotImplementedError

    def execute(self, body: Sequence[ast.stmt]) -> None:
        """Run statements until they end or the path does."""
        raise NotImplementedError

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program."""
        raise NotImplementedError

    def follow_generator(self, node: ast.For) -> bool:
        """Run a loop over the call of a generator, each turn where it yields; if it can be."""
        raise NotImplementedError

    def turn(self, run: Callable[[], Any], breaks: list[Any]) -> None:
        """Run one iteration of a loop."""
        raise NotImplementedError

    def item_turn(self, node: ast.For, item: Value) -> None:
        """Run the body of a loop for one item."""
        raise NotImplementedError

    def loaded_modules(self) -> Value:
        """Return the program's modules by name."""
        raise NotImplementedError

    def command_line(self) -> Value:
        """Return the list of the command line's arguments."""
        raise NotImplementedError

    def annotated(self, value: Value, index: Value) -> Value:
        """Return a class with the types of its items (``List[int]``), or the class itself."""
        raise NotImplementedError

    def bind_name(self, name: str, value: Value) -> None:
        """Set a name of the current frame, or of the one that it declares the name of."""
        raise NotImplementedError

    def outside(self, what: str) -> Unknown:
        """Return a value from outside of the program."""
        raise NotImplementedError

    def joined_text(self, parts: Sequence[Value]) -> Value:
        """Return texts that are put one behind the other."""
        raise NotImplementedError

    def text_of_number(self, value: Value) -> Value:
        """Return the text of a value that is not known."""
        raise NotImplementedError

    def attribute(self, value: Value, name: str) -> Value:
        """Return an attribute of any value of the program."""
        raise NotImplementedError

    def new_name(self, stem: str) -> str:
        """Return a name for a size that is not taken."""
        raise NotImplementedError

    def new_list(self, items: Any = ()) -> Any:
        """Return a new list."""
        raise NotImplementedError

    def as_many(self, content: Any) -> tuple[Value, Any]:
        """Return one value that stands for all of a list's content, and how many there are."""
        raise NotImplementedError

    def some_of(self, items: list[Value]) -> Value:
        """Return an item of a list of which only the run knows the place."""
        raise NotImplementedError

    def made_class(
        self, name: str, bases: Sequence[Value], attributes: Mapping[Any, Value]
    ) -> Value:
        """Return the class that ``type(name, bases, attributes)`` makes."""
        raise NotImplementedError

    def at_some_key(self, content: dict[Any, Value], index: Value) -> Value:
        """Return the item at a key that only the run knows; ``MISSING`` if it can be anything."""
        raise NotImplementedError

    def loaded(self, what: str) -> Unknown:
        """Return the content of a file."""
        raise NotImplementedError

    def copied(self, value: Value, done: dict[int, Value]) -> Value:
        """Return a deep copy of a value."""
        raise NotImplementedError

    def lift(self, found: Any) -> Value:
        """Return the stand-in of a real object."""
        raise NotImplementedError

    def call_library(
        self, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value] | None = None
    ) -> Value:
        """Call a function of a library by its name, with values as its tables take them."""
        raise NotImplementedError

    def end_by(self, error: CheckError, what: str) -> None:
        """Go on in the handler of an exception; without one, the path ends by it."""
        raise NotImplementedError

    def fail_where(self, bad: Value, error: type[Exception], text: str) -> None:
        """Let the program raise an exception of Python's own in runs whose data are bad for it."""
        raise NotImplementedError

    def is_awaited(self, error: type[Exception]) -> bool:
        """Whether a handler takes exceptions of a class."""
        raise NotImplementedError

    def tensor_number(self, value: Tensor, *, whole: bool) -> Value:
        """Return the only element of a tensor as a number."""
        raise NotImplementedError

    def find_attribute(self, value: Value, name: str) -> Value:
        """Return an attribute, ``MISSING`` if there is none."""
        raise NotImplementedError

    def resolution_order(self, cls: Class) -> list[Value]:
        """Return a class and its bases in method resolution order."""
        raise NotImplementedError

    def wrap(self, value: Value) -> Value:
        """Return the result of a library function as a value of the program."""
        raise NotImplementedError

    def unwrap(self, value: Value) -> Value:
        """Return lists and dictionaries of the program as Python's own."""
        raise NotImplementedError

    def unwrap_shallow(self, value: Value) -> Value:
        """Return a list or dictionary of the program as one of Python, for library functions."""
        return self.unwrap(value) if isinstance(value, ListRef | SetRef | DictRef) else value

    def sequence(self, value: Value) -> list[Value] | Many:
        """Return the items of an iterable."""
        raise NotImplementedError

    def global_name(self, module: ModuleRef, name: str) -> Value:
        """Return a name of a module, or a built-in one."""
        raise NotImplementedError

    def tensor_operator(self, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        raise NotImplementedError

    def many_of(self, left: Any, right: Any) -> Many:
        """Return the contents of two lists behind each other, with one value for all."""
        raise NotImplementedError

    def method_of(self, receiver: Instance, name: str) -> Value:
        """Return a method of an object, ``MISSING`` if it has none of that name."""
        raise NotImplementedError

    def tensor_unary(self, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        raise NotImplementedError

    def sequence_or_keys(self, container: Instance) -> Any:
        """Return the keys of a dictionary-like object, or its items."""
        raise NotImplementedError

    def described_fields(self, cls: Class) -> tuple[Instance, ...]:
        """Return what ``dataclasses.fields`` gives of a class of the program."""
        raise NotImplementedError

    def descriptor(self, found: Value, name: str) -> Value:
        """Return a method of a descriptor, ``MISSING`` where a value is none."""
        raise NotImplementedError

    def set_open_key(self, receiver: DictRef, content: Any, key: Value, value: Value) -> bool:
        """Set an item at a key that only the run knows, where one type stands for all items."""
        raise NotImplementedError

    def add_field(self, cls: Class, name: str, annotation: ast.expr, default: Value) -> None:
        """Add what an annotated name in the body of a class says to the fields of the class."""
        raise NotImplementedError

    def fill_fields(
        self, made: Instance, cls: Class, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> None:
        """Set the fields of a new object of a dataclass or named tuple."""
        raise NotImplementedError

    def class_attribute(self, cls: Class, name: str) -> Value:
        """Return an attribute of a class, ``MISSING`` if there is none."""
        raise NotImplementedError

    def module_attribute(self, module: ModuleRef, name: str) -> Value:
        """Return a name of a module of the program."""
        raise NotImplementedError

    def contained(self, item: Value, container: Value) -> Value:
        """Return whether a container has an item."""
        raise NotImplementedError

    def stop_at(
        self, source: Value, items: list[Value], answers: Sequence[Term], last: Term
    ) -> None:
        """Put back the items behind the first answer that ends the reading of an iterator."""
        raise NotImplementedError

    def host_attribute(self, host: Any, name: str) -> Value:
        """Return an attribute of the real object behind an instance."""
        raise NotImplementedError

    def many_items(self, items: list[Value]) -> Many:
        """Return known items as a content of which one value stands for all."""
        raise NotImplementedError

    def call_builtin(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a built-in function, a method of a container, or a real function."""
        raise NotImplementedError

    def search_path(self) -> ListRef:
        """Return ``sys.path``."""
        raise NotImplementedError

    def as_annotated(self, annotation: ast.expr | None, value: Value) -> Value:
        """Return a value from outside as the number that an annotation says it is."""
        raise NotImplementedError

    def beside_unknown(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return an operator of which an operand is not known."""
        raise NotImplementedError

    def part_from_outside(self, value: Outside, key: Value) -> Value:
        """Return an item or an attribute of a value from outside."""
        raise NotImplementedError

    def check_arguments(self, frame: Frame, function: Function) -> None:
        """Compare arguments with the shapes that the function's annotations promise."""
        raise NotImplementedError

    def check_result(self, frame: Frame, function: Function, result: Value) -> Value:
        """Compare the result with the shape that the function's annotation promises."""
        raise NotImplementedError

    def set_own(self, owner: Instance | Class, name: str, value: Value) -> None:
        """Set an attribute that the object itself holds."""
        raise NotImplementedError

    def name_where_set(self, found: Value, name: str, frame: int) -> Value:
        """Return a variable that some paths alone have set."""
        raise NotImplementedError

    def call_kept(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return the result of a function that keeps results."""
        raise NotImplementedError

    def read_once(self, value: Value) -> Value:
        """Return an object's iterator in place of an object whose class says how it is read."""
        raise NotImplementedError

    def refuse_half_set(self, owner: Instance | Class) -> None:
        """Refuse to show all attributes of an object where some paths alone set one of them."""
        raise NotImplementedError

    def names_to_set(self, function: Function) -> dict[str, Value]:
        """Return the attributes of a function, to be changed."""
        raise NotImplementedError

    def find_in_class(self, cls: Class, name: str, after: Class | None = None) -> Value:
        """Return a name from a class or its bases."""
        raise NotImplementedError

    def call_special(
        self, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call names of the standard library that take functions or classes; else ``MISSING``."""
        raise NotImplementedError

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return a comparison of two values."""
        raise NotImplementedError

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left op right``."""
        raise NotImplementedError

    def set_attribute(self, receiver: Value, name: str, value: Value) -> None:
        """Set an attribute of an object."""
        raise NotImplementedError

    def check_annotated(self, name: str, annotation: ast.expr, value: Value) -> Value:
        """Compare a value with the shape that an annotation promises."""
        raise NotImplementedError

    def extend(self, target: ListRef, items: Value) -> None:
        """Append the items of an iterable to a list."""
        raise NotImplementedError

    def bound_list(self, target: Deque, method: str = "append") -> None:
        """Drop the items of a full deque at the end where a method adds none."""
        raise NotImplementedError

    def change(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Apply ``left op= right`` to a container in place; ``MISSING`` where it is none."""
        raise NotImplementedError

    def counted(self, kind: type[ast.operator], left: DictRef, right: DictRef) -> Value:
        """Return an operator of counters."""
        raise NotImplementedError

    def make_function(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, name: str
    ) -> Function:
        """Return a function with its defaults evaluated."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target to a value."""
        raise NotImplementedError

    def no_item(self, message: str) -> Value:
        """Fail for an item of a list without any; where a loop is attempted, only the path ends."""
        raise NotImplementedError

    def item(self, value: Value, index: Value) -> Value:
        """Return ``value[index]``."""
        raise NotImplementedError

    def own_attribute(self, value: Instance, name: str) -> Value:
        """Return an attribute that an object itself has."""
        raise NotImplementedError

    def within(self, index: Dim, length: Dim) -> Term:
        """Return the condition that ``index`` is a position of ``length`` items."""
        raise NotImplementedError

    def negated(self, condition: bool | Term) -> Value:
        """Return the value ``not condition``."""
        raise NotImplementedError

    def item_of(self, value: Value, index: Value) -> Value:
        """Return ``value[index]``, with Python's own meaning."""
        raise NotImplementedError

    def set_list_item(self, receiver: ListRef, index: Value, value: Value) -> None:
        """Set an item of a list, with Python's own meaning."""
        raise NotImplementedError

    def _execute_one(self, statement: ast.stmt) -> None:
        raise NotImplementedError

    def real_of(self, value: Value) -> Any:
        """Return the real object that a value stands for, ``MISSING`` where there is none."""
        raise NotImplementedError

    def as_base(self, base: Value) -> Value:
        """Return a class as a base of others."""
        raise NotImplementedError

    def mapping(self, value: Value) -> dict[Any, Value] | None:
        """Return the items of a dictionary with known keys, or of an object like one."""
        raise NotImplementedError

    given_words: ListRef | None = None  # sys.argv, once the program asks for it
    searched: ListRef | None = None  # sys.path, likewise
    imports = False  # whether installed packages that no table knows are imported

    def made_for_real(
        self, cls: type, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return a real object of a class of settings, ``MISSING`` where a part is not known."""
        raise NotImplementedError

    def import_module(self, name: str) -> Value:
        """Return the result of ``import name``."""
        raise NotImplementedError

    def exception_base(self, cls: Class) -> type | None:
        """Return the exception of Python's own that a class derives from, None without one."""
        raise NotImplementedError

    def make_members(self, cls: Class) -> None:
        """Make members of the values in the body of an enumeration."""
        raise NotImplementedError

    def member_by_value(self, cls: Class, arguments: Sequence[Value]) -> Value:
        """Return the member of an enumeration that has a value."""
        raise NotImplementedError

    def items_of_class(self, cls: Class) -> list[Value]:
        """Return the members of an enumeration, each once; of flags, those of one bit."""
        raise NotImplementedError

    def new_enumeration(self, base: type, name: Value, members: Value) -> Value:
        """Return what ``Enum("Name", members)`` gives."""
        raise NotImplementedError

    def new_plain(self, kind: type, cls: Class, arguments: Sequence[Value]) -> Value:
        """Return what ``int.__new__(cls, 3)`` gives in the ``__new__`` of an enumeration."""
        raise NotImplementedError

    def as_tuple(self, value: Value, own: str) -> Value:
        """Return an object that is a tuple as one, where its class has no method of its own."""
        raise NotImplementedError

    def hold_items(self, value: Instance, items: Ref | tuple[Value, ...]) -> None:
        """Give a new object of a class that derives from a container the container that it is."""
        raise NotImplementedError

    def inherited(self, value: Instance) -> Ref | tuple[Value, ...] | None:
        """Return the dict, list or tuple that an object is, None if it is none."""
        raise NotImplementedError

    def attempt(self, run: Callable[[], Value]) -> Value:
        """Return the result of a call, ``MISSING`` where it raises an AttributeError."""
        raise NotImplementedError

    def clause_for(self, found: Any, error: Any) -> ast.ExceptHandler | None:
        """Return the clause of a ``try`` that takes an error."""
        raise NotImplementedError

    def catches(self, error: Any) -> bool:
        """Whether a handler takes an error, which then has to be raised."""
        raise NotImplementedError

    def managed(self, manager: Managed, resume: Callable[[Value], None]) -> None:
        """Run the generator of a context manager, and ``resume`` where it yields."""
        raise NotImplementedError

    def object_method(
        self, receiver: Value, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method that every object has."""
        raise NotImplementedError

    def delete_attribute(self, value: Value, name: str) -> None:
        """Do ``del value.name``."""
        raise NotImplementedError

    def real_call(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return the result of a real function, ``MISSING`` where it may not be asked."""
        raise NotImplementedError

    def bind(self, found: Value, receiver: Value, cls: Class) -> Value:
        """Return the value of a name of a class when it is reached through ``receiver``."""
        raise NotImplementedError

    def set_item(self, receiver: Value, index: Value, value: Value) -> None:
        """Do ``receiver[index] = value``."""
        raise NotImplementedError
