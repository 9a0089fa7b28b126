"""The ports of the top module, those of its interfaces included, as inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hagane.tools.rtl.circuit.machine import Outside, Variable
from hagane.tools.rtl.circuit.values import Array, Packed, Record

Find = Callable[[Any], Variable | None]


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the top module, or a member of an interface port (``bus.request``).

    ``interface`` is the definition of the interface; ``own`` says that the member is a port of
    the interface itself, and is therefore connected where the interface stands.
    """

    name: str
    direction: str
    variable: Variable
    type_text: str
    cast: str = ""
    interface: str = ""
    own: bool = False


def interface_instances(ports: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the instance that slang stands in for each interface port."""
    for port in ports:
        if port.kind.name == "InterfacePort":
            instance, _ = port.connection
            if instance is not None and instance.kind.name == "Instance":
                yield str(port.name), instance


def ports_of(port: Any, find: Find, position: Callable[[Any], Any]) -> list[Port]:
    """Return the parts of a port of the top module: itself, or its interface's members.

    Raises:
        Outside: The port has no direction, or a type that a test bench cannot drive.
    """
    where = position(port.location)
    kind = port.kind.name
    if kind == "InterfacePort":
        return _members(port, find, where)
    if kind != "Port" or port.internalSymbol is None:
        raise Outside(where, f"top-level port '{port.name}' of kind {kind}")
    variable = find(port.internalSymbol)
    # A variable that was refused is listed already, where it is declared.
    return [] if variable is None else [_port(port, str(port.name), variable, where)]


def _port(symbol: Any, name: str, variable: Variable, where: Any, **more: Any) -> Port:
    direction = symbol.direction.name
    if direction not in ("In", "Out"):
        raise Outside(
            where,
            f"top-level port '{name}' of direction {direction}; give what is driven, its enable "
            "and what is read there as ports of their own",
        )
    layout = variable.layout
    while isinstance(layout, Array):
        layout = layout.element
    if isinstance(layout, Record):
        raise Outside(
            where,
            f"top-level port '{name}' of the unpacked struct {symbol.type} "
            "(expected a packed type or an array of them)",
        )
    variable.is_input = direction == "In"
    cast = str(symbol.type) if symbol.type.canonicalType.isEnum else ""
    return Port(name, direction, variable, str(symbol.type), cast, **more)


def _members(port: Any, find: Find, where: Any) -> list[Port]:
    instance, modport = port.connection
    if instance is None or instance.kind.name != "Instance":
        raise Outside(where, f"top-level port '{port.name}', an array of interfaces")
    if modport is None:
        raise Outside(
            where,
            f"top-level interface port '{port.name}' without a modport, so which of its members "
            f"are inputs is open (write '{instance.definition.name}.MODPORT {port.name}')",
        )
    interface = str(instance.definition.name)
    found: dict[Variable, Port] = {}
    for member in (*instance.body.portList, *modport):
        symbol = getattr(member, "internalSymbol", None)
        variable = None if symbol is None else find(symbol)
        if variable is not None and variable in found:
            continue
        own = member.kind.name == "Port"
        if variable is None or not isinstance(variable.layout, Packed):
            what = f"of kind {member.kind.name}" if variable is None else "of an unpacked type"
            raise Outside(where, f"member '{member.name}' of interface port '{port.name}', {what}")
        name = f"{port.name}.{member.name}"
        made = _port(member, name, variable, where, interface=interface, own=own)
        found[made.variable] = made
    return list(found.values())


def bundles(ports: Sequence[Port]) -> dict[str, list[Port]]:
    """Return the members of each interface port, by the port's name."""
    found: dict[str, list[Port]] = {}
    for port in ports:
        if port.interface:
            found.setdefault(port.name.partition(".")[0], []).append(port)
    return found
