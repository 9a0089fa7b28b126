"""``hagane check`` over a project, as a team uses it."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hagane
from hagane.cli import main
from hagane.reviewing import review as reviews
from hagane.reviewing.baseline import read_baseline, write_baseline
from hagane.reviewing.cache import ResultCache
from hagane.reviewing.comments import comments_of
from hagane.reviewing.files import sources, targets_of
from hagane.reviewing.review import Review
from hagane.reviewing.settings import Settings, settings_from
from hagane.reviewing.watch import counted, watch

SOURCE = str(Path(hagane.__file__).parents[1])
GOOD = """
import numpy as np
from hagane import Shaped

def scaled(x: Shaped["float32[n, 3]"]):
    return x * np.ones(3, np.float32)
"""
BAD = GOOD.replace("np.ones(3,", "np.ones(4,")
PLAIN = "def add(a, b):\n    return a + b\n"
USER = """
from hagane import Shaped
from shop.layers import scaled

def used(x: Shaped["float32[k, 3]"]):
    return scaled(x)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "pyproject.toml": '[tool.hagane.check]\npaths = ["src"]\nexclude = ["generated"]\n',
        "src/shop/__init__.py": "",
        "src/shop/layers.py": GOOD,
        "src/shop/plain.py": PLAIN,
        "src/shop/use.py": USER,
        "src/generated/bad.py": BAD,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*words: str) -> Done:
    """Run ``hagane check`` in this process, its output not a terminal's."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(["check", *words])
        except SystemExit as end:
            code = end.code or 0
    return Done(code, out.getvalue(), err.getvalue())


def review(project: Path, **more: object) -> Review:
    files = list(sources(project / "src"))
    return Review(settings_from(project), files, ResultCache(project / "kept"), **more)  # type: ignore[arg-type]


def test_the_paths_of_the_settings_are_checked_and_the_rest_is_left_out(project: Path) -> None:
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "0 errors; 2 files of 4 with something to check\n"
    again = run()
    assert again.stdout.endswith("; 2 unchanged since the last check\n")


def test_several_files_folders_and_packages_are_named_at_once(project: Path) -> None:
    found = targets_of(["src/shop/plain.py", "src/shop", "shop.layers", "src/shop/use.py:used"])
    assert [(t.file.name, t.name) for t in found] == [
        ("plain.py", ""),
        ("__init__.py", ""),
        ("layers.py", ""),
        ("use.py", ""),
        ("use.py", "used"),
    ]
    done = run("src/generated/bad.py", "src/shop/layers.py")
    assert done.returncode == 1
    assert "bad.py:6:12: error:" in done.stdout
    assert done.stdout.endswith("1 error; 2 files of 2 with something to check\n")


def test_nothing_to_check_is_clean_and_says_so(project: Path) -> None:
    done = run("src/shop/plain.py")
    assert done.returncode == 0
    assert "nothing to check in src/shop/plain.py: no argument carries a shape" in done.stdout
    nobody = run("nobody.nothing")
    assert nobody.returncode == 2
    assert "'nobody.nothing' is no file, folder or package" in nobody.stderr


def test_what_a_file_does_at_import_is_not_asked_but_its_syntax_is(project: Path) -> None:
    plain = project / "src/shop/plain.py"
    plain.write_text("import numpy as np\nx = np.ones(3) + np.ones(4)\n" + PLAIN)
    assert run("src").returncode == 0
    plain.write_text("x = (\n")
    done = run("src", "--allow-unknown")
    assert done.returncode == 2
    assert "src/shop/plain.py:1:5: error: SyntaxError: '(' was never closed" in done.stdout


def test_notices_of_several_files_name_theirs(project: Path) -> None:
    (project / "src/net.py").write_text(
        "from hagane import Shaped\nclass Net:\n    def __init__(self, n):\n        pass\n"
        '    def forward(self, x: Shaped["float32[n]"]):\n        return x\n'
    )
    done = run("src")
    assert done.returncode == 2
    assert "src/net.py:5:5: notice: Net() cannot be made" in done.stdout
    assert "3 files of 5 with something to check; 1 not checked" in done.stdout
    assert run("src", "--allow-unknown").returncode == 0


def test_a_change_is_checked_with_what_depends_on_it_and_nothing_else(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = reviews.check

    def counting(request: reviews.Request, *, no_import: bool) -> reviews.Report:
        asked.append(request.file.name)
        return real(request, no_import=no_import)

    monkeypatch.setattr(reviews, "check", counting)
    targets = targets_of(["src/shop"])
    list(review(project).run(targets))
    assert sorted(asked) == ["__init__.py", "layers.py", "plain.py", "use.py"]
    asked.clear()
    (project / "src/shop/plain.py").write_text(PLAIN + "\n")
    list(review(project).run(targets))
    assert asked == ["plain.py"]
    asked.clear()
    (project / "src/shop/layers.py").write_text(BAD)
    results = list(review(project).run(targets))
    assert sorted(asked) == ["layers.py", "use.py"]
    assert [len(one.report.errors) for one in results] == [0, 1, 0, 1]


def test_a_kept_result_is_the_one_that_was_kept(project: Path) -> None:
    targets = targets_of(["src/generated"])
    (first,), (second,) = (list(review(project).run(targets)) for _ in range(2))
    assert (first.kept, second.kept) == (False, True)
    assert second.report.errors == first.report.errors
    assert second.expressions == first.expressions > 0


def test_a_comment_with_a_reason_accepts_a_finding(project: Path) -> None:
    path = project / "src/generated/bad.py"
    line = "    return x * np.ones(4, np.float32)"
    for comment, left, note in (
        ("# hagane: ignore[shape-mismatch] padded by the caller", 0, ""),
        ("# hagane: ignore padded by the caller", 0, ""),
        ("# hagane: ignore[shape-mismatch]", 1, "the comment has no reason and is not followed"),
        ("# hagane: ignore[axis] wrong code", 1, "the comment accepts nothing"),
    ):
        path.write_text(BAD.replace(line, f"{line}  {comment}"))
        (one,) = review(project).run(targets_of([str(path)]))
        assert len(one.report.errors) == left, comment
        assert one.accepted == 1 - left
        assert any(note in found.message for found in one.report.notices) or not note
    assert comments_of('text = "# hagane: ignore not a comment"\n') == []


def test_a_comment_accepts_what_the_check_of_another_file_finds(project: Path) -> None:
    inner, outer = project / "src/shop/inner.py", project / "src/shop/outer.py"
    remark = "# hagane: ignore[shape-mismatch] padded by the caller"
    inner.write_text(f"def scaled(x, y):\n    return x @ y  {remark}\n")
    outer.write_text(
        "from hagane import Shaped\nfrom shop.inner import scaled\n"
        "def use(x: Shaped['float32[n, 3]']):\n    return scaled(x, x)\n"
    )
    both = list(review(project).run(targets_of([str(inner), str(outer)])))
    assert [len(one.report.errors) for one in both] == [0, 0]
    assert [one.accepted for one in both] == [0, 1]
    assert not any("accepts nothing" in n.message for one in both for n in one.report.notices)
    outer.unlink()
    (alone,) = review(project).run(targets_of([str(inner)]))
    assert any("accepts nothing" in note.message for note in alone.report.notices)


def test_a_baseline_reports_only_what_is_new(project: Path) -> None:
    path = project / "src/generated/bad.py"
    assert run(str(path), "--write-baseline", "known.json").returncode == 0
    known = run(str(path), "--baseline", "known.json")
    assert known.returncode == 0
    assert "1 finding known to the baseline" in known.stdout
    path.write_text("# moved\n" + BAD + BAD.replace("scaled", "again").split("Shaped\n")[1])
    newer = run(str(path), "--baseline", "known.json")
    assert newer.returncode == 1
    assert newer.stdout.count(": error:") == 1
    (project / "broken.json").write_text("[]")
    broken = run(str(path), "--baseline", "broken.json")
    assert "'broken.json' is none that --write-baseline broken.json writes" in broken.stderr
    assert "make it with --write-baseline" in run(str(path), "--baseline", "none.json").stderr


def test_the_settings_say_how_objects_are_made(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.hagane.check]\nallow-unknown = true\nignore = ["raises"]\n'
        '[tool.hagane.check.targets."src/net.py"]\n'
        'name = "Net"\nmake = "Net(4)"\ninputs = {x = "float32[n, 3]"}\n'
    )
    (project / "src/net.py").write_text(
        "import numpy as np\nclass Net:\n    def __init__(self, n):\n"
        "        self.w = np.ones(n, np.float32)\n"
        "    def __call__(self, x):\n        return x * self.w\n"
    )
    done = run("src/net.py")
    assert done.returncode == 1
    assert "src/net.py:6:16: error:" in done.stdout
    assert settings_from(project).allow_unknown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('path = ["src"]', "path: unknown; the table has: paths, exclude, ignore"),
        ("paths = 'src'", "paths: expected a list of texts, got 'src'"),
        ("no-import = 1", "no-import: expected true or false, got 1"),
        ("targets = {'a.py' = {class = 'A'}}", "unknown 'class'; a target has: name, make"),
        ("paths = [", "cannot be read"),
    ],
)
def test_wrong_settings_name_the_key_and_what_was_expected(
    project: Path, text: str, message: str
) -> None:
    (project / "pyproject.toml").write_text(f"[tool.hagane.check]\n{text}\n")
    done = run("src")
    assert done.returncode == 2
    assert message in done.stderr


def test_watching_checks_what_a_change_concerns(project: Path) -> None:
    layers = project / "src/shop/layers.py"
    steps = [
        lambda: None,
        lambda: layers.write_text(BAD + "# longer\n"),
        lambda: (project / "src/shop/plain.py").unlink(),
    ]
    waits = iter(steps)
    seen = watch(
        review(project), lambda: targets_of(["src/shop"]), wait=lambda: next(waits)() and None
    )
    changed, results = next(seen)
    assert (changed, len(results)) == ([], 4)
    errors = counted({}, changed, results)
    assert sum(errors.values()) == 0
    changed, results = next(seen)
    assert [path.name for path in changed] == ["layers.py"]
    assert sorted(one.file.name for one in results) == ["layers.py", "use.py"]
    assert all(one.report.errors for one in results)
    errors = counted(errors, changed, results)
    changed, results = next(seen)
    assert [path.name for path in changed] == ["plain.py"]
    assert results == []
    errors = counted(errors, changed, results)
    found = {file.name: count for file, count in errors.items() if count}
    assert found.keys() == {"layers.py", "use.py"}  # they stay wrong, and are told again
    assert "plain.py" not in {file.name for file in errors}


def test_watching_sees_files_outside_the_folder_that_it_imports(project: Path) -> None:
    (project / "widths.py").write_text("WIDTH = 3\n")
    layers = project / "src/shop/layers.py"
    layers.write_text("import widths\n" + GOOD.replace("np.ones(3,", "np.ones(widths.WIDTH,"))
    steps = iter(
        (
            lambda: (project / "widths.py").write_text("WIDTH = 3 + 1\n"),
            lambda: (project / "unread.py").write_text("WIDTH = 5\n"),
            lambda: (project / "widths.py").unlink(),
        )
    )
    seen = watch(review(project), lambda: targets_of(["src/shop"]), wait=lambda: next(steps)())
    assert not any(one.report.errors for one in next(seen)[1])
    for words in ("axis -1 has sizes 3 and 4", "the value of 'widths.WIDTH' is not known"):
        changed, results = next(seen)
        assert [path.name for path in changed] == ["widths.py"]
        assert sorted(one.file.name for one in results) == ["layers.py", "use.py"]
        told = [p.message for one in results for p in [*one.report.errors, *one.report.unknown]]
        assert any(words in message for message in told), told


def test_a_file_alone_leaves_what_lies_below_its_folder_unread(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[Path] = []
    monkeypatch.setattr("hagane.cli.check.sources", lambda root: walked.append(root) or iter(()))
    (project / "script.py").write_text(GOOD + "# hagane: ignore[raises] never met\n")
    assert run("script.py").returncode == 0
    assert walked == []


@pytest.mark.parametrize("width", [60, 120])
def test_nothing_is_wider_than_the_terminal(project: Path, width: int) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "hagane", "check", "src/generated/bad.py"],
        stdout=theirs,
        env={**os.environ, "COLUMNS": str(width), "PYTHONPATH": SOURCE},
    )
    os.close(theirs)
    lines = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert done.returncode == 1
    assert lines[0].startswith("src/generated/bad.py:6:12: error: Mul")
    assert max(map(len, lines)) <= width


def test_json_and_sarif_hold_the_findings_of_all_files(project: Path) -> None:
    (project / "src/more.py").write_text(BAD)
    done = run("src/more.py", "src/generated/bad.py", "--json", "--sarif", "log.sarif")
    assert [Path(e["file"]).name for e in json.loads(done.stdout)["errors"]] == [
        "more.py",
        "bad.py",
    ]
    results = json.loads((project / "log.sarif").read_text())["runs"][0]["results"]
    assert len(results) == 2


LIBRARY = """
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        h = self.inner(x)
        return x + h
