"""From slang's hierarchy to variables and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hagane.tools.rtl.circuit.assertions.covers import changes, clocking_of
from hagane.tools.rtl.circuit.elaborate import Elaborated, Position
from hagane.tools.rtl.circuit.gates import GATES, run_gate
from hagane.tools.rtl.circuit.machine import Machine, Outside, Variable
from hagane.tools.rtl.circuit.ports import Port, interface_instances, ports_of
from hagane.tools.rtl.circuit.scope import Scope
from hagane.tools.rtl.circuit.subset import BENCH, THREE_STATES, outside
from hagane.tools.rtl.circuit.values import Value, flat, layout_of, total_width
from hagane.tools.rtl.errors import UnsupportedDesign

_MOST_BITS = 1 << 17


@dataclass(frozen=True, slots=True)
class Edge:
    """An event that a process waits for: an expression, and whether its rise or fall counts."""

    expression: Any
    rising: bool
    text: str


@dataclass(eq=False, slots=True)
class Process:
    """A process or continuous assignment; ``edges`` is empty where it is combinational.

    A procedural one that reads its own output reads the value from before (a latch); a
    continuous one makes a loop.
    """

    name: str
    position: Position
    scope: Scope
    run: Callable[[Machine], None]
    edges: tuple[Edge, ...] = ()
    initial: bool = False
    procedural: bool = False


@dataclass(slots=True)
class Design:
    """A flattened circuit."""

    elaborated: Elaborated
    ports: list[Port] = field(default_factory=list)
    variables: dict[Any, Variable] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    notices: dict[str, None] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)


def flatten(elaborated: Elaborated) -> Design:
    """Return the variables and processes of the whole hierarchy.

    Raises:
        UnsupportedDesign: Something is beyond the subset; all of it is listed.
    """
    design = Design(elaborated)
    flattener = _Flattener(design)
    top = elaborated.top.body
    flattener.shared()
    for name, instance in interface_instances(top.portList):
        flattener.body(instance.body, name)
    flattener.body(top, "")
    for port in top.portList:
        try:
            design.ports += ports_of(port, design.variables.get, elaborated.position)
        except Outside as problem:
            design.problems[str(problem)] = None
    if design.problems:
        raise UnsupportedDesign(list(design.problems))
    return design


class _Flattener:
    def __init__(self, design: Design):
        self.design = design

    def problem(self, location: Any, what: str) -> None:
        self.design.problems[f"{self.design.elaborated.position(location)}: {what}"] = None

    def body(self, body: Any, path: str) -> None:
        """Add an instance's variables first, then its processes: names may be used before."""
        scope = Scope(self.design, path, body)
        self.declare(body, path)
        self.members(body, scope)

    def shared(self) -> None:
        """Add the variables of packages and files; those of types outside are refused if used."""
        compilation = self.design.elaborated.compilation
        units = [
            (str(unit.name) or "$unit", unit) for unit in compilation.getRoot().compilationUnits
        ]
        for name, place in [(str(p.name), p) for p in compilation.getPackages()] + units:
            scope = Scope(self.design, name, place)
            for member in place:
                if member.kind.name != "Variable":
                    continue
                layout = layout_of(member.type)
                if layout is not None and total_width(layout) <= _MOST_BITS:
                    self.variable(member, name)
                    self.design.variables[member].shared = True
                    self._Variable(member, scope)

    def declare(self, body: Any, path: str, *, inside: bool = False) -> None:
        for member in body:
            kind = member.kind.name
            if kind in ("Variable", "Net"):
                if not inside or member.lifetime.name == "Static":
                    self.variable(member, path)
            elif kind == "GenerateBlock":
                if not member.isUninstantiated:
                    self.declare(member, _join(path, str(member.externalName or member.name)))
            elif kind == "GenerateBlockArray":
                base = str(member.externalName or member.name)
                for index, entry in enumerate(member.entries):
                    number = entry.arrayIndex
                    shown = index if number is None else int(number)
                    self.declare(entry, _join(path, f"{base}[{shown}]"))
            elif kind == "StatementBlock":
                inner = _join(path, str(member.name)) if member.name else path
                self.declare(member, inner, inside=True)

    def variable(self, symbol: Any, path: str) -> None:
        if symbol in self.design.variables:
            return
        layout = layout_of(symbol.type)
        position = self.design.elaborated.position(symbol.location)
        if layout is None:
            kind = symbol.type.canonicalType.kind.name
            if kind not in ("VirtualInterfaceType",):
                self.problem(symbol.location, f"'{symbol.name}' of type {symbol.type} ({BENCH})")
            return
        if total_width(layout) > _MOST_BITS:
            self.problem(
                symbol.location,
                f"'{symbol.name}' of {total_width(layout):,} bits (expected at most "
                f"{_MOST_BITS:,}; -G NAME=VALUE sets a parameter to a smaller size)",
            )
            return
        if symbol.kind.name == "Net" and symbol.netType.name not in (
            "wire",
            "tri",
            "logic",
            "uwire",
        ):
            what = f"net '{symbol.name}' of type {symbol.netType.name}"
            self.problem(symbol.location, f"{what} ({THREE_STATES})")
        name = _join(path, str(symbol.name))
        self.design.variables[symbol] = Variable(
            name, layout, position, scope=path, four_state=bool(symbol.type.isFourState)
        )

    def members(self, body: Any, scope: Scope) -> None:
        for member in body:
            kind = member.kind.name
            method = getattr(self, "_" + kind, None)
            if method is not None:
                method(member, scope)
            elif kind in _REFUSED:
                self.problem(member.location, f"{_REFUSED[kind]} '{member.name}'")

    def _ClockingBlock(self, member: Any, scope: Scope) -> None:  # noqa: N802
        if list(member):
            self.problem(
                member.location,
                f"a clocking block with signals, '{member.name}' (it belongs in a test bench; one "
                "without signals gives properties their clock)",
            )

    def _GenerateBlock(self, member: Any, scope: Scope) -> None:  # noqa: N802
        if not member.isUninstantiated:
            self.members(member, scope)

    def _GenerateBlockArray(self, member: Any, scope: Scope) -> None:  # noqa: N802
        for entry in member.entries:
            self.members(entry, scope)

    def _InstanceArray(self, member: Any, scope: Scope) -> None:  # noqa: N802
        base = str(member.name)
        for index, element in enumerate(member.elements):
            self.instance(element, scope, f"{base}[{index}]")

    def _PrimitiveInstance(self, member: Any, scope: Scope) -> None:  # noqa: N802
        gate = str(member.primitiveType.name)
        where = scope.position(member.location)
        if gate not in GATES:
            self.problem(member.location, f"a primitive of type '{gate}' ({THREE_STATES})")
            return
        if member.delay is not None:
            self.design.notices[f"{where}: the delay of a gate is ignored"] = None
        connections = list(member.portConnections)
        self.add(
            f"{gate} at {where}",
            where,
            scope,
            lambda m: run_gate(gate, connections, scope.expressions, m),
            None,
        )

    def _Instance(self, member: Any, scope: Scope) -> None:  # noqa: N802
        self.instance(member, scope, str(member.name))

    def instance(self, member: Any, scope: Scope, name: str) -> None:
        if member.kind.name == "PrimitiveInstance":
            self._PrimitiveInstance(member, scope)
            return
        if member.kind.name == "InstanceArray":
            for index, element in enumerate(member.elements):
                self.instance(element, scope, f"{name}[{index}]")
            return
        # The path of slang includes the generate blocks on the way.
        top = self.design.elaborated.top
        path = str(member.hierarchicalPath).removeprefix(f"{top.name}.")
        self.declare(member.body, path)
        # Mostly in the order of the data: its inputs, the instance, its outputs.
        outputs = [c for c in member.portConnections if _gives(c.port)]
        for connection in member.portConnections:
            if connection not in outputs:
                self._connect(connection, scope, path)
        self.members(member.body, Scope(self.design, path, member.body))
        for connection in outputs:
            self._connect(connection, scope, path)

    def _connect(self, connection: Any, outer: Scope, path: str) -> None:
        port = connection.port
        if port.kind.name == "InterfacePort":
            return
        e = connection.expression
        if port.kind.name != "Port":
            self.problem(port.location, f"port '{port.name}' of kind {port.kind.name}")
            return
        direction = port.direction.name
        symbol = port.internalSymbol
        if symbol is None or e is None:
            return
        variable = self.design.variables.get(symbol)
        if variable is None or direction not in ("In", "Out"):
            self.problem(port.location, f"port '{port.name}' of direction {direction}")
            return
        target = variable
        where = outer.position(port.location)
        if direction == "In":

            def drive(m: Machine) -> None:
                _store(m, target, outer.expressions.value(e, m))

            self.add(f"{path}.{port.name}", where, outer, drive, e)
        else:
            left = e.left if e.kind.name == "Assignment" else e

            def receive(m: Machine) -> None:
                value = m.read(target)
                if e.kind.name == "Assignment":
                    m.held_value = value
                    value = outer.expressions.value(e.right, m)
                outer.expressions.assign(left, value, m)

            self.add(f"{path}.{port.name}", where, outer, receive, None)

    def add(
        self,
        name: str,
        where: Position,
        scope: Scope,
        run: Callable[[Machine], None],
        checked: Any,
        **more: Any,
    ) -> None:
        if checked is not None:
            for item in outside(checked, scope.position):
                self.design.problems[item] = None
        self.design.processes.append(Process(name, where, scope, run, **more))

    def _ContinuousAssign(self, member: Any, scope: Scope) -> None:  # noqa: N802
        e = member.assignment
        where = scope.position(e.sourceRange.start)
        if member.delay is not None:
            self.design.notices[f"{where}: the delay of an assignment is ignored"] = None

        def run(m: Machine) -> None:
            m.record("statement", where, "assign", scope.path, m.guard)
            scope.expressions.value(e, m)

        self.add(f"assign at {where}", where, scope, run, e)

    def _Net(self, member: Any, scope: Scope) -> None:  # noqa: N802
        if member.initializer is None:
            return
        e, target = member.initializer, self.design.variables[member]
        where = scope.position(member.location)

        def run(m: Machine) -> None:
            m.record("statement", where, "assign", scope.path, m.guard)
            _store(m, target, scope.expressions.value(e, m))

        self.add(f"net {target.name}", where, scope, run, e)

    def _Variable(self, member: Any, scope: Scope) -> None:  # noqa: N802
        if member.initializer is None or member not in self.design.variables:
            return
        e, target = member.initializer, self.design.variables[member]

        def run(m: Machine) -> None:
            _store(m, target, scope.expressions.value(e, m))

        self.add(f"initial {target.name}", target.position, scope, run, e, initial=True)

    def _ProceduralBlock(self, member: Any, scope: Scope) -> None:  # noqa: N802
        kind = member.procedureKind.name
        where = scope.position(member.location)
        body = member.body
        edges: tuple[Edge, ...] = ()
        listed: list[Any] = []
        if kind == "Final":
            return
        if kind == "Initial":
            problems = outside(body, scope.position, start=True)
            if problems and changes(body):
                # What it gives decides what can be reached.
                told = f"an initial block that gives values, and has {problems[0]}"
                self.design.problems[f"{where}: {told}"] = None
                return
            if problems:
                self.design.notices[f"{where}: an initial block is ignored: {problems[0]}"] = None
                return
            self.add(
                f"initial at {where}",
                where,
                scope,
                lambda m: scope.statements.run(body, m),
                None,
                initial=True,
            )
            return
        if body.kind.name == "Timed":
            found = _edges(body.timing, scope)
            if found is None:
                self.problem(member.location, "a process that waits for anything but edges")
                return
            edges = found
            listed = _listed(body.timing)
            body = body.stmt
        assertions = _assertions(body)
        if assertions and (kind == "Always" or all(map(_is_concurrent, assertions))):
            # Those of a module's own stand in an always block that slang makes up.
            for statement in assertions:
                self.assertion(statement, scope, edges)
            return
        if kind == "Always" and member.body.kind.name != "Timed":
            self.problem(member.location, "an always block that waits for nothing")
            return

        def run(m: Machine) -> None:
            m.record("line", where, "block", scope.path, m.guard)
            scope.statements.run(body, m)
            for symbol in listed:
                _check_order(scope.find(symbol), where, m)

        self.add(f"process at {where}", where, scope, run, body, edges=edges, procedural=True)

    def assertion(self, s: Any, scope: Scope, edges: tuple[Edge, ...]) -> None:
        """Add an assertion or cover that is not part of a process with other statements."""
        where = scope.position(s.sourceRange.start)
        if not _is_concurrent(s):
            self.add(
                f"assertion at {where}", where, scope, lambda m: scope.statements.run(s, m), s,
                edges=edges, procedural=True,
            )  # fmt: skip
            return
        clocking = clocking_of(s.propertySpec) or scope.clocking
        if clocking is not None:
            edges = _edges(clocking, scope) or ()
        if [edge.rising for edge in edges] != [True]:
            scope.statements.notice(s, self.design.notices)
            return
        self.add(
            f"property at {where}", where, scope, lambda m: scope.statements.property(s, m), None,
            edges=edges, procedural=True,
        )  # fmt: skip


