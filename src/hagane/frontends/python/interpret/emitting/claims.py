"""Claims about sizes: proved, refuted by sizes of the inputs, or assumed and reported."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.pieces import Pieces
from hagane.frontends.python.values.values import Tensor
from hagane.symbolic import Dim, Expr, floordiv, maximum, number_of, symbol, symbols_of
from hagane.symbolic.logic import either, negate
from hagane.symbolic.path import Finding, Verdict
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term, variables_of


class Claims:
    """The facts of sizes, and a program's claims about them.

    Args:
        knowledge: The facts of sizes.
        assume: Told of assumptions, in words.

    Attributes:
        label: The name of the function that is being evaluated, for messages.
        counterexample: Sizes of the inputs that refuted the last claim.
        claim: The claim that they refuted.
        exact: Names of sizes that the inputs' types promise.
        bare: Names that are the whole size of some axis.
        not_one: Sizes that the rank of a value depends on, taken to be other than 1.
        counters: Turns of summarised loops by the name of the turn.
        demands: Claims that a graph compares in its run, as nothing else there notices, in words.
    """

    builds = False  # whether nodes have to compute, rather than have types
    living = False  # whether weights may be others in later runs
    literal = False  # whether values have to be those of each run, rather than of any

    def __init__(self, knowledge: Knowledge, assume: Callable[[str], None]):
        self.knowledge = knowledge
        self.assume = assume
        self.label = ""
        self.counterexample: dict[str, int] = {}
        self.claim: Term | None = None
        self.exact: set[str] = set()
        self.bare: set[str] = set()
        self.not_one: list[Dim] = []
        self.demands: dict[Term, str] = {}
        self.counters: dict[str, Dim] = {}
        self._numbers = itertools.count()
        self._powers: dict[tuple[int, Expr], Expr] = {}
        self.pieces = Pieces(knowledge, self.fresh)

    def fresh(self, label: str = "size") -> Expr:
        """Return a size that nothing is known about, not even that it is positive."""
        name = f"{label}_{next(self._numbers)}"
        self.knowledge.invented.add(name)
        self.knowledge.nameless.add(name)
        self.knowledge.lowest[name] = 0
        return symbol(name)

    def power(self, base: int, exponent: Expr) -> Expr:
        """Return a number to an exponent of sizes, the same one each time."""
        key = (base, exponent)
        if key not in self._powers:
            self._powers[key] = self.fresh("power")
        return self._powers[key]

    def differ(self, left: Dim, right: Dim) -> bool:
        """Whether two sizes that have to be equal are not, for some sizes of the inputs."""
        claim = self.knowledge.equal(left, right)
        if self.knowledge.concolic and self.knowledge.decides(claim):
            return not self._holds_here(claim)
        self._expect_long_enough(left, right)
        finding = self.knowledge.same(left, right)
        if finding.verdict is Verdict.REFUTED:
            if self._is_need(left, right, claim):
                return False
            if self._is_share(left, right) and self.knowledge.possible(claim):
                self.suppose(claim, f"{left} == {right}")
                return False
            if self._are_counts(left, right, claim):
                return False
            self._refuted(finding, self.knowledge.equal(left, right))
            return True
        if finding.verdict is Verdict.UNKNOWN:
            if self._fails_at_last(claim):
                return True
            self.suppose(self.knowledge.equal(left, right), f"{left} == {right}")
        return False

    def clash(self, left: Dim, right: Dim) -> bool:
        """Whether some sizes keep two sizes from broadcasting."""
        known = self.knowledge
        claim = either(known.equal(left, right), known.equal(left, 1), known.equal(right, 1))
        if self._is_need(left, right, claim):
            return False
        self._expect_long_enough(left, right)
        if self._are_counts(left, right, known.equal(left, right)):
            return False
        return not self.holds(claim, f"{left} and {right} broadcast")

    def wider(self, left: Dim, right: Dim) -> Dim:
        """Return the size of two that broadcast, of which either may be 1 on some path."""
        for one, other in ((left, right), (right, left)):
            found = self._on_paths(one)
            if len(found) > 1 and found <= {other, 1}:
                return other
        if not (symbols_of(left) | symbols_of(right)) & self.knowledge.joined.keys():
            return left
        same = self.knowledge.same(left, right).verdict is Verdict.PROVED
        return left if same else maximum(left, right)

    def _on_paths(self, dim: Dim) -> set[Dim]:
        """Return the sizes that one has on each path on which it was made."""
        joined = self.knowledge.joined.get(str(dim)) if isinstance(dim, Expr) else None
        if joined is None:
            return {dim}
        return self._on_paths(joined.yes) | self._on_paths(joined.no)

    def _is_need(self, left: Dim, right: Dim, claim: Term) -> bool:
        """Whether a part of an axis is whole where the axis is long enough, which is required.

        ``x[:, :12]`` has ``min(12, n)`` columns: where 12 are expected, ``n`` has to be 12 or more,
        a need of one size alone. Inputs are restricted to it.
        """
        part, whole = (left, right) if isinstance(right, int) else (right, left)
        if not isinstance(part, Expr) or not isinstance(whole, int) or len(symbols_of(part)) != 1:
            return False
        if self.knowledge.concolic or not _is_cut(part) or self._fails_at_last(claim):
            return False
        most = self.knowledge.ask(self.knowledge.less(part, whole, strict=False))
        if most.verdict is not Verdict.PROVED:
            return False
        (name,) = symbols_of(part)
        enough = next((n for n in range(1, 4096) if number_of(part, {name: n}) == whole), None)
        told = f"{part} == {whole}" if enough is None else f"{name} >= {enough}"
        return self.restrict(claim, f"{told} (an axis of which {whole} are taken)")

    def _is_share(self, left: Dim, right: Dim) -> bool:
        """Whether a size that the data decide is to be a multiple of another, as a run finds.

        ``x[mask].reshape(batch, -1)`` has as many elements of each row.
        """
        known = self.knowledge
        counted = (symbols_of(left) | symbols_of(right)) & known.nameless - known.invented
        return bool(counted) and (_has_quotient(left) or _has_quotient(right))

    def _are_counts(self, left: Dim, right: Dim, claim: Term) -> bool:
        """Whether the data decide both of two sizes; a run fails then where they differ.

        As many pieces begin as end: that the counts are equal, only the program's author knows.
        Graphs, which compare them, are made where one is a count, too.
        """
        known = self.knowledge
        sides = [symbols_of(size) if isinstance(size, Expr) else set() for size in (left, right)]
        counted = [bool(names) and names <= known.nameless - known.invented for names in sides]
        if not (any if self.builds else all)(counted):
            return False
        if known.ask(claim).verdict is not Verdict.PROVED:
            if known.concolic or not known.possible(claim):
                return False
            self.fail_where(negate(claim), f"expected equal counts, {left} == {right}")
            self.suppose(claim, f"{left} == {right}")
        return True

    def _fails_at_last(self, claim: Term) -> bool:
        """Whether a loop reaches a turn, its last one, in which a claim fails."""
        for name in sorted(variables_of((claim,)).keys() & self.counters.keys()):
            last = self.knowledge.equal(symbol(name), self.counters[name] - 1)
            if self.knowledge.possible(last):
                with self.knowledge.along(self.knowledge.path.taking(last)):
                    if not self.knowledge.possible(claim):
                        return True
        return False

    def _expect_long_enough(self, left: Dim, right: Dim) -> None:
        """Restrict a size to a table's where it meets as many of the table's last elements.

        ``table[max(0, 512 - n):]`` has ``n`` elements only if the table is that long.
        """
        for part, whole in ((left, right), (right, left)):
            found = _last_of(part)
            if found is not None and found[1] == whole and not self.knowledge.concolic:
                count, most = whole, found[0]
                claim = self.knowledge.less(count, most, strict=False)
                self.restrict(claim, f"{count} <= {most} (the last of an axis of {most})")

    def holds(self, claim: Term, text: str) -> bool:
        """Whether ``claim`` holds for all sizes; an undecided claim is assumed, and reported."""
        if self.knowledge.concolic and self.knowledge.decides(claim):
            return self._holds_here(claim)
        finding = self.knowledge.ask(claim)
        if finding.verdict is Verdict.REFUTED:
            self._refuted(finding, claim)
            return False
        if finding.verdict is Verdict.UNKNOWN:
            if self._fails_at_last(claim):
                return False
            self.suppose(claim, text)
        return True

    def _holds_here(self, claim: Term) -> bool:
        """Whether a claim holds in the example; if so, other examples have to keep it."""
        holds = self.knowledge.holds_in_sample(claim)
        if holds:
            self.knowledge.path = self.knowledge.path.taking(claim)
        else:
            self.counterexample = dict(self.knowledge.sample)
        return holds

    def _refuted(self, finding: Finding, claim: Term) -> None:
        self.counterexample = dict(finding.counterexample)
        self.claim = claim

    def clear(self) -> None:
        """Forget earlier refutations."""
        self.counterexample = {}
        self.claim = None

    def suppose(self, claim: Term, text: str) -> None:
        """Take ``claim`` for granted from now on, and say so."""
        self.assume(text)
        self.knowledge.path = self.knowledge.path.taking(claim)

    def note_trained(self, tensor: Tensor) -> None:
        """Take note that a tensor is to have gradients from now on."""

    def note_raise(self, text: str) -> None:
        """Take note that the program raises an error on this path, which the data decide."""

    def fail_where(self, condition: Term, text: str) -> None:
        """Let a graph fail in runs that come to the path and for which a condition holds."""

    def demand(self, claim: Term, text: str) -> None:
        """Let a graph compare ``claim`` in its run, if it has runs; nothing is assumed."""

    def assert_sizes(self, claim: Term, text: str) -> None:
        """Let a graph fail in runs whose sizes an assertion rules out."""

    def may_reach(self, index: Dim, count: Dim, what: str) -> bool:
        """Whether some sizes leave an item at a place; the others are ruled out from now on."""
        behind = isinstance(index, int) and index < 0
        claim = self.knowledge.less(-index - 1 if behind else index, count)
        if self.knowledge.ask(claim).verdict is Verdict.PROVED:
            return True
        if not self.knowledge.possible(claim):
            return False
        if not isinstance(index, Expr) or str(index) not in self.knowledge.nameless:
            told = f"{count} >= {-index}" if behind else f"{index} < {count}"
            self.suppose(claim, f"{told} ({what})")
        return True

    def require_size(self, dim: Dim, lowest: int, what: str) -> None:
        """Restrict the inputs to those for which ``dim >= lowest``; fail where none are left."""
        if isinstance(dim, int):
            if dim < lowest:
                self.fail("value", f"expected {what} to be at least {lowest}, got {dim}")
            return
        claim = self.knowledge.less(lowest, dim, strict=False)
        if not self.restrict(claim, f"{dim} >= {lowest} ({what})"):
            self.fail("value", f"expected {what} to be at least {lowest}, got {dim}")

    def restrict(self, claim: Term, text: str) -> bool:
        """Restrict the inputs to those for which ``claim`` holds; False where none are left.

        Inputs whose types promise all their sizes are not restricted: False for these too.
        """
        if self.knowledge.concolic and self.knowledge.decides(claim):
            return self._holds_here(claim)
        finding = self.knowledge.ask(claim)
        if finding.verdict is Verdict.PROVED:
            return True
        if not self.knowledge.possible(claim) or self._is_promised(claim, finding):
            return False
        self.suppose(claim, text)
        return True

    def indivisible(self, dim: Dim, parts: Dim, what: str) -> bool:
        """Whether a size is no multiple of ``parts``; inputs are restricted to those with one.

        A graph refuses sizes of which only some divide: its run would not notice the others.
        """
        whole = floordiv(dim, parts) * parts
        if self.builds or not isinstance(whole - dim, Expr):
            return self.differ(whole, dim)
        return not self.restrict(
            self.knowledge.equal(whole, dim), f"{dim} is a multiple of {parts} ({what})"
        )

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Keep what is assumed and promised inside the block from what comes behind it."""
        known = self.knowledge
        kept = known.path, dict(known.sample), known.budget, set(self.exact), set(self.bare)
        try:
            yield
        finally:
            known.path, known.sample, known.budget, self.exact, self.bare = kept

    def suppose_not_one(self, dim: Dim, what: str) -> None:
        """Restrict the inputs to those for which a size is 2 or more; graphs compare it at run."""
        if not isinstance(dim, int):
            claim = self.knowledge.less(2, dim, strict=False)
            if self.knowledge.ask(claim).verdict is not Verdict.PROVED:
                self.not_one.append(dim)
        self.require_size(dim, 2, what)

    def _is_promised(self, claim: Term, finding: Finding) -> bool:
        """Whether the inputs' types promise all the sizes that a refuted claim speaks of.

        A bare name may be restricted; an expression ``height + 31`` means every height.
        """
        names = variables_of((claim,)).keys()
        promised = self.exact - self.bare
        if finding.verdict is not Verdict.REFUTED or not names or not names <= promised:
            return False
        self._refuted(finding, claim)
        return True

    def fail(self, code: str, message: str, *tensors: Tensor, remedy: str = "") -> NoReturn:
        """Raise an error about the expression that is being evaluated."""
        label = f"{self.label}: " if self.label else ""
        raise CheckError(
            code,
            f"{label}{message}",
            remedy=remedy,
            tensors=tensors,
            counterexample=self.counterexample,
            claim=self.claim,
        )


def _is_cut(size: Expr) -> bool:
    """Whether a size has a bound, as that of a part between fixed places of an axis."""
    atoms = [atom for monomial in size.terms for atom, _ in monomial]
    return any(atom.head in ("min", "max") for atom in atoms)


def _has_quotient(size: Dim) -> bool:
    if not isinstance(size, Expr):
        return False
    return any(atom.head == "floor" for monomial in size.terms for atom, _ in monomial)


def _last_of(size: Dim) -> tuple[int, Dim] | None:
    """Return k and n of ``k - max(0, k - n)``, the length of an axis of ``k`` from there on."""
    if not isinstance(size, Expr):
        return None
    whole = size.terms.get((), 0)
    cut = whole - size
    atoms = [atom for monomial in size.terms for atom, _ in monomial]
    if not isinstance(whole, int) or whole < 2 or len(atoms) != 1 or atoms[0].head != "max":
        return None
    if cut != Expr({((atoms[0], 1),): 1}) or 0 not in atoms[0].arguments:
        return None
    (rest,) = (one for one in atoms[0].arguments if one != 0)
    return whole, whole - rest
