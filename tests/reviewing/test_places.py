"""Modules that a checked file imports from elsewhere in its project."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import SCRIPT, Request, check_source
from hagane.cli import main
from hagane.frontends.python.load.places import folders_of_imports
from hagane.reviewing.cache import ResultCache
from hagane.reviewing.files import Target, sources
from hagane.reviewing.imports import Imports
from hagane.reviewing.review import Review
from hagane.reviewing.settings import Settings

SCALED = """
import numpy as np
from hagane import Shaped
from {module} import WIDTH

def scaled(x: Shaped["float32[n, 3]"]):
    return x * np.ones(WIDTH, np.float32)
"""


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize("mark", ["pyproject.toml", "setup.py", "setup.cfg", ".git/HEAD"])
@pytest.mark.parametrize("source", ["src/", ""])
def test_a_script_finds_the_packages_of_its_project(tmp_path: Path, mark: str, source: str) -> None:
    _write(
        tmp_path,
        {
            mark: "",
            f"{source}shop/__init__.py": "from .sizes import WIDTH\n",
            f"{source}shop/sizes.py": "WIDTH = 4\n",
            "scripts/deep/run.py": "import numpy as np\nfrom shop import WIDTH\n"
            "print(np.ones((2, 3)) + np.ones(WIDTH))\n",
        },
    )
    report = check_source(Request(tmp_path / "scripts/deep/run.py", SCRIPT))
    (error,) = report.errors
    assert error.place.line == 3
    assert "axis -1 has sizes 3 and 4" in error.message


def test_a_file_outside_of_a_project_looks_in_no_folder_above(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.py"
    assert folders_of_imports(file, tmp_path / "a") == (tmp_path / "a",)


def test_a_module_that_is_nowhere_is_named(tmp_path: Path) -> None:
    _write(tmp_path, {"run.py": "import nowhere\nx = nowhere.made(3)\n"})
    (note,) = check_source(Request(tmp_path / "run.py", SCRIPT)).unknown
    assert note.message == (
        "'nowhere.made' is not understood: 'nowhere' is no library that hagane knows, and no "
        "module beside the file or in its project"
    )


@pytest.mark.parametrize("module", ["..sizes", "shop.sizes"])
def test_a_result_is_not_kept_past_a_change_outside_of_the_named_folder(
    tmp_path: Path, module: str
) -> None:
    _write(
        tmp_path,
        {
            "pyproject.toml": "",
            "src/shop/__init__.py": "",
            "src/shop/sizes.py": "WIDTH = 3\n",
            "src/shop/deep/__init__.py": "",
            "src/shop/deep/net.py": SCALED.format(module=module),
        },
    )
    net = tmp_path / "src/shop/deep/net.py"
    cache = ResultCache(tmp_path / "cache")

    def checked() -> tuple[bool, list[str]]:
        review = Review(Settings(tmp_path), list(sources(net.parent)), cache)
        (one,) = review.run([Target(net)])
        return one.kept, [problem.code for problem in one.report.errors]

    assert checked() == (False, [])
    assert checked() == (True, [])
    (tmp_path / "src/shop/sizes.py").write_text("WIDTH = 4\n")
    assert checked() == (False, ["shape-mismatch"])
    assert tmp_path / "src/shop/sizes.py" in Imports([net]).read_by(net)


def test_a_comment_without_a_reason_is_named_by_the_check_that_meets_it(tmp_path: Path) -> None:
    shop = "import numpy as np\n\ndef add(x):\n    return x + np.ones(4)  # hagane: ignore\n"
    run = "import numpy as np\nfrom shop import add\nprint(add(np.ones((2, 3))))\n"
    _write(tmp_path, {"shop.py": shop, "run.py": run})
    files = list(sources(tmp_path))
    review = Review(Settings(tmp_path), files, ResultCache(None))
    script, shared = review.run([Target(tmp_path / "run.py", SCRIPT), Target(tmp_path / "shop.py")])
    (error,), (note,) = script.report.errors, script.report.notices
    assert error.place.line == 4
    assert note.place is not None
    assert (note.place.file, note.place.line) == (str(tmp_path / "shop.py"), 4)
    assert "has no reason and is not followed" in note.message
    assert not shared.report.notices


def test_of_an_installed_package_its_version_stands_for_most_modules(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    (folder / "great").mkdir(parents=True)
    (folder / "great-1.0.dist-info").mkdir()
    (folder / "great-1.0.dist-info" / "METADATA").write_text("Version: 1.0")
    (folder / "great" / "__init__.py").write_text("from great.inner import deep")
    (folder / "great" / "inner.py").write_text("from great import deeper")
    (folder / "great" / "deeper.py").write_text("")
    program = folder / "program.py"
    program.write_text("from great.inner import deep")
    read = {path.relative_to(folder).as_posix() for path in Imports([program]).read_by(program)}
    assert read == {
        "program.py", "great/__init__.py", "great/inner.py", "great-1.0.dist-info/METADATA",
    }  # fmt: skip


def test_links_that_lead_nowhere_are_no_files_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, {"scaled.py": SCALED.format(module="sizes"), "sizes.py": "WIDTH = 3\n"})
    (tmp_path / ".#scaled.py").symlink_to("somebody@host")  # as editors mark open files
    (tmp_path / "round.py").symlink_to("round.py")
    assert [path.name for path in sources(tmp_path)] == ["scaled.py", "sizes.py"]
    for word, code in ((tmp_path, 0), (tmp_path / "round.py", 2)):
        with pytest.raises(SystemExit) as end:
            main(["check", str(word)])
        assert (end.value.code or 0) == code
    assert "cannot be read: [Errno 40] Too many levels of symbolic links" in capsys.readouterr().out


def test_files_that_no_import_names_are_read_anew(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "settings.py": "width = 3\n",
            "net.py": SCALED.format(module="sizes").replace(
                "from", "import sys\nsys.path.append('lib')\nfrom", 1
            ),
            "lib/sizes.py": "WIDTH = 3\n",
        },
    )
    cache = ResultCache(tmp_path / "cache")
    for _ in range(2):
        (one,) = Review(Settings(tmp_path), [tmp_path / "net.py"], cache).run(
            [Target(tmp_path / "net.py")]
        )
        assert not one.kept