def _gives(port: Any) -> bool:
    return bool(port.kind.name == "Port" and port.direction.name == "Out")


def _store(m: Machine, variable: Variable, value: Value) -> None:
    from hagane.tools.rtl.circuit.machine import Target

    m.write(Target(variable, (), variable.layout), value)


def _assertions(body: Any) -> list[Any]:
    """Return the assertions that a process is made of, none if there is anything else in it."""
    kind = body.kind.name
    if kind == "Block":
        return _assertions(body.body)
    if kind == "List":
        parts = [_assertions(inner) for inner in body.list]
        return [item for part in parts for item in part] if all(parts) else []
    return [body] if kind in ("ConcurrentAssertion", "ImmediateAssertion") else []


def _is_concurrent(statement: Any) -> bool:
    return bool(statement.kind.name == "ConcurrentAssertion")


def _edges(timing: Any, scope: Scope) -> tuple[Edge, ...] | None:
    kind = timing.kind.name
    if kind == "ImplicitEvent":
        return ()
    events = list(timing.events) if kind == "EventList" else [timing]
    edges = []
    for event in events:
        if event.kind.name != "SignalEvent" or event.iffCondition is not None:
            return None
        edge = event.edge.name
        if edge == "None_":
            continue
        if edge == "BothEdges":
            return None
        text = str(event.expr.syntax).strip() if event.expr.syntax is not None else "an expression"
        edges.append(Edge(event.expr, edge == "PosEdge", text))
    if edges and len(edges) != len(events):
        return None
    return tuple(edges)


def _listed(timing: Any) -> list[Any]:
    """Return the variables whose changes a process without edges waits for by name."""
    events = list(timing.events) if timing.kind.name == "EventList" else [timing]
    plain = [e for e in events if e.kind.name == "SignalEvent" and e.edge.name == "None_"]
    return [e.expr.symbol for e in plain if e.expr.kind.name == "NamedValue"]


def _check_order(variable: Variable | None, where: Position, m: Machine) -> None:
    """Refuse a variable that a process waits for, reads, and writes behind that."""
    mask = m.masks.get(variable) if variable in m.early else None
    if mask is None or variable is None:
        return
    if all(part.is_const and part.data == (1 << part.width) - 1 for part in flat(mask)):
        raise Outside(
            where,
            f"'{variable.name}', which the process waits for, is read before it is written there, "
            "where simulators differ; write it first, or in a process of its own",
        )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_REFUSED = {
    "Primitive": "a user-defined primitive",
    "UninstantiatedDef": "an instance of an unknown module",
    "NetAlias": "a net alias",
    "CovergroupType": "a covergroup",
    "CheckerInstance": "a checker",
}

__all__ = ["Design", "Edge", "Port", "Process", "Scope", "flatten"]
