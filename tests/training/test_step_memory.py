"""Budgets of memory for compiled steps, and the schedules behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hagane
from hagane.errors import InvalidArgument
from hagane.training.step.memory.budget import _pieces_within, parse_budget
from hagane.training.step.memory.byte_counts import bytes_of_program, without_program
from hagane.training.step.memory.chain import Act, Chain, Move, Stage

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def seconds_of(stages: list[Stage], moves: list[Move]) -> float:
    """Return the time of a schedule; every stage finds its input, and goes back once, in order."""
    there, kept, left, seconds = {-1}, set[int](), len(stages) - 1, 0.0
    for act, number in moves:
        assert number - 1 in there
        if act is Act.BACK:
            assert number == left
            assert number in kept
            left -= 1
            there -= {stage for stage in there if stage >= number}
            continue
        seconds += stages[number].again if number == left else stages[number].seconds
        there.add(number)
        if act is Act.KEEP:
            kept.add(number)
    assert left == -1
    return seconds


def test_with_all_memory_nothing_is_computed_again() -> None:
    chain = Chain([Stage(1.0, 0.0, 1.0, 1.0)] * 6)
    moves = chain.schedule(chain.most)
    assert moves == [(Act.KEEP, i) for i in range(6)] + [(Act.BACK, i) for i in range(5, -1, -1)]


@pytest.mark.parametrize(("length", "most"), [(4, 3), (9, 5), (16, 7)])
def test_segments_of_root_length_need_root_memory_and_one_more_pass(length: int, most: int) -> None:
    # Chen et al.: with about 2 sqrt(n) outputs in memory no stage is computed more than twice.
    chain = Chain([Stage(1.0, 0.0, 1.0, 1.0)] * length, slots=length)
    assert chain.seconds(chain.pieces(most + 1.0)) <= 2 * length
    assert chain.seconds(chain.most) <= length


def test_less_memory_takes_more_time_in_every_chain() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        stages = [Stage(*generator.uniform(0.1, 1.0, 4)) for _ in range(8)]
        chain = Chain(stages, slots=64)
        times = [chain.seconds(pieces) for pieces in range(chain.least, 72)]
        assert all(np.diff(times) <= 1e-12)
        assert times[-1] < times[0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=2, max_size=7))
def test_schedules_visit_every_stage_back_once_and_take_the_time_they_say(
    drawn: list[tuple[int, int]],
) -> None:
    stages = [Stage(float(time), 0.0, float(size), float(size)) for time, size in drawn]
    chain = Chain(stages, slots=200)
    for pieces in {chain.least, (chain.least + chain.most) // 2, chain.most}:
        moves = chain.schedule(pieces)
        assert [n for act, n in moves if act is Act.BACK] == list(reversed(range(len(stages))))
        forth = [n for act, n in moves if act is not Act.BACK]
        assert forth[: len(stages)] == list(range(len(stages)))
        assert seconds_of(stages, moves) == pytest.approx(chain.seconds(pieces))


def test_a_schedule_below_the_least_memory_is_refused() -> None:
    chain = Chain([Stage(1.0, 0.0, 1.0, 1.0)] * 4)
    with pytest.raises(ValueError, match="at least"):
        chain.schedule(chain.least - 1)


@pytest.mark.parametrize("grows", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("share", [0.4, 0.75, 0.97])
def test_few_schedules_are_planned_until_one_is_close_to_the_budget(
    grows: float, share: float
) -> None:
    chain = Chain([Stage(1.0, 0.0, 1.0, 1.0)] * 60)
    whole, tried = 1_000_000, []

    def planned(pieces: int) -> int:
        tried.append(pieces)
        part = (pieces - chain.least) / (chain.most - chain.least)
        return int(whole * (0.2 + 0.8 * part**grows))

    found = _pieces_within(int(whole * share), whole, chain, planned)
    assert whole * share * 0.94 < found.arena <= whole * share
    assert len(tried) <= 5


def test_the_least_schedule_tells_what_a_budget_out_of_reach_would_be() -> None:
    chain = Chain([Stage(1.0, 0.0, 1.0, 1.0)] * 60)
    found = _pieces_within(10_000, 1_000_000, chain, lambda pieces: 50_000 + 10_000 * pieces)
    assert found.pieces == chain.least
    assert found.arena == 50_000 + 10_000 * chain.least


@pytest.mark.parametrize(
    ("text", "count"),
    [("500MB", 500_000_000), ("1.5 GiB", 3 << 29), (1000, 1000), ("20kb", 20_000), (1e6, 10**6)],
)
def test_budgets_are_read(text: Any, count: int) -> None:
    assert parse_budget(text) == count


@pytest.mark.parametrize("text", ["", "many", "5 MB more", -1, 0, True, float("nan"), "5XB"])
def test_what_is_no_budget_is_refused(text: Any) -> None:
    with pytest.raises(InvalidArgument, match="memory_budget: expected bytes"):
        parse_budget(text)


def loss(module: Any, x: Any, target: Any) -> Any:
    return nn.functional.cross_entropy(module(x), target)


def network() -> Any:
    torch.manual_seed(1)
    blocks = [nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU()) for _ in range(3)]
    return nn.Sequential(nn.Linear(6, 32), *blocks, nn.Dropout(0.2), nn.Linear(32, 5))


def batch(rows: int) -> tuple[Any, Any]:
    torch.manual_seed(2)
    return torch.randn(rows, 6), torch.randint(0, 5, (rows,))


def trained(budget: Any, *rows: int) -> tuple[Any, list[float], dict[str, Any]]:
    module = network()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    step = hagane.compile(loss, optimizer, memory_budget=budget)
    torch.manual_seed(3)
    losses = [float(step(module, *batch(count))) for count in rows]
    return step, losses, {name: value.clone() for name, value in module.state_dict().items()}


def test_a_budget_is_kept_and_results_are_equal_to_the_bit() -> None:
    free, losses, parameters = trained(None, 300, 400, 400)
    whole = free.memory()
    assert whole["again"] == []
    assert whole["everything"] == whole["predicted"]
    budget = int(whole["predicted"] * 0.85)
    step, again, others = trained(budget, 300, 400, 400)
    memory = step.memory()
    assert memory["again"]
    assert memory["budget"] == budget
    assert losses == again
    assert all(torch.equal(parameters[name], others[name]) for name in parameters)


@pytest.mark.long
def test_a_larger_batch_is_planned_anew_within_the_budget() -> None:
    free, _, _ = trained(None, 400)
    budget = int(free.memory()["predicted"] * 0.9)
    step, _, _ = trained(budget, 100, 400)
    assert 0 < step.memory()["predicted"] <= budget
    assert step.memory()["again"]


def test_the_step_itself_counts_as_a_part_of_its_peak() -> None:
    module = nn.Sequential(*(part for _ in range(20) for part in (nn.Linear(4, 4), nn.Tanh())))
    step = hagane.compile(loss, torch.optim.SGD(module.parameters(), lr=0.1))
    memory = step.plan(module, torch.randn(3, 4), torch.zeros(3, dtype=torch.int64)).memory
    assert memory.predicted == memory.run + memory.results + memory.states + memory.program
    assert memory.as_dict()["program"] == memory.program
    assert memory.program == (memory.run + memory.results + memory.states) // 5
    assert bytes_of_program(60, 10**8) == 1_520_000
    # Planning leaves more of itself in the process, which a budget has to hold, too.
    assert bytes_of_program(60, 10**8, tried=True) == 4_960_000
    for budget in (10**5, 10**7):  # what is left for all else, and its program, are the whole
        for tried in (False, True):
            room = without_program(60, budget, tried=tried)
            assert abs(room + bytes_of_program(60, room, tried=tried) - budget) <= 1


@pytest.mark.long
def test_a_budget_out_of_reach_says_what_would_do() -> None:
    with pytest.raises(InvalidArgument, match=r"needs [0-9,]+ bytes at least .*smaller batch"):
        trained("20kB", 400)


def test_the_memory_of_a_step_is_known_after_a_call() -> None:
    step = hagane.compile(loss, torch.optim.SGD(network().parameters(), lr=0.1))
    with pytest.raises(InvalidArgument, match="planned by its first call"):
        step.memory()
    with pytest.raises(InvalidArgument, match="memory_budget is for a step of training"):
        hagane.compile(loss, memory_budget="1MB")
