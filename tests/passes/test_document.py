from pathlib import Path

from hagane.passes import PASSES
from hagane.passes.document import passes_document


def test_the_list_of_passes_is_current() -> None:
    written = Path(__file__).parents[2] / "docs" / "passes.md"
    assert written.read_text(encoding="utf-8") == passes_document(), (
        "run: python -m hagane.passes.document > docs/passes.md"
    )


def test_every_pass_has_its_section() -> None:
    text = passes_document()
    assert all(f"\n## {one.name}\n" in text for one in PASSES)
