"""Python functions that are run for each sequence of their draws."""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from hagane import prob
from hagane.tools.prob import TypedFunction
from hagane.tools.prob.capture.python_function import Unsupported
from hagane.tools.prob.language.source import PathError, TooLarge, UnboundedRecursion

TABLE = [1, 2, 3]


def measured(function: Callable[..., Any], *terms: str, kind: str = "int") -> list[Fraction]:
    """Return the values of Prob and E of the result ``r``."""
    claim = " /\\ ".join(f"{term} >= 0" for term in terms)
    made: TypedFunction[..., Any] = prob.typed(f"{{r:{kind} | {claim}}}", engine="replay")(function)
    assert made.report.verdicts[-1].engine == "replay"
    return [item.value for item in made.report.verdicts[-1].probabilities]


def test_knuth_and_yao_throw_a_die_with_a_coin_in_a_loop() -> None:
    def die() -> int:
        leaves = {3: (1, None), 4: (2, 3), 5: (4, 5), 6: (2, None)}
        s = 0
        while True:
            heads = prob.flip(1 / 2)
            if s < 3:
                s = 2 * s + 1 + heads
            elif s in (3, 6) and heads:
                s //= 3
            else:
                return {3: 1, 6: 6}.get(s) or leaves[s][heads]

    assert measured(die, *(f"Prob(r = {n})" for n in range(1, 7))) == [Fraction(1, 6)] * 6


def test_rejection_is_uniform_and_a_break_ends_it() -> None:
    def die() -> int:
        while True:
            x = prob.rand(0, 7)
            if 1 <= x <= 6:
                break
        return x

    assert measured(die, *(f"Prob(r = {n})" for n in range(1, 7))) == [Fraction(1, 6)] * 6


@pytest.mark.parametrize(("start", "goal"), [(3, 10), (50, 200)])
def test_a_gamblers_ruin_is_that_of_the_formula(start: int, goal: int) -> None:
    def ruin() -> bool:
        money = start
        while 0 < money < goal:
            money += 1 if prob.flip(Fraction(2, 5)) else -1
        return money > 0

    ratio = Fraction(3, 2)
    assert measured(ruin, "Prob(r)", kind="bool") == [(1 - ratio**start) / (1 - ratio**goal)]


def test_counters_have_means_and_bounded_probabilities() -> None:
    def throws() -> int:
        n = 1
        while prob.rand(1, 6) != 6:
            n += 1
        return n

    assert measured(throws, "E[r]") == [6]
    (found,) = measured(throws, "Prob(r > 9)")
    assert found == pytest.approx((5 / 6) ** 9, abs=1e-12)


def test_coupons_are_collected_after_the_harmonic_number_of_draws() -> None:
    def coupons() -> int:
        seen: set[int] = set()
        drawn = 0
        while len(seen) < 6:
            seen.add(prob.rand(1, 6))
            drawn = drawn + 1
        return drawn

    assert measured(coupons, "E[r]") == [6 * sum(Fraction(1, n) for n in range(1, 7))]


def test_a_mean_without_a_bound_is_not_guessed() -> None:
    def squared() -> int:
        n = 1
        while prob.flip(1 / 2):
            n += 1
        return n * n

    with pytest.raises(TooLarge, match=r"E\[r\] has no bound") as caught:
        measured(squared, "E[r]")
    assert "leave a distance to the bound" in str(caught.value)
    (found,) = measured(squared, "Prob(r = 4)")
    assert found == pytest.approx(1 / 4, abs=1e-12)


def test_a_bound_that_open_runs_decide_is_no_verdict() -> None:
    def throws() -> int:
        n = 0
        while prob.flip(1 / 2):
            n += 1
        return n * 2

    with pytest.raises(TooLarge, match=r"Prob\(r = 2\) is 0\.25 \(within"):
        prob.typed("{r:int | Prob(r = 2) = 1/4}", engine="replay")(throws)
    assert prob.typed("{r:int | Prob(r = 2) <= 1/4 + 1/1000000}", engine="replay")(
        throws
    ).report.holds
    with pytest.raises(prob.BrokenClaim):
        prob.typed("{r:int | Prob(r = 2) <= 1/4 - 1/1000000}", engine="replay")(throws)


