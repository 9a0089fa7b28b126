"""Lists whose length the data decide, of tensors of different sizes, of lists, and as results."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import CaptureError, InvalidContent
from hagane.graph import to_proto

PIECE = 4


def chunks_by_place(x: torch.Tensor) -> Any:
    done = []
    for i in range(0, x.shape[0], PIECE):
        done.append(x[i : i + PIECE].cumsum(0))
    return torch.cat(done), len(done)


def chunks_of_split(x: torch.Tensor) -> Any:
    return torch.cat([torch.softmax(part, 0) for part in x.split(PIECE)])


def numbered_parts(x: torch.Tensor) -> Any:
    parts = [x[i : i + PIECE] for i in range(0, x.shape[0], PIECE)]
    return torch.cat([part * k for k, part in enumerate(parts)])


def chunks_of_columns(x: torch.Tensor) -> Any:
    done = []
    for i in range(0, x.shape[0], PIECE):
        done.append(x[i : i + PIECE].T * 2)
    return torch.cat(done, dim=1)


def prefixes_padded(x: torch.Tensor) -> Any:
    rows = [x[: i + 1, 0] for i in range(x.shape[0])]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    return padded, torch.nn.utils.rnn.pad_sequence([x[i:] for i in range(x.shape[0])])


def tables_of_two_sizes(x: torch.Tensor) -> Any:
    tables = []
    for i in range(x.shape[0]):
        tables.append(x[: i + 1] @ x[: i + 1].T)
    total = torch.zeros(())
    for table in tables:
        total = total + table.sum() / table.shape[0]
    return total / x.shape[0]


def taken_and_turned(x: torch.Tensor) -> Any:
    rest = []
    for i in range(x.shape[0]):
        rest.append(x[i:])
    last = rest.pop()
    rest.reverse()
    first = rest.pop(0) if len(rest) > 0 else last
    return torch.cat([*rest, last, first])


def sorted_by_length(x: torch.Tensor) -> Any:
    rest = [x[i:] for i in range(x.shape[0])]
    rest.sort(key=lambda one: one.shape[0])
    rest[-1] = rest[-1][:1]
    return torch.cat(rest), torch.stack([one[0] for one in rest])


def segments(x: torch.Tensor) -> Any:
    found, now = [], x[:0]
    for i in range(x.shape[0]):
        now = torch.cat([now, x[i : i + 1]])
        if x[i, 0] > 0:
            found.append(now)
            now = x[:0]
    if now.shape[0] > 0:
        found.append(now)
    return torch.stack([one.sum(0) for one in found]), len(found)


TENSORS = [
    chunks_by_place, chunks_of_split, numbered_parts, chunks_of_columns, prefixes_padded,
    tables_of_two_sizes, taken_and_turned, sorted_by_length, segments,
]  # fmt: skip


def agree(program: Any, type_: str, drawn: Any) -> None:
    graph = hagane.capture(program, type_)
    other = onnxruntime.InferenceSession(to_proto(graph).SerializeToString())
    sessions = [hagane.InferenceSession(graph), other]
    for count in (1, 3, 4, 5, 8, 11):
        x = drawn(count)
        expected = program(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for session in sessions:
            for found, wanted in zip(
                session.run(None, {"x": np.asarray(x)}), expected, strict=True
            ):
                wanted = np.asarray(wanted)
                assert np.shape(found) == wanted.shape
                assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5), count


@pytest.mark.parametrize("program", TENSORS, ids=lambda program: program.__name__)
def test_tensors_of_different_sizes(program: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    agree(program, "float32[n, 3]", lambda count: torch.randn((count, 3), generator=generator))


def breadth_first(x: np.ndarray) -> Any:
    n = len(x)
    near = [[] for _ in range(n)]
    for i in range(n):
        a, b = int(x[i, 0]) % n, int(x[i, 1]) % n
        near[a].append(b)
        near[b].append(a)
    distance = [-1] * n
    distance[0] = 0
    queue = deque([0])
    while queue:
        place = queue.popleft()
        for other in near[place]:
            if distance[other] < 0:
                distance[other] = distance[place] + 1
                queue.append(other)
    return distance


def buckets(x: np.ndarray) -> Any:
    held = [[] for _ in range(4)]
    for i in range(len(x)):
        held[int(x[i, 0]) % 4].append(int(x[i, 1]))
    made = []
    for bucket in held:
        for value in sorted(bucket):
            made.append(value)
    return made


def triangle(x: np.ndarray) -> Any:
    rows = [[1]]
    for i in range(1, len(x) + 1):
        above = rows[-1]
        rows.append([1] + [above[j] + above[j + 1] for j in range(i - 1)] + [1])
    return rows[-1], len(rows)


def intervals(x: np.ndarray) -> Any:
    given = sorted([(int(x[i, 0]), int(x[i, 0]) + int(x[i, 1])) for i in range(len(x))])
    joined = []
    for start, stop in given:
        if joined and joined[-1][1] >= start:
            joined[-1][1] = max(joined[-1][1], stop)
        else:
            joined.append([start, stop])
    total = 0
    for start, stop in joined:
        total = total * 3 + stop - start
    return len(joined), total


def common_subsequence(x: np.ndarray) -> Any:
    n = len(x)
    best = [[0] * (n + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            if x[i - 1, 0] == x[j - 1, 1]:
                best[i][j] = best[i - 1][j - 1] + 1
            else:
                best[i][j] = max(best[i - 1][j], best[i][j - 1])
    return best[n][n]


def life(x: np.ndarray) -> Any:
    n = len(x)
    alive = [[int(x[i, j % 2]) % 2 for j in range(n)] for i in range(n)]
    for _ in range(2):
        later = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                near = 0
                for a in (-1, 0, 1):
                    for b in (-1, 0, 1):
                        if a or b:
                            near += alive[(i + a) % n][(j + b) % n]
                later[i][j] = 1 if near == 3 or (near == 2 and alive[i][j]) else 0
        alive = later
    return sum(sum(row) for row in alive)


LISTS = [
    breadth_first, buckets, triangle, intervals, common_subsequence,
    pytest.param(life, marks=pytest.mark.long),
]  # fmt: skip


@pytest.mark.parametrize("program", LISTS, ids=lambda program: program.__name__)
def test_lists_of_lists(program: Any) -> None:
    rng = np.random.default_rng(0)
    agree(program, "int64[n, 2]", lambda count: rng.integers(0, 4, (count, 2)))


@dataclass
class Box:
    corner: torch.Tensor
    number: int


def suffixes(x: torch.Tensor) -> Any:
    return [x[i:] for i in range(x.shape[0])]


def pairs(x: torch.Tensor) -> Any:
    return [(x[i], i) for i in range(x.shape[0])]


def dictionaries(x: torch.Tensor) -> Any:
    return [{"v": x[i], "k": i, "c": 3} for i in range(x.shape[0])]


def lists_of_numbers(x: torch.Tensor) -> Any:
    return [[i * j for j in range(i + 1)] for i in range(x.shape[0])]


def boxes(x: torch.Tensor) -> Any:
    found = []
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            found.append(Box(x[i], i))
    return found, len(found)


def parts_by_name(x: torch.Tensor) -> Any:
    return {"parts": list(x.split(PIECE)), "n": x.shape[0]}


RESULTS = {
    suffixes: ["output", "output.sizes"], pairs: ["0", "1"], dictionaries: ["v", "k", "c"],
    lists_of_numbers: ["output", "output.sizes"], boxes: ["0.corner", "0.number", "1"],
    parts_by_name: ["parts", "parts.sizes", "n"],
}  # fmt: skip


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, torch.Tensor):
        return isinstance(found, torch.Tensor) and torch.equal(found, wanted)
    if isinstance(wanted, Box):
        return same(found.corner, wanted.corner) and found.number == wanted.number
    if isinstance(wanted, list | tuple):
        return (
            type(found) is type(wanted)
            and len(found) == len(wanted)
            and all(map(same, found, wanted))
        )
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)
    return type(found) is type(wanted) and found == wanted


@pytest.mark.filterwarnings("ignore:hagane.compile")  # of each size that is met
@pytest.mark.parametrize(
    ("program", "names"), RESULTS.items(), ids=lambda p: getattr(p, "__name__", "")
)
def test_lists_are_results_with_the_structure_that_they_have(
    program: Any, names: list[str]
) -> None:
    graph = hagane.capture(program, "float32[n, 3]")
    assert [value.name for value in graph.graph.outputs] == names
    compiled = hagane.compile(program, fullgraph=True)
    generator = torch.Generator().manual_seed(0)
    for count in (5, 9, 4):
        x = torch.randn((count, 3), generator=generator)
        assert same(compiled(x), program(x))


def joined_along_another_axis(x: torch.Tensor) -> Any:
    return torch.cat([x[i:] for i in range(x.shape[0])], dim=1)


def joined_along_an_open_axis(x: torch.Tensor) -> Any:
    return torch.cat([x[i:] for i in range(x.shape[0])], dim=int(x.sum()))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (joined_along_another_axis, "joins tensors along axis 1, and their sizes differ in axis 0"),
        (joined_along_an_open_axis, "along an axis that only the run knows; write the number of"),
    ],
)
def test_tensors_that_cannot_be_joined_are_told(program: Any, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        hagane.capture(program, "float32[n, 3]")


def stacked_rows(x: torch.Tensor, keep: torch.Tensor) -> Any:
    found = [x[i][keep[i]] for i in range(x.shape[0])]
    return torch.stack(found), torch.stack([v.t() for v in found], -1)


def padded_to_a_size(x: torch.Tensor, keep: torch.Tensor) -> Any:
    def padded(rows: torch.Tensor, size: Any) -> torch.Tensor:
        missing = size - rows.shape[0]
        if missing > 0:
            rows = torch.cat([rows, torch.stack([torch.zeros(3)] * missing)])
        return rows[:size]

    size = x.shape[1] - 2
    made = torch.stack([padded(x[i][keep[i]], size) for i in range(x.shape[0])])
    made += 1
    return made


@pytest.mark.parametrize("program", [stacked_rows, padded_to_a_size])
def test_tensors_whose_sizes_only_the_run_compares_are_stacked(program: Any) -> None:
    graph = hagane.capture(program, "float32[b, n, 3]", "bool[b, n]")
    run = hagane.InferenceSession(graph).run
    generator = torch.Generator().manual_seed(0)
    for count, size in ((2, 7), (4, 5), (1, 3)):
        x = torch.randn((count, size, 3), generator=generator)
        keep = torch.arange(size).expand(count, size) % 2 == 0
        keep = torch.stack([row[torch.randperm(size, generator=generator)] for row in keep])
        wanted = program(x, keep)
        found = run(None, {"x": x.numpy(), "keep": keep.numpy()})
        for one, other in zip(
            found, wanted if isinstance(wanted, tuple) else [wanted], strict=True
        ):
            np.testing.assert_array_equal(one, other.numpy())


def test_a_stack_of_different_sizes_fails_in_the_run() -> None:
    session = hagane.InferenceSession(
        hagane.capture(stacked_rows, "float32[b, n, 3]", "bool[b, n]")
    )
    keep = np.array([[True, False, True], [True, True, False], [False, False, True]])
    with pytest.raises(InvalidContent, match=r"Reshape .* cannot reshape .*\(15 elements\) to "):
        session.run(None, {"x": np.zeros((3, 3, 3), np.float32), "keep": keep})


def none_in_a_list(x: torch.Tensor, n: torch.Tensor) -> Any:
    found, weights = [], []
    for k in range(int(n.sum())):
        found.append(x * k)
        weights.append(None)
    weights[n[0]] = 1
    return torch.stack(found), len(weights), sum(1 for w in weights if w is None)


def texts_in_a_list(x: torch.Tensor, n: torch.Tensor) -> Any:
    names = []
    for _ in range(int(n.sum())):
        names.append(("row",))
    return sum(1 for (name,) in names if name == "row") + x


def one_number_several_times(x: torch.Tensor, n: torch.Tensor) -> Any:
    counts, total = [0] * int(n.sum()), x
    for count in counts:
        if count > 0:  # never, which the graph knows
            total = total + None
        total = total + 1
    counts *= 2
    counts[n[0]] += 2
    return total, counts, torch.tensor([0.5] * int(n[0]))


def starts_and_ends(x: torch.Tensor, n: torch.Tensor) -> Any:
    steps = torch.diff(torch.nn.functional.pad((n > 1).int(), (1, 1)))
    return torch.where(steps == -1)[0] - torch.where(steps == 1)[0]


@pytest.mark.parametrize(
    "program", [none_in_a_list, texts_in_a_list, one_number_several_times, starts_and_ends]
)
def test_lists_and_counts_that_the_data_make_long(program: Any) -> None:
    compiled = hagane.compile(program, fullgraph=True)
    for content in ([1, 3, 2, 0], [2, 0, 1, 3]):
        x, n = torch.ones(2), torch.tensor(content)
        found, wanted = compiled(x, n), program(x, n)
        assert same_values(found, wanted), (found, wanted)


def same_values(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(same_values, found, wanted))
    return torch.equal(torch.as_tensor(found), torch.as_tensor(wanted))


def test_counts_of_the_data_that_differ_fail() -> None:
    def added(x: torch.Tensor) -> Any:
        return x[x > 0] + x[x < 0]

    model = hagane.capture(added, x="float32[n]")
    session = hagane.InferenceSession(model)
    assert session.run(None, {"x": np.array([1, -1], "f")})[0].tolist() == [0]
    with pytest.raises(Exception, match=r"raises an error: expected equal counts, nonzero_\d == "):
        session.run(None, {"x": np.array([1, 2, -1], "f")})


def test_a_list_of_none_whose_length_the_data_decide_is_no_result() -> None:
    def nothing(x: torch.Tensor) -> Any:
        return [None for value in x if value > 0]

    with pytest.raises(CaptureError, match=r"a list is returned whose length the data.*, of None"):
        hagane.capture(nothing, x="float32[n]")
