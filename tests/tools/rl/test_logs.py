from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.tools.rl.errors import InvalidLog
from hagane.tools.rl.logs.folder import LOG_NAME
from hagane.tools.rl.logs.observations import (
    ObservationWriter,
    count_observations,
    read_observation,
)
from hagane.tools.rl.logs.records import Log, log_of
from hagane.tools.rl.logs.search import find_steps


def written(folder: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / LOG_NAME).write_text("\n".join(lines) + "\n")
    return folder


def line(step: int, **more: object) -> dict[str, object]:
    return {"step": step, "reward": 1.0, "action": step % 2, "image_path": None, **more}


def test_columns_hold_scalars_and_parts_of_vectors(tmp_path: Path) -> None:
    rows = [line(i, state_value=i / 2, action_values=[i, -i]) for i in range(5)]
    log = log_of(written(tmp_path, *rows))
    assert log.steps == 5
    assert log.columns["state_value"].tolist() == [0, 0.5, 1, 1.5, 2]
    assert log.columns["action_values.1"].tolist() == [0, -1, -2, -3, -4]
    assert log.columns["action"].tolist() == [0, 1, 0, 1, 0]
    assert log.rows(2, 2) == rows[2:4]
    assert log.rows(9) == []
    assert log.warnings() == []


def test_a_log_that_grows_is_read_from_where_it_ended(tmp_path: Path) -> None:
    log = log_of(written(tmp_path, line(0), line(1)))
    with open(tmp_path / LOG_NAME, "a") as file:
        file.write(json.dumps(line(2, state_value=3.0)) + "\n" + '{"step": 3, "rew')
    log.refresh()
    assert log.steps == 3
    assert np.isnan(log.columns["state_value"][:2]).all()
    with open(tmp_path / LOG_NAME, "a") as file:
        file.write('ard": 1, "action": 0, "image_path": null}\n')
    log.refresh()
    assert log.steps == 4
    assert log.rows(3)[0]["step"] == 3
    assert log.warnings() == []


def test_broken_lines_and_missing_keys_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    log = log_of(written(tmp_path, line(0), "{broken", "[1, 2]", "", {"step": 1}, line(2)))
    assert [row["step"] for row in log.rows()] == [0, 1, 2]
    words = "\n".join(log.warnings())
    assert "line 2: expected an object of JSON, got '{broken'" in words
    assert "line 3: expected an object of JSON, got '[1, 2]'" in words
    assert "key 'reward' is missing in 1 of 3 steps" in words


def test_values_of_other_types_become_gaps_in_the_columns(tmp_path: Path) -> None:
    rows = [line(0, state_value="high"), line(1, state_value=2), line(2, action_values=[1, "x"])]
    log = log_of(written(tmp_path, *rows, line(3, action_values=[1, 2, 3])))
    assert np.isnan(log.columns["state_value"][0])
    assert log.columns["action_values.2"][3] == 3


def test_a_log_of_the_original_opens(tmp_path: Path) -> None:
    row = {
        "step": 0, "reward": 0.0, "image_path": "/x/log_space/rollouts/t/images/a.png", "action": 1,
        "action_values": [0.5, 1.5], "z_values": [-1.0, 1.0],
        "action_value_dist": [["0.250000", "0.750000"], ["0.750000", "0.250000"]],
    }  # fmt: skip
    log = log_of(written(tmp_path, row))
    assert log.rows() == [row]
    assert log.columns["action_values.1"].tolist() == [1.5]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    log = log_of(written(tmp_path, line(0), line(1)))
    (tmp_path / LOG_NAME).unlink()
    written(tmp_path, line(7))
    log.refresh()
    assert [row["step"] for row in log.rows()] == [7]


def test_columns_that_were_kept_are_those_that_are_read(tmp_path: Path) -> None:
    rows = [line(i, state_value=i / 2) for i in range(6)]
    read = log_of(written(tmp_path, *rows, "{broken"))
    read.keep()
    known = log_of(tmp_path)
    assert known.rows(2, 2) == rows[2:4]
    assert known.warnings() == read.warnings() != []
    with open(tmp_path / LOG_NAME, "a") as file:
        file.write(json.dumps(line(6, state_value=9.0)) + "\n")
    known.refresh()
    assert log_of(tmp_path).columns["state_value"].tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 9]
    assert known.columns["state_value"].tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 9]