"""
OF_LIBRARY = """
from hagane import Shaped
from blocks import Block

def used(x: Shaped["float32[k, 3]"]):
    return Block(4)(x)
"""


def test_an_error_in_a_library_tells_the_line_of_the_library_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = project / "site-packages"
    packages.mkdir()
    (packages / "blocks.py").write_text(LIBRARY)
    (project / "src/mine.py").write_text(OF_LIBRARY)
    monkeypatch.syspath_prepend(packages)
    found = run("src/mine.py:used")
    assert "src/mine.py:6:12: error: self.inner: expected 4 features" in found.stdout
    line = f"  in the library, at {packages / 'blocks.py'}:10:\n    h = self.inner(x)\n"
    assert line in found.stdout
    again = run("src/mine.py:used", "--json", "--sarif", "log.sarif")
    (error,) = json.loads(again.stdout)["errors"]
    assert error["within"] == {"file": str(packages / "blocks.py"), "line": 10}
    (result,) = json.loads((project / "log.sarif").read_text())["runs"][0]["results"]
    related = result["relatedLocations"][0]
    assert related["message"] == {"text": "the line of the library"}
    assert related["physicalLocation"]["region"]["startLine"] == 10
    assert related["physicalLocation"]["artifactLocation"]["uri"].endswith("/blocks.py")


def test_a_baseline_is_counted(project: Path) -> None:
    (one,) = review(project).run(targets_of(["src/generated"]))
    path = project / "known.json"
    assert write_baseline(path, [*one.report.errors] * 2, project) == 2
    assert sum(read_baseline(path).values()) == 2
    assert Settings(project).asked_of(project / "x.py") == ()


def test_paths_are_told_from_the_working_directory_however_they_are_named(project: Path) -> None:
    (project / "src/shop/layers.py").write_text(BAD)
    for words in ([], ["src"], [str(project / "src")]):
        assert run(*words).stdout.startswith("src/shop/layers.py:6:12: error: "), words
    assert "2 unchanged" in run().stdout


def test_one_class_that_cannot_be_made_leaves_the_rest_checked(project: Path) -> None:
    inner = (
        "\n\nclass Inner:\n    def __init__(self, n):\n        self.w = np.ones((3, n))\n\n"
        '    def __call__(self, x: Shaped["float32[k, 3]"]):\n        return x @ self.w\n'
    )
    path = project / "src/shop/layers.py"
    path.write_text(BAD + inner)
    done = run("src/shop/layers.py")
    assert "[shape-mismatch]" in done.stdout
    assert "layers.py:13:5: notice: Inner() cannot be made" in done.stdout
    assert done.returncode == 1
    path.write_text(GOOD + inner)
    assert run("src/shop/layers.py").returncode == 2
    used = '\n\ndef used(x: Shaped["float32[k, 3]"]):\n    return Inner(2)(x)\n'
    path.write_text(GOOD + inner + used)
    done = run("src/shop/layers.py")  # where another function of the file makes it
    assert (done.returncode, "notice" in done.stdout) == (0, False)


def test_a_baseline_written_anew_holds_the_findings_of_the_old_one(project: Path) -> None:
    (project / "src/shop/layers.py").write_text(BAD)
    with (project / "pyproject.toml").open("a") as settings:
        settings.write('baseline = "known.json"\n')
    assert "2 findings known" in run("--write-baseline", "known.json").stdout
    assert "2 findings known" in run("--write-baseline", "known.json").stdout
    assert run().returncode == 0


def test_what_is_excluded_stays_so_where_a_hook_names_every_file(project: Path) -> None:
    words = ["src/generated/bad.py", "src/shop/layers.py"]
    assert run(*words).returncode == 1
    done = run(*words, "--force-exclude")
    assert (done.returncode, "no errors" in done.stdout) == (0, True)
    hook = Path(__file__).parents[2] / ".pre-commit-hooks.yaml"
    assert "--force-exclude" in hook.read_text()


def _notebook(*cells: str) -> str:
    """Return a notebook of one text cell and code cells."""
    text: list[Any] = [{"cell_type": "markdown", "metadata": {}, "source": "# Shapes"}]
    code = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
         "source": cell.splitlines(keepends=True)} for cell in cells
    ]  # fmt: skip
    return json.dumps({"cells": text + code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


CELLS = (
    "%matplotlib inline\nimport numpy as np\nfrom hagane import Shaped\nnames = !ls\n",
    "%%bash\nls -l | head\n",
    "%%time\n\ndef scaled(x: Shaped['float32[n, 3]']):\n    y = (x\n  % 2)\n"
    "    return y * np.ones(4, np.float32)\n",
    "%time scaled\nscaled?\n",
)


def test_a_notebook_is_checked_and_its_cells_are_named(project: Path) -> None:
    path = project / "src/shapes.ipynb"
    path.write_text(_notebook(*CELLS))
    for words in (["src/shapes.ipynb"], ["src"]):
        done = run(*words)
        assert done.returncode == 1
        assert done.stdout.startswith("src/shapes.ipynb:cell 4:6:12: error: Mul ")
        assert "  6 |     return y * np.ones(4, np.float32)\n" in done.stdout
        assert "    src/shapes.ipynb:cell 4:4: x % 2: float32(n, 3)\n" in done.stdout
        assert "called from src/shapes.ipynb:cell 4:3\n" in done.stdout
    accepted = CELLS[2].replace("float32)\n", "float32)  # hagane: ignore[shape-mismatch] later\n")
    path.write_text(_notebook(*CELLS[:2], accepted))
    assert run("src/shapes.ipynb").returncode == 0
    path.write_text(_notebook(*CELLS))
    run("src", "--write-baseline", "known.json")
    path.write_text(_notebook("1 + 1", *CELLS))  # the cell has another number
    assert run("src", "--baseline", "known.json").returncode == 0
    run("src", "--sarif", "findings.sarif")
    (result,) = json.loads(Path("findings.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "src/shapes.ipynb"}}


def test_a_notebook_without_annotations_is_followed_as_it_is_run(project: Path) -> None:
    path = project / "train.ipynb"
    path.write_text(_notebook("import numpy as np", "x = np.ones((2, 3))\nx @ x"))
    done = run("train.ipynb")
    assert (done.returncode, "train.ipynb:cell 3:2:1: error: " in done.stdout) == (1, True)
    path.write_text("no notebook")
    done = run("train.ipynb")
    assert (done.returncode, "expected a notebook" in done.stdout) == (2, True)
    path.write_text(_notebook("x = ("))
    done = run("train.ipynb")
    assert "train.ipynb:cell 2:1:5: error: SyntaxError" in done.stdout


def test_lines_are_counted_as_python_counts_them(project: Path) -> None:
    (project / "src/shop/layers.py").write_text("# a form feed\n\x0c" + BAD)
    assert "  7 |     return x * np.ones(4, np.float32)\n" in run("src/shop/layers.py").stdout


def test_watching_takes_no_output_for_programs(project: Path) -> None:
    done = run("--watch", "--json")
    assert done.returncode == 2
    assert "--watch goes on and prints for people: expected no --json" in done.stderr