def test_the_probability_of_runs_without_an_end_is_stated() -> None:
    def walk() -> int:
        x = 1
        while x:
            x = x + (1 if prob.flip(1 / 2) else -1) if x < 3 else x
        return x

    made = prob.typed("{r:int | Prob(r = 0) = 1}", engine="replay")(walk)
    assert "runs go on for ever with probability 1/3" in made.report.verdicts[-1].note

    def never() -> int:
        while True:
            pass

    with pytest.raises(UnboundedRecursion, match="no run ends"):
        prob.typed("{r:int | r = 0}", engine="replay")(never)


def test_natural_python_is_run_as_it_is() -> None:
    @dataclass
    class Job:
        kind: str
        size: int = 1

    def program() -> int:
        kinds = [random.choice("abc") for _ in range(3)]
        count = Counter(kinds)
        load: dict[str, int] = {}
        for job in (Job(kind, prob.rand(1, 2)) for kind in kinds):
            load[job.kind] = load.get(job.kind, 0) + job.size
        big = [name for name, size in load.items() if size > 2]
        half = sum(load.values()) / 2
        return len(set(kinds)) * 100 + max(count.values()) * 10 + len(big) + (half > 2.6)

    expected: Counter[int] = Counter()
    for kinds in itertools.product("abc", repeat=3):
        for sizes in itertools.product((1, 2), repeat=3):
            load: dict[str, int] = {}
            for kind, size in zip(kinds, sizes, strict=True):
                load[kind] = load.get(kind, 0) + size
            big = sum(size > 2 for size in load.values())
            most = max(Counter(kinds).values())
            expected[len(load) * 100 + most * 10 + big + (sum(sizes) / 2 > 2.6)] += 1
    found = measured(program, *(f"Prob(r = {value})" for value in expected))
    assert found == [Fraction(count, 216) for count in expected.values()]


def test_states_share_only_what_cannot_be_told_apart() -> None:
    def aliased() -> int:
        a = [0]
        b = a if prob.flip(1 / 2) else [0]
        for turn in range(2):
            a[0] += turn + 1 + 0 * prob.rand(0, 1)
        return b[0]

    assert measured(aliased, "Prob(r = 3)", "Prob(r = 0)") == [Fraction(1, 2)] * 2

    def kinds() -> int:
        x = 1 if prob.flip(1 / 4) else True
        for _ in range(2):
            prob.rand(0, 1)
        return 1 if x is True else 0

    assert measured(kinds, "Prob(r = 1)") == [Fraction(3, 4)]


def test_loops_inside_loops_and_iterators_are_states() -> None:
    def nested() -> int:
        found, text = 0, {"x": 1, "y": 2}
        for name, weight in text.items():
            for place, letter in enumerate("xyx"):
                while letter == name and prob.flip(1 / 3):
                    found = min(found + weight + place, 9)
        return found

    made = prob.typed("{r:int | Prob(r = 0) = 8/27}")(nested)
    assert made.report.verdicts[-1].engine == "replay"


def test_observations_condition() -> None:
    def given() -> int:
        rolls = {prob.rand(1, 6) for _ in range(2)}
        prob.observe(len(rolls) == 1)
        return sum(rolls)

    assert measured(given, "Prob(r = 6)") == [Fraction(1, 6)]

    def impossible() -> int:
        rolls = {prob.rand(1, 6)}
        prob.observe(len(rolls) == 2)
        return 1

    with pytest.raises(prob.ProgramError, match="the observation has probability zero"):
        measured(impossible, "Prob(r = 6)")


def test_parameters_are_given() -> None:
    @prob.typed("{r:int | E[r] = n}")
    def flips(n: "{n:int | 1 <= n <= 3}") -> int:  # noqa: F821
        heads = tried = 0
        while heads < n:
            heads += len([x for x in [prob.rand(0, 1)] if x])
            tried += 1
        return tried - n

    assert flips.report.verdicts[-1].cases == 3


def test_a_run_that_raises_is_told_at_its_line() -> None:
    def failing() -> int:
        found = {prob.rand(0, 3)}
        if 3 in found:
            raise KeyError("three")
        return len(found)

    with pytest.raises(PathError, match="a possible run raises KeyError: 'three'") as caught:
        measured(failing, "Prob(r = 1)")
    assert 'raise KeyError("three")' in str(caught.value)


def changing() -> int:
    TABLE.append(len({prob.rand(0, 1)}))
    return len(TABLE)


_KEPT: dict[int, int] = {}