def test_kept_columns_of_another_log_are_not_believed(tmp_path: Path) -> None:
    log_of(written(tmp_path, line(0), line(1))).keep()
    assert log_of(written(tmp_path, line(5), line(6), line(7))).rows()[0]["step"] == 5
    (tmp_path / "columns.npz").write_bytes(b"rubbish")
    assert log_of(tmp_path).steps == 3


def test_a_log_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    inner = tmp_path / "rollout"
    inner.mkdir()
    written(tmp_path, line(0))
    (inner / LOG_NAME).symlink_to(tmp_path / LOG_NAME)
    log = Log(inner / LOG_NAME)
    log.refresh()
    assert log.steps == 0


def searched(tmp_path: Path) -> Log:
    values = [[1.0, 2.0], [1.0, 1.5], [0.5, 0.5], [3.0, 0.0]]
    rows = [line(i, action_values=v, episode=int(i > 2)) for i, v in enumerate(values)]
    rows[2]["done"] = "terminated"
    return log_of(written(tmp_path, *rows))


@pytest.mark.parametrize(
    ("where", "steps"),
    [
        ("max(action_values) drops by more than 0.5", [2]),
        ("max(action_values) drops by 0.5", [1, 2]),
        ("max(action_values) drops by 0.6", [2]),
        ("max(action_values) rises by 1", []),  # step 3 begins an episode
        ("reward > 0 and action = 1", [1, 3]),
        ("spread(action_values) <= 0.5", [1, 2]),
        ("action_values.0 >= 1", [0, 1, 3]),
        ("action changes", [1, 2]),
        ("reward != 1", []),
        ("done > 0", [2]),
    ],
)
def test_steps_are_found_by_conditions(tmp_path: Path, where: str, steps: list[int]) -> None:
    assert find_steps(searched(tmp_path), where).tolist() == steps


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", "expected a condition"),
        ("nonsense", "is no condition"),
        ("speed > 1", "has no 'speed'; it has reward"),
        ("max(state_value) > 1", "no vector 'state_value'; it has action_values"),
        ("reward > much", "expected a number, got 'much'"),
    ],
)
def test_conditions_that_cannot_be_asked_are_named(tmp_path: Path, where: str, words: str) -> None:
    with pytest.raises(InvalidLog, match=words):
        find_steps(searched(tmp_path), where)


numbers = st.one_of(
    st.builds(lambda n: np.arange(n, dtype=np.float32), st.integers(0, 5)),
    st.builds(lambda n: np.full((2, n, 3), 200, np.uint8), st.integers(1, 4)),
    st.floats(-1e6, 1e6),
    st.integers(-5, 5),
)


@given(st.recursive(numbers, lambda inner: st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, min_size=1),
    st.lists(inner, min_size=1, max_size=3).map(tuple),
), max_leaves=5))  # fmt: skip
def test_observations_come_back_as_they_were_kept(value: object) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        writer = ObservationWriter(Path(name))
        writer.append(0)
        writer.append(value)
        writer.close()
        assert count_observations(Path(name)) == 2
        assert_same(read_observation(Path(name), 1), value)


def assert_same(found: object, value: object) -> None:
    assert isinstance(found, (dict, tuple)) == isinstance(value, (dict, tuple))
    if isinstance(value, dict):
        assert found.keys() == value.keys()
        for key in value:
            assert_same(found[key], value[key])
    elif isinstance(value, tuple):
        for one, other in zip(found, value, strict=True):
            assert_same(one, other)
    else:
        assert np.asarray(value).dtype == found.dtype
        np.testing.assert_array_equal(found, value)


def test_damaged_and_missing_observations_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidLog, match="step 0: no observation was kept; there are 0 of them"):
        read_observation(tmp_path, 0)
    writer = ObservationWriter(tmp_path)
    writer.append(np.zeros(3))
    writer.close()
    (tmp_path / "observations.bin").write_bytes(b"rubbish")
    with pytest.raises(InvalidLog, match="step 0: damaged observation"):
        read_observation(tmp_path, 0)
    writer = ObservationWriter(tmp_path)
    with pytest.raises(InvalidLog, match="expected numbers, got object"):
        writer.append(object())
    writer.close()
