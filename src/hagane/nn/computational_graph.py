"""Drawings of recorded computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.nn.autograd.node import creator_of
from hagane.nn.autograd.variable import Variable

_VARIABLE = {"shape": "octagon", "style": "filled", "fillcolor": "#E0E0E0"}
_FUNCTION = {"shape": "record", "style": "filled", "fillcolor": "#6495ED"}


class ComputationalGraph:
    """The functions and variables that outputs were computed from.

    Attributes:
        nodes: Their nodes.
        edges: Pairs of nodes: from a value to its reader.
    """

    def __init__(
        self,
        nodes: Sequence[Any],
        edges: Sequence[tuple[Any, Any]],
        variable_style: dict[str, str] | str | None = "default",
        function_style: dict[str, str] | str | None = "default",
        rankdir: str = "TB",
        remove_variable: bool = False,
        show_name: bool = True,
    ):
        if rankdir not in ("TB", "BT", "LR", "RL"):
            raise ValueError(f"rankdir must be in TB, BT, LR or RL, got {rankdir!r}")
        self.nodes = nodes
        self.edges = edges
        self._variable_style = _style(variable_style, _VARIABLE, "oval")
        self._function_style = _style(function_style, _FUNCTION, "box")
        self._rankdir = rankdir
        self._remove_variable = remove_variable
        self._show_name = show_name

    def dump(self, format: str = "dot") -> str:
        """Return the graph as text of Graphviz.

        Raises:
            NotImplementedError: Another format is asked for.
        """
        if format != "dot":
            raise NotImplementedError(f"format: expected 'dot', got {format!r}")
        if self._remove_variable:
            self.nodes, self.edges = _without_variables(self.nodes, self.edges)
        lines = ["digraph graphname{", f"rankdir={self._rankdir};"]
        for node in self.nodes:
            function = _is_function(node)
            label = node.label
            if not function and self._show_name and node.name is not None:
                label = f"{node.name}: {label}"
            style = {"label": label, **(self._function_style if function else self._variable_style)}
            text = ",".join(f'{key}="{value}"' for key, value in style.items())
            lines.append(f"{_name(node)} [{text}];")
        lines += [f"{_name(a)} -> {_name(b)};" for a, b in self.edges]
        return "\n".join([*lines, "}"])


def _style(given: dict[str, str] | str | None, usual: dict[str, str], shape: str) -> dict[str, str]:
    """Return Graphviz attributes: the usual ones, or those given with a shape by default."""
    return dict(usual) if isinstance(given, str) else {"shape": shape, **(given or {})}


def _name(node: Any) -> str:
    return f"{'function' if _is_function(node) else 'variable'}_{id(node)}"


def _is_function(node: Any) -> bool:
    return hasattr(node, "outputs")


def _without_variables(
    nodes: Sequence[Any], edges: Sequence[tuple[Any, Any]]
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Return functions alone, each joined to those that read its outputs."""
    makers = {value: function for function, value in edges if _is_function(function)}
    joined = [(makers[value], reader) for value, reader in edges if value in makers]
    return [node for node in nodes if _is_function(node)], list(dict.fromkeys(joined))


def build_computational_graph(
    outputs: Any,
    remove_split: bool = True,
    variable_style: dict[str, str] | str | None = "default",
    function_style: dict[str, str] | str | None = "default",
    rankdir: str = "TB",
    remove_variable: bool = False,
    show_name: bool = True,
) -> ComputationalGraph:
    """Return the computation of variables.

    Args:
        outputs: A variable or node, or several.
        remove_split: Kept for programs that set it.
        variable_style: Graphviz attributes of variables, in place of the usual ones.
        function_style: Those of functions.
        rankdir: The direction of the drawing.
        remove_variable: Whether functions are joined directly.
        show_name: Whether names of variables are shown.
    """
    if not remove_split:
        raise ValueError("build_computational_graph: remove_split=False is not supported anymore")
    row = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    for i, one in enumerate(row):
        if not isinstance(one, Variable) and not hasattr(one, "rank"):
            raise TypeError(
                f"build_computational_graph: expected outputs[{i}] to be a Variable or a node, "
                f"got {type(one).__name__}"
            )
    nodes: dict[Any, None] = {}
    edges: dict[tuple[Any, Any], None] = {}
    pending = [getattr(one, "node", one) for one in row]
    seen: set[Any] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        function = creator_of(node)
        nodes[node] = None
        if function is None:
            continue
        nodes[function] = None
        edges[function, node] = None
        for x in function.inputs:
            pending.append(x)
            edges[x, function] = None
    return ComputationalGraph(
        list(nodes),
        list(edges),
        variable_style,
        function_style,
        rankdir,
        remove_variable,
        show_name,
    )
