"""Operators as nodes of a graph with branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.exact import failing, fitting_operation, is_apart, only_item
from hagane.frontends.capture.emitting.scalars import ScalarEmitter
from hagane.frontends.capture.emitting.scope import Branch, Scope
from hagane.frontends.capture.emitting.terms import as_value
from hagane.frontends.python.values.memory import Written, mark_stale, share, written_since
from hagane.frontends.python.values.values import Tensor
from hagane.graph.types import Shape, TensorType
from hagane.ops.builder import Nodes, interpreting, node_of
from hagane.ops.gradient.accumulate import accumulate
from hagane.ops.gradient.replay import call_of
from hagane.ops.registry import operators
from hagane.symbolic.logic import negate
from hagane.symbolic.path import Verdict
from hagane.symbolic.term import Term, variables_of


def false_or_failing(nodes: Nodes, bad: ir.Value, told: str) -> ir.Value:
    """Return false; a run in which ``bad`` is true fails instead."""
    return only_item(nodes, bad, bad, told)


class GraphEmitter(ScalarEmitter):
    """Makes nodes, branches, and values that are one of two."""

    def branch(self, condition: Term) -> Branch:
        """Return a new branch in the current scope."""
        scope = self.scope
        value = as_value(self, condition)
        graphs = [ir.Graph([], [], nodes=[], name=name) for name in ("then", "else")]
        bodies = dict(zip(("then_branch", "else_branch"), graphs, strict=True))
        node = node_of(operators()["", "If"], [value], bodies, 0)
        made = Branch(node, scope, condition, len(self._born), self._output, self._filler, self.own)
        made.yes = self.open_scope(graphs[0], scope, condition)
        made.no = self.open_scope(graphs[1], scope)
        made.no.condition = negate(condition)
        made.yes.owner = made.no.owner = made
        scope.nodes.insert(node)
        scope.branches[condition] = made
        return made

    def _output(self, made: ir.Value, yes: ir.Value, no: ir.Value, scope: Scope) -> None:
        a, b = self.types.types.get(yes), self.types.types.get(no)
        assert isinstance(a, TensorType)
        shape = a.shape
        if isinstance(b, TensorType) and a.shape is not None and b.shape is not None:
            if len(a.shape) != len(b.shape):
                shape = None
            elif a.shape != b.shape:
                shape = tuple(
                    x if x == y else self.fresh("size")
                    for x, y in zip(a.shape, b.shape, strict=True)
                )
        self.set_type(made, TensorType(a.dtype, shape))
        self.add_home(made, scope)
        scope.nodes.note_sizes(made)

    def _filler(self, like: ir.Value, scope: Scope) -> ir.Value:
        """Return a value of the type of another one, of which nothing depends."""
        type_ = self.types.types[like]
        assert isinstance(type_, TensorType)
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape or ())
        dtype = type_.dtype.numpy()
        with self.at(scope):
            if dtype.kind in "OSU":
                content = np.full(shape, "", dtype=object)
                return scope.nodes.initializer(content, "filler")
            return self.value_of(
                self.op(
                    "ConstantOfShape",
                    np.array(shape, np.int64),
                    value=ir.tensor(np.zeros(1, dtype)),
                )
            )

    def own(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return a value that lies in a scope and is no other output of it."""
        is_free = self.homes.get(value) is scope and value not in scope.graph.outputs
        if is_free and value.producer() is not None:
            return value
        with self.at(scope):
            return scope.nodes._node("Identity", self.visible(value))

    def zeros(self, type_: TensorType) -> ir.Value:
        """Return a tensor that nothing depends on."""
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape or ())
        return self.root.nodes.initializer(np.zeros(shape, type_.dtype.numpy()), "filler")

    # Claims.

    def restrict(self, claim: Term, text: str) -> bool:
        """Restrict the inputs to those for which a claim holds, which the run compares.

        The run does so where all runs come to the claim and only sizes of inputs decide it.
        """
        is_open = self.knowledge.ask(claim).verdict is not Verdict.PROVED
        done = super().restrict(claim, text)
        if done and is_open and self.compares:
            self.demand(claim, text)
        return done

    def demand(self, claim: Term, text: str) -> None:
        """Let the run compare a claim if all runs come to it and sizes of inputs decide it."""
        names = variables_of((claim,)).keys()
        if self.scope is self.root and names <= self.bare:
            self.demands.setdefault(claim, text)

    def assert_sizes(self, claim: Term, text: str) -> None:
        """Let the graph fail in runs that an assertion rules out; data only where they are read."""
        names = variables_of((claim,)).keys()
        of_data = any(name.startswith("?") for name in names)
        if not self.compares or (of_data and not self.asserts):
            return
        if self.scope is self.root and names <= self.bare:
            self.demands.setdefault(claim, text)
        else:
            self.fail_where(negate(claim), text)

    def note_trained(self, tensor: Tensor) -> None:
        """Take note that a tensor is to have gradients from now on."""
        self.trained_here.append(tensor)

    def note_raise(self, text: str) -> None:
        """Take note that the program raises an error on this path."""
        self.raises.setdefault(self._told_here(text))

    def _told_here(self, text: str) -> str:
        place = self.place()
        return text if place is None else f"{text} at {place.file}:{place.line}"

    def fail_where(self, condition: Term, text: str) -> None:
        """Let the graph fail in runs that come to the path and for which a condition holds."""
        nodes, told = self.scope.nodes, f"the program raises an error: {self._told_here(text)}"
        self.unraised.append(false_or_failing(nodes, as_value(self, condition), told))

    def fitting(self, name: str, operands: Sequence[Tensor], made: Tensor) -> Tensor:
        """Return the result of an operation on integers; a run in which it does not fit fails."""
        values = [self.value_of(operand) for operand in operands]
        nodes = self.scope.nodes
        return self.tensor(fitting_operation(self, nodes, name, values, self.value_of(made)))

    def as_wide(self, wide: Tensor, made: Tensor) -> Tensor:
        """Return an integer that a float is; a run in which it does not fit fails."""
        nodes, value = self.scope.nodes, self.value_of(made)
        return self.tensor(failing(self, nodes, value, is_apart(nodes, self.value_of(wide), value)))

    def is_here(self, around: Scope) -> ir.Value:
        """Return whether a run of a scope came to where the path lies, as a value of that scope."""
        with self.at(self.scope):
            here = self.scope.nodes._node("Identity", self.value_of(self.constant(np.array(True))))
        return self.visible(here, around)

    # Derivatives.

    def gradients(
        self, of: Sequence[Tensor], seeds: Sequence[Tensor], inputs: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """Return the gradients of tensors by others, computed where the path lies.

        Args:
            of: The tensors that are differentiated.
            seeds: The gradient of each.
            inputs: Those by which.

        Returns:
            One of the type of each input; None where nothing in ``of`` depends on it.

        Raises:
            NotDifferentiable: An operator on the way has no gradient.
        """
        scope = self.scope
        calls = [call_of(node) for outer in reversed([*scope.chain()]) for node in outer.graph]
        ends, starts, sources = ([self.value_of(x) for x in each] for each in (of, seeds, inputs))
        with interpreting(scope.nodes):
            found = accumulate(calls, ends, starts, sources)
        made: list[Tensor | None] = []
        for x, value in zip(inputs, found, strict=True):
            made.append(None if value is None else self.tensor(value, x.kind))
            if value is not None and x.shape is not None:
                self.show_sizes(made[-1], x.shape)  # type: ignore[arg-type]
        return made

    # Attempts.

    def scratch_scope(self) -> Scope:
        """Return a scope that is thrown away."""
        return self.open_scope(ir.Graph([], [], nodes=[], name="scratch"), self.scope)

    def marked(self) -> tuple[Any, ...]:
        """Return the mark that :meth:`back_to` goes back to."""
        names = dict(self.numbers), dict(self.truths), dict(self.sizes), dict(self.kinds)
        return *names, (len(self.unraised), dict(self.raises)), self._counts.marked()

    def back_to(self, mark: tuple[Any, ...]) -> None:
        """Forget the names of values made since."""
        *names, (loops, raises), counts = mark
        self.numbers, self.truths, self.sizes, self.kinds = map(dict, names)
        self.raises = dict(raises)
        del self.unraised[loops:]
        self._counts.back_to(counts)

    def choose(
        self,
        condition: Term,
        yes: Tensor,
        no: Tensor,
        shape: Shape | None,
        *,
        written: tuple[Written, Written] = (frozenset(), frozenset()),
    ) -> Tensor:
        """Return a value that is one tensor where a condition holds, and another one elsewhere.

        Args:
            condition: The condition.
            yes: The tensor where it holds.
            no: The other one.
            shape: The sizes of either.
            written: The memory that each of the two paths wrote in place.
        """
        scope = self.scope
        branch = scope.branches.get(condition)
        if branch is None or not (
            self._reaches(yes.value, branch, branch.yes)
            and self._reaches(no.value, branch, branch.no)
        ):
            branch = self.branch(condition)
        sides = []
        for tensor, side in ((yes, branch.yes), (no, branch.no)):
            with self.at(side):
                sides.append(self.standing_for(tensor))
        value = branch.pair(*sides)
        share(value, (yes.value, no.value))
        for tensor, done in zip((yes, no), written, strict=True):
            place = written_since(tensor.value, self.born(tensor.value), done)
            if place is not None:
                mark_stale(value, place)
                self.stale = True
        self.set_type(value, TensorType(yes.dtype, shape))
        scope.nodes.note_sizes(value)
        kind = yes.kind
        device = yes.device if yes.device == no.device else ""
        made = self._wrap(value, TensorType(yes.dtype, shape), None, kind, device)
        made.origin = yes.origin
        return made

    def _reaches(self, value: ir.Value, branch: Branch, side: Scope) -> bool:
        """Whether a side of a branch that is there already may use a value."""
        home = self.homes.get(value)
        if home is None:
            return True
        if home.is_within(side):
            return True
        return self._born[value] < branch.since and not (
            home.is_within(branch.yes) or home.is_within(branch.no)
        )


__all__ = ["GraphEmitter"]
