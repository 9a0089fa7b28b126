"""Files that are no models are refused before they are quantised."""

from pathlib import Path

import pytest

from hagane.errors import InvalidModel
from hagane.ship.quantize.graph import Source


def test_a_file_without_a_graph_is_no_model(tmp_path: Path) -> None:
    empty = tmp_path / "empty.onnx"
    empty.touch()
    with pytest.raises(InvalidModel) as caught:
        Source(empty)
    assert str(caught.value) == f"'{empty}' is no ONNX model: it holds no graph"
