"""What a run of many tests shows: twentieths, and the reasons of skipped tests by number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.progress import line, summary

pytest_plugins = ["pytester"]


def test_reasons_that_differ_in_names_and_numbers_are_counted_together() -> None:
    reasons = ["needs 'a' and 3 lanes", "torch is absent", "needs 'b' and 16 lanes"]
    assert list(summary(reasons)) == [
        "3 tests skipped:",
        "       2  needs 'a' and 3 lanes (and 1 like it)",
        "       1  torch is absent",
    ]
    assert list(summary([])) == []


def test_a_line_tells_share_time_and_failures() -> None:
    counts = Counter(passed=1200, skipped=34)
    assert line(counts, 4000, 75.0) == "  30 %   1:15  1,200 passed, 34 skipped"
    assert line(counts + Counter(failed=2), 4000, 5.0).endswith(", 2 failed")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_long_runs_show_lines_and_failures_at_once(pytester: pytest.Pytester, workers: str) -> None:
    root = Path(__file__).parents[1]
    pytester.makeconftest(
        f"import sys\nsys.path.insert(0, {str(root)!r})\n"
        "from tests.conftest import pytest_configure as pytest_configure\n"
    )
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.parametrize('i', range(500))\n"
        "def test_each(i):\n"
        "    if i % 10 == 3:\n"
        "        pytest.skip(f'number {i} is out of order')\n"
        "    assert i != 250\n"
    )
    result = pytester.runpytest_subprocess("-q", "-n", workers, "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["  25 %   ?:??  11? passed, 1? skipped"])
    result.stdout.fnmatch_lines(["*test_each?250? failed"])
    result.stdout.fnmatch_lines([" 100 %   ?:??  449 passed, 50 skipped, 1 failed"])
    result.stdout.fnmatch_lines(["50 tests skipped:", "*50  number * is out of order (and 49 *"])
    assert not any(text.startswith("....") for text in result.outlines)
