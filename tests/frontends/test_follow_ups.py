"""One fault, one message: where a change in place fails, and where a list of layers meets one."""

from __future__ import annotations

from pathlib import Path

from .checking import check_text


def test_what_a_failed_change_in_place_leaves_is_told_once(tmp_path: Path) -> None:
    report = check_text(
        tmp_path,
        """
        def f(x: Shaped["float32[7, 7]"], m: Shaped["bool[7, 7, 7]"]):
            x = x * 2
            x.masked_fill_(m, 0.0)
            return torch.einsum("ijb,jbd->ibd", torch.exp(x), torch.zeros(7, 2, 4))
        """,
    )
    (error,) = report.errors
    assert "does not fit in place into" in error.message


def test_an_index_behind_a_wrong_list_on_one_line_is_told_once(tmp_path: Path) -> None:
    report = check_text(
        tmp_path,
        """
        def f(x: Shaped["float32[3, 24]"]):
            parts = x.chunk(3, dim=0)
            layers = [nn.Linear(6, 4) for _ in range(4)]
            return [
                layers[i](parts[i])
                for i in range(4)
            ]
        """,
    )
    (error,) = report.errors
    assert "expected 6 features in the last axis, got 24" in error.message