def remembering() -> int:
    if not _KEPT:
        _KEPT[0] = prob.rand(0, 1)
    return len({_KEPT[0]})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (changing, "'TABLE', which is older than a run, is changed by it"),
        (remembering, "nor can its runs be followed"),
    ],
)
def test_results_that_draws_do_not_decide_are_refused(
    function: Callable[[], int], message: str
) -> None:
    with pytest.raises(Unsupported, match="nor can its runs be followed") as caught:
        prob.typed("{r:int | Prob(r = 1) = 1}")(function)
    assert message in str(caught.value)
    assert 0 <= random.random() < 1


def test_a_result_of_another_kind_is_refused() -> None:
    def text() -> int:
        return f"{prob.rand(0, 1)}"  # type: ignore[return-value]

    with pytest.raises(prob.ProgramError, match="a possible run returns '0', expected int"):
        measured(text, "Prob(r = 1)")


def test_loops_without_a_bound_are_taken_without_being_asked_for() -> None:
    @prob.typed("{r:int | E[r] = 2}")
    def flips() -> int:
        n = 1
        while prob.flip(1 / 2):
            n += 1
        return n

    assert "engine: replay (its runs were followed, 3 states)" in str(flips.report)


def test_engines_have_names() -> None:
    with pytest.raises(ValueError, match="expected an engine among auto, capture, replay"):
        prob.typed("int", engine="quick")


@pytest.mark.long
def test_a_loop_whose_end_is_far_from_sight_is_run_instead() -> None:
    # Joining components: captured, each search for a root would be followed for hundreds of turns.
    @prob.typed("{n:int | Prob(n = 1) = 1/2}")
    def components() -> int:
        parent = list(range(3))

        def find(x: int) -> int:
            while parent[x] != x:
                parent[x] = parent[parent[x]]
                x = parent[x]
            return x

        for a, b in ((0, 1), (0, 2), (1, 2)):
            if prob.flip(1 / 2):
                parent[find(a)] = find(b)
        return len({find(x) for x in range(3)})

    assert components.report.verdicts[-1].engine == "replay"


def test_the_iterator_of_a_loop_without_an_end_is_a_state() -> None:
    def first_repeat() -> int:
        seen = set()
        for turn in itertools.count(1):
            day = prob.rand(1, 5)
            if day in seen:
                return turn
            seen.add(day)
        return 0

    mean = Fraction(0)
    for turn in range(2, 7):
        ways = Fraction(turn - 1, 5)
        for before in range(turn - 1):
            ways *= Fraction(5 - before, 5)
        mean += turn * ways
    assert measured(first_repeat, "E[r]") == [mean]


def test_texts_that_draws_make_longer_are_run_instead_of_followed() -> None:
    def first_pattern() -> bool:
        last = ""
        while True:
            last = (last + ("H" if prob.flip(1 / 2) else "T"))[-3:]
            if last in ("HTH", "HHT"):
                return last == "HTH"

    with pytest.raises(Unsupported, match="the function parts into more than 4,000 paths"):
        prob.typed("bool", engine="capture")(first_pattern)
    assert measured(first_pattern, "Prob(r)", kind="bool") == [Fraction(1, 3)]


def test_a_loop_with_a_handler_keeps_only_what_is_still_read() -> None:
    @prob.typed("{n:int | Prob(n = 6) = 1/2}")
    def divided() -> int:
        tries = 0
        while True:
            try:
                tries += 1
                return 6 // prob.rand(0, 2)
            except ZeroDivisionError:
                prob.observe(prob.flip(1 / 2))

    assert divided.report.verdicts[0].engine == "replay"


def test_what_a_handler_reads_is_kept() -> None:
    # The handler alone reads ``last``: states that differ in it give different results.
    @prob.typed("{n:int | Prob(n = 1) = 1/2 /\\ Prob(n = 2) = 1/2}")
    def told() -> int:
        last = 0
        while True:
            try:
                if prob.flip(1 / 2) and last:
                    raise ValueError
                last = last or prob.rand(1, 2)
            except ValueError:
                return last

    assert told.report.verdicts[0].engine == "replay"


def test_variables_that_nobody_reads_make_no_states() -> None:
    @prob.typed("{n:int | Prob(n = 2) = 1/3}")
    def drawn() -> int:
        turns = 0
        downs = 9
        up = 1
        n = 3
        while n == 3:
            turns = turns + 1
            downs -= 2
            up += 1
            n = prob.rand(0, 3)
        return n

    assert drawn.report.verdicts[0].engine == "replay"
