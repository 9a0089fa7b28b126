"""Programs that subcommands run end as Python ends them: their own lines, and status 1."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [["run-python", "--as-onnxruntime"], ["chainer"]]
NAMES = ["run-python", "chainer"]


def _run(command: list[str], script: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "hagane", *command, script.name]
    return subprocess.run(words, cwd=script.parent, capture_output=True, text=True)


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_a_traceback_begins_with_the_script(command: list[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def read():\n    open('none.txt')\n\nread()\n")
    done = _run(command, script)
    assert done.returncode == 1
    assert done.stderr == (
        "Traceback (most recent call last):\n"
        '  File "script.py", line 4, in <module>\n'
        "    read()\n"
        '  File "script.py", line 2, in read\n'
        "    open('none.txt')\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'none.txt'\n"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_an_error_of_syntax_shows_the_script_alone(command: list[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print(1\n")
    done = _run(command, script)
    assert done.returncode == 1
    assert done.stderr.startswith('  File "script.py", line 1\n    print(1\n')
    assert done.stderr.endswith("SyntaxError: '(' was never closed\n")


def test_an_error_of_hagane_names_the_line_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import onnxruntime\nonnxruntime.InferenceSession('none.onnx')\n")
    done = _run(COMMANDS[0], script)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Traceback (most recent call last):\n"
        '  File "script.py", line 2, in <module>\n'
        "    onnxruntime.InferenceSession('none.onnx')\n"
    )
    assert done.stderr.endswith("NO_SUCHFILE : there is no model file 'none.onnx'\n")


def test_the_hook_of_a_script_shows_its_errors(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "sys.excepthook = lambda kind, error, trace: print(kind.__name__, trace.tb_lineno)\n"
        "1 / 0\n"
    )
    done = _run(COMMANDS[0], script)
    assert (done.returncode, done.stdout, done.stderr) == (1, "ZeroDivisionError 3\n", "")


def test_an_absent_package_of_chainer_is_explained(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import chainermn\n")
    done = _run(COMMANDS[1], script)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'chainermn'\nhagane chainer: hagane trains in" in (
        done.stderr
    )
