"""The rules of a start condition as one expression for ``re``, where that is provably right.

``re`` takes the first alternative that matches; a lexer wants the longest match and then the first
rule. Let a rule ``a`` *yield* to a rule ``b`` if on some text ``b``'s longest match is longer than
``a``'s, or equally long while ``b`` comes first. If every rule stands after all those it yields to,
and each alternative finds its own longest match, the first alternative that matches is the winner.

A rule with a trailing context counts with it, and keeps its first characters: their number must be
known. Rules that yield to each other (a keyword and an identifier) become one alternative for their
union; the text of the match then says which of them it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.dfa import Dfa, minimise
from hagane.lexgen.automata.nfa import Accept, build_nfa
from hagane.lexgen.automata.to_re import charset_source, follow, split_astral, to_re, to_re_branches
from hagane.lexgen.expressions import charset
from hagane.lexgen.expressions.charset import Ranges
from hagane.lexgen.expressions.syntax import width
from hagane.lexgen.lexing.specification import Rule

MAX_WORDS = 5000


def fast_path(
    rules: Sequence[Rule],
    active: Sequence[int],
    dfa: Dfa,
    step_of: dict[Accept, int],
) -> tuple[str, list[Any]] | None:
    """Return the expression of a start condition and the meaning of each of its groups.

    A meaning is a kind, None (skip), a mapping from words to kinds with the default at ``""``, a
    list of (expression, kind) to try in order, the number of a step plus 1 where there is more to
    do, 0 for the group that catches errors, or -1 for the end of the text. Skipped text may
    stand before the group. None is returned where ``re`` cannot be trusted.

    Args:
        rules: All rules.
        active: The numbers of those active in the condition.
        dfa: The condition's automaton, each state with all the rules that it accepts.
        step_of: The number of the step of an accept.
    """
    if not active:
        return None
    for accept in (accept for accepts in dfa.accepts for accept in accepts):
        head = _head(rules[accept.rule])
        # Without a trailing context characters are given back after a condition (``\b``).
        if head is None or (not head and accept.back):
            return None
    if len(set(dfa.starts[0])) > 1 or any(row[dfa.alphabet.end_class] >= 0 for row in dfa.delta):
        return None
    present = {accept.rule for accepts in dfa.accepts for accept in accepts}
    yields = _yields(dfa)
    numbers = [number for number in active if number in present]
    joined = _build(rules, _order(yields, numbers, _alike(rules, numbers)), yields, step_of)
    if joined is not None and not any(isinstance(each, list) for each in joined[1]):
        return joined
    # Rules that yield to each other only where they stand for others are better apart.
    return _build(rules, _order(yields, numbers, {n: n for n in numbers}), yields, step_of)


def _alike(rules: Sequence[Rule], numbers: Sequence[int]) -> dict[int, int]:
    """Return for each rule the first one that makes tokens of the same kind and does no more."""
    firsts: dict[str, int] = {}
    found = {}
    for number in numbers:
        action = rules[number].action
        plain = action.kind is not None and not action.moves and not _head(rules[number])
        found[number] = firsts.setdefault(action.kind or "", number) if plain else number
    return found


def _head(rule: Rule) -> int | None:
    """Return how long the tokens before a trailing context are, 0 without one.

    None is returned where they differ in that.
    """
    heads = {0 if b.following is None else width(b.body) for b in rule.pattern.branches}
    return heads.pop() if len(heads) == 1 else None


def _build(
    rules: Sequence[Rule],
    order: Sequence[list[int]],
    yields: dict[int, set[int]],
    step_of: dict[Accept, int],
) -> tuple[str, list[Any]] | None:
    """Return the expression and the meanings of groups of rules in this order."""
    skips: list[str] = []
    runs: Ranges = ()
    made: list[tuple[list[int], list[tuple[Ranges, str]], Any]] = []
    for group in order:
        union_dfa = minimise(determinise(build_nfa([rules[n].pattern.branches for n in group])))
        joint = minimise(
            replace(union_dfa, accepts=[(Accept(0),) if a else () for a in union_dfa.accepts])
        )
        branches = to_re_branches(joint)
        heads = [head for n in group if (head := _head(rules[n]))]
        if branches is None or (heads and len(group) > 1):
            return None
        action = rules[group[0]].action
        if heads:
            kept = f"[\\s\\S]{{{heads[0] - 1}}}" if heads[0] > 1 else ""
            branches = [(symbols, f"(?={tail}){kept}") for symbols, tail in branches]
        elif len(group) == 1 and not yields[group[0]] and action.kind is None and not action.moves:
            # Skipped text that yields to nothing is taken along with the token after it.
            ((symbols, tail), *others) = branches
            if not others and tail == charset_source(symbols) + "*+":
                runs = charset.union(runs, symbols)
            else:
                skips.append(to_re(joint) or "")
            continue
        meaning = _meaning(rules, group, union_dfa, step_of)
        if meaning is _NOTHING:
            return None
        made.append((group, branches, meaning))
    run = charset_source(runs) + "*+" if runs else ""
    skipping = run + (f"(?:(?:{'|'.join(skips)}){run})*+" if skips else "")
    alternatives, meanings = _arranged(made, yields)
    return f"{skipping}()(?:{'|'.join(alternatives)})", meanings


def _arranged(
    made: Sequence[tuple[list[int], list[tuple[Ranges, str]], Any]], yields: dict[int, set[int]]
) -> tuple[list[str], list[Any]]:
    """Return the alternatives, an empty group after each, and the meaning of each group.

    ``re`` passes over an alternative at once if it starts with a character or class that does not
    fit; hence the groups at the ends. Alternatives whose first characters exclude each other may
    change places: common ones come first. A rule is therefore cut in two where
    some of its first characters start no token that it yields to: words, which are most of a text.
    """
    first = {n: charset.union(*(s for s, _ in ways)) for group, ways, _ in made for n in group}
    found: list[tuple[Ranges, str, Any]] = []
    for group, branches, meaning in made:
        before = {n for each in group for n in yields[each]} - set(group)
        taken = charset.union(*(first[n] for n in before if n in first))
        for symbols, tail in branches:
            for part in (charset.difference(symbols, taken), charset.intersect(symbols, taken)):
                found += [(each, tail, meaning) for each in split_astral(part) if each]
    ordered = [
        (follow(charset_source(symbols), tail), meaning)
        for symbols, tail, meaning in _common_first(found)
    ]
    ordered += [(r"[\s\S]", 0), (r"\Z", -1)]
    return [f"{source}()" for source, _ in ordered], [None, None, *(m for _, m in ordered)]


def _common_first(ways: Sequence[tuple[Ranges, str, Any]]) -> list[tuple[Ranges, str, Any]]:
    """Return alternatives with the common ones first; pairs that may both match keep their order.

    How common a first character is concerns speed alone.
    """
    common = [sum(_weight(*pair) for pair in symbols) for symbols, _, _ in ways]
    waiting: dict[int, set[int]] = {}
    for number, (symbols, _, _) in enumerate(ways):
        waiting[number] = {n for n in range(number) if charset.intersect(ways[n][0], symbols)}
    for number in reversed(range(len(ways))):
        for before in waiting[number]:  # predecessors of common ones should come soon
            common[before] = max(common[before], common[number])
    order: list[int] = []
    while waiting:
        ready = (number for number, before in waiting.items() if before.isdisjoint(waiting))
        best = max(ready, key=common.__getitem__)
        order.append(best)
        del waiting[best]
    return [ways[number] for number in order]


def _weight(low: int, high: int) -> int:
    """Return how common the characters of a range are at the start of a token, roughly."""
    weights = {"\n": 32} | dict.fromkeys(".,:()=\"'", 8)
    return sum(
        weights.get(char, 4 if char.islower() else 2 if char.isalnum() else 1)
        for char in map(chr, range(low, min(high, 127) + 1))
    )


_NOTHING = object()


def _meaning(
    rules: Sequence[Rule],
    group: Sequence[int],
    union: Dfa,
    step_of: dict[Accept, int],
) -> Any:
    actions = [rules[number].action for number in group]
    kind = actions[0].kind
    if any(action.moves for action in actions):
        number = min(n for accept, n in step_of.items() if accept.rule == group[0])
        return number + 1 if len(group) == 1 else _NOTHING
    if all(action.kind == kind for action in actions):
        return kind
    words = [_words(union, position) for position in range(len(group))]
    default = {action.kind for action, found in zip(actions, words, strict=True) if found is None}
    if len(default) == 1 and all(action.kind is not None for action in actions):
        meaning = {"": default.pop()}
        for position, action in enumerate(actions):
            if words[position] is not None:
                for word in _words(union, position, winners=True) or ():
                    meaning[word] = action.kind
        return meaning
    expressions = []
    for number in group:
        own = to_re(minimise(determinise(build_nfa([rules[number].pattern.branches]))))
        if own is None:
            return _NOTHING
        expressions.append((own, rules[number].action.kind))
    return expressions


def _words(dfa: Dfa, rule: int, winners: bool = False) -> list[str] | None:
    """Return the texts that a rule accepts, or None where they are too many or endless.

    With ``winners`` only texts that no earlier rule accepts.
    """
    members = dfa.alphabet.members()
    if rule_is_endless(dfa, rule):
        return None
    useful = _leading_to(dfa, rule)
    found: list[str] = []
    stack = [(dfa.starts[0][0], "")]
    while stack:
        state, word = stack.pop()
        ranks = [accept.rule for accept in dfa.accepts[state]]
        if rule in ranks and (not winners or ranks[0] == rule):
            found.append(word)
        for id, to in enumerate(dfa.delta[state]):
            if to in useful:
                for low, high in members[id]:
                    if len(found) + len(stack) + high - low > MAX_WORDS:
                        return None
                    stack.extend((to, word + chr(code)) for code in range(low, high + 1))
    return found


def _leading_to(dfa: Dfa, rule: int) -> set[int]:
    """Return the states from which a rule is accepted."""
    before: dict[int, set[int]] = {}
    for state, row in enumerate(dfa.delta):
        for to in set(row):
            before.setdefault(to, set()).add(state)
    useful = {s for s, acc in enumerate(dfa.accepts) if any(a.rule == rule for a in acc)}
    stack = list(useful)
    while stack:
        for source in before.get(stack.pop(), ()):
            if source not in useful:
                useful.add(source)
                stack.append(source)
    return useful


def rule_is_endless(dfa: Dfa, rule: int) -> bool:
    """Return whether a rule accepts arbitrarily long texts."""
    useful = _leading_to(dfa, rule)
    degree = dict.fromkeys(useful, 0)
    for state in useful:
        for to in dfa.delta[state]:
            if to in useful:
                degree[to] += 1
    stack = [state for state, count in degree.items() if not count]
    removed = 0
    while stack:
        state = stack.pop()
        removed += 1
        for to in dfa.delta[state]:
            if to in useful:
                degree[to] -= 1
                if not degree[to]:
                    stack.append(to)
    return removed < len(useful)


def _yields(dfa: Dfa) -> dict[int, set[int]]:
    """Return for each rule the rules that it must stand after."""
    found: dict[int, set[int]] = {}
    at: dict[int, list[int]] = {}
    ranks = [frozenset(accept.rule for accept in accepts) for accepts in dfa.accepts]
    for state, rules in enumerate(ranks):
        for rule in rules:
            found.setdefault(rule, set()).update(other for other in rules if other < rule)
            at.setdefault(rule, []).append(state)
    for rule, states in at.items():
        seen: set[int] = set()
        stack = list(states)
        while stack:
            for to in set(dfa.delta[stack.pop()]):
                if to >= 0 and to not in seen and rule not in ranks[to]:
                    seen.add(to)
                    stack.append(to)
                    found[rule] |= ranks[to]
    return found


def _order(
    yields: dict[int, set[int]], rules: Sequence[int], alike: dict[int, int]
) -> list[list[int]]:
    """Return groups of rules, each after those it yields to (strongly connected components).

    Rules with the same value in ``alike`` stay together.
    """
    members: dict[int, list[int]] = {}
    for rule in rules:
        members.setdefault(alike[rule], []).append(rule)
    after = {
        first: {alike[other] for rule in together for other in yields.get(rule, ())} - {first}
        for first, together in members.items()
    }
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    groups: list[list[int]] = []
    for root in members:
        if root in index:
            continue
        work = [(root, iter(sorted(after[root])))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            rule, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(sorted(after[other]))))
                    break
                if other in on_path:
                    low[rule] = min(low[rule], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[rule])
                if low[rule] == index[rule]:
                    cut = path.index(rule)
                    groups.append(sorted(rule for each in path[cut:] for rule in members[each]))
                    on_path.difference_update(path[cut:])
                    del path[cut:]
    return groups
