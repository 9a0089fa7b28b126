"""Rules that call themselves before any text, turned round."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hagane.lexgen.masks.parts import Alt, Bytes, Call, OneOf, Part, Rep, Seq, alt, seq


def turned_round(bodies: list[Part]) -> list[Part]:
    """Return rules of which none begins with a call of itself (Paull's algorithm).

    ``A: A x | y`` becomes ``A: y x*``.
    """
    made = list(bodies)
    leads = _leading(made)
    for rule in range(len(made)):
        if rule not in _reached(leads, rule):
            continue
        ways = _ways(made[rule])
        # Calls of earlier rules of the same circle in front are written out.
        while True:
            spread: list[tuple[Part, ...]] = []
            changed = False
            for way in ways:
                head = way[0] if way else None
                circular = (
                    isinstance(head, Call)
                    and head.rule < rule
                    and rule in _reached(leads, head.rule)
                )
                if circular:
                    changed = True
                    spread += [(*inner, *way[1:]) for inner in _ways(made[head.rule])]  # type: ignore[union-attr]
                else:
                    spread.append(way)
            ways = spread
            if not changed:
                break
        loops = [way[1:] for way in ways if way and way[0] == Call(rule)]
        ends = [way for way in ways if not way or way[0] != Call(rule)]
        loops = [way for way in loops if way]
        body = alt(Seq(way) for way in ends)
        made[rule] = seq(body, Rep(alt(Seq(way) for way in loops), 0, None)) if loops else body
    return made


def _ways(part: Part) -> list[tuple[Part, ...]]:
    """Return a part as alternatives, each a sequence."""
    match part:
        case Alt(parts):
            return [way for each in parts for way in _ways(each)]
        case Seq(parts):
            if not parts:
                return [()]
            head, *rest = parts
            return [(*way, *rest) for way in _ways(head)]
        case Rep(body, 0, high) if _begins_with_call(body):
            more = None if high is None else high - 1
            later = () if more == 0 else (Rep(body, 0, more),)
            return [(), *((*way, *later) for way in _ways(body))]
        case Rep(body, low, high) if low and _begins_with_call(body):
            more = None if high is None else high - 1
            return [(*way, Rep(body, low - 1, more)) for way in _ways(body)]
    return [(part,)]


def _begins_with_call(part: Part) -> bool:
    match part:
        case Call():
            return True
        case Seq(parts):
            return bool(parts) and _begins_with_call(parts[0])
        case Alt(parts):
            return any(map(_begins_with_call, parts))
        case Rep(body):
            return _begins_with_call(body)
    return False


def _leading(bodies: list[Part]) -> list[set[int]]:
    """Return for each rule the rules that it may call before any text."""
    empty: set[int] = set()
    while True:
        more = {number for number, body in enumerate(bodies) if _may_be_empty(body, empty)}
        if more == empty:
            break
        empty = more

    def heads(part: Part) -> Iterator[int]:
        match part:
            case Call(rule):
                yield rule
            case Seq(parts):
                for each in parts:
                    yield from heads(each)
                    if not _may_be_empty(each, empty):
                        break
            case Alt(parts):
                for each in parts:
                    yield from heads(each)
            case Rep(body):
                yield from heads(body)

    return [set(heads(body)) for body in bodies]


def _may_be_empty(part: Part, empty: set[int]) -> bool:
    inner: Callable[[Part], bool] = lambda each: _may_be_empty(each, empty)  # noqa: E731
    match part:
        case Bytes(text):
            return not text
        case OneOf(texts):
            return "" in texts
        case Seq(parts):
            return all(map(inner, parts))
        case Alt(parts):
            return any(map(inner, parts))
        case Rep(body, low):
            return low == 0 or inner(body)
        case Call(rule):
            return rule in empty
    return False


def _reached(leads: list[set[int]], rule: int) -> set[int]:
    found: set[int] = set()
    stack = list(leads[rule])
    while stack:
        at = stack.pop()
        if at not in found:
            found.add(at)
            stack += leads[at]
    return found
