"""Numbers of options that no command can use are refused before anything runs."""

from collections.abc import Callable

import pytest

from hagane.cli import main
from hagane.cli.numbers import finite, not_negative, port_number

CASES = {
    "rtl cover a.sv --seconds nan": "'--seconds': expected a finite number, got nan",
    "rtl cover a.sv --seconds 1e308": "time above 0 and of at most 10,000,000, got 1e+308",
    "bench a.onnx --seconds inf": "'--seconds': expected a finite number, got inf",
    "data bench a.py:m --compute-ms -1": "'--compute-ms': expected a number of at least 0, got -1",
    "data bench a.py:make --seconds nan": "'--seconds': expected a finite number, got nan",
    "data bench a.py:make --prefetch -1": "'--prefetch': expected a number of at least 0, got -1",
    "rl serve a.py:make --memory inf": "'--memory': expected a finite number, got inf",
    "rl serve a.py:make --patience nan": "'--patience': expected a finite number, got nan",
    "cluster serve-api a.yaml --quiet -1": "'--quiet': expected a number of at least 0, got -1",
    "cluster serve-api a.yaml --wait nan": "'--wait': expected a finite number, got nan",
    "cluster serve-api a --port 65536": "'--port': expected a number from 0 to 65535, got 65536",
    "cluster serve-extender --port -1": "'--port': expected a number from 0 to 65535, got -1",
}


@pytest.mark.parametrize("words", CASES)
def test_a_number_that_serves_nothing_is_refused(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    # The frame that the text stands in breaks its lines.
    shown = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert CASES[words] in shown


@pytest.mark.parametrize("check", [finite, not_negative])
@pytest.mark.parametrize("value", [None, 0.0, 0.5, 1e308])
def test_other_numbers_are_taken(
    check: Callable[[float | None], float | None], value: float | None
) -> None:
    assert check(value) == value


def test_ports_of_all_16_bits_are_taken() -> None:
    assert [port_number(each) for each in (0, 65535)] == [0, 65535]
