"""A need of one size alone restricts the inputs; each checked function has its own restrictions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import Report, Request, check_source

_HEAD = "from einops import rearrange\nfrom hagane import Shaped\n\n"
_CHAINER = "import chainer.functions as C\nimport numpy as np\n" + _HEAD
_TORCH = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n" + _HEAD


def _checked(folder: Path, *functions: tuple[str, str]) -> Report:
    """Check functions of one argument, each given by its type and its result."""
    path = folder / "program.py"
    path.write_text(
        (_CHAINER if any(result.startswith("C.") for _, result in functions) else _TORCH)
        + "".join(
            f'def f{number}(x: Shaped["{type_}"]):\n    return {result}\n\n'
            for number, (type_, result) in enumerate(functions)
        )
    )
    return check_source(Request(path))


@pytest.mark.parametrize(
    ("result", "shape", "need"),
    [
        ("C.split_axis(x, 2, 1)[1]", "b, {}", "is a multiple of 2"),
        ("C.split_axis(x, [4], 1)[1]", "b, {}", "4 <= "),
        ("C.maxout(x, 2)", "b, {}", "is a multiple of 2"),
        ("C.space2depth(x, 2)", "b, 3, {}, 4", "is a multiple of 2"),
        ("C.depth2space(x, 2)", "b, {}, 3, 4", "is a multiple of 4"),
        ("np.split(x, 3)[2]", "{}, 3", "is a multiple of 3"),
        ("np.vsplit(x, 3)[2]", "{}, 3", "is a multiple of 3"),
        ("F.glu(x)", "b, {}", "is a multiple of 2"),
        ("x.view(torch.float64)", "b, {}", "is a multiple of 2"),
        ("x.item()", "1, {}", "== 1 (the only element of"),
        ("F.pixel_unshuffle(x, 2)", "b, 3, 4, {}", "is a multiple of 2"),
        ("F.pixel_shuffle(x, 2)", "b, {}, 3, 4", "is a multiple of 4"),
        ("F.channel_shuffle(x, 3)", "b, {}, 3, 4", "is a multiple of 3"),
        ("F.group_norm(x, 4)", "b, {}, 3", "is a multiple of 4"),
        ("F.fold(x, (4, 4), 2)", "b, {}, 9", "is a multiple of 4"),
        ("torch.hsplit(x, 2)[1]", "b, {}", "is a multiple of 2"),
        ("x.unflatten(1, (3, -1))", "b, {}", "is a multiple of 3"),
        ("x.narrow(1, 2, 5)", "b, {}", "7 <= "),
        ("x.narrow(1, -3, 2)", "b, {}", " >= 3"),
        ("x.kthvalue(3)[0]", "b, {}", " >= 3"),
        ("x.topk(3)[0]", "b, {}", " >= 3"),
        ("x[:, :3] @ torch.ones(3, 4)", "b, {}", " >= 3"),
        ("F.linear(x[..., :3], torch.ones(4, 3))", "b, {}", " >= 3"),
        ("torch.einsum('bn,nk->bk', x[:, -3:], torch.ones(3, 4))", "b, {}", " >= 3"),
        ("torch.cat([x[:, :5], torch.ones(2, 5)])", "b, {}", " >= 5"),
        ("x[:, 2:7] @ torch.ones(5, 4)", "b, {}", " >= 7"),
        ('rearrange(x, "b (h d) -> b h d", h=8)', "b, {}", " == "),
    ],
)
def test_a_need_of_one_size_is_assumed_and_of_a_promised_one_an_error(
    tmp_path: Path, result: str, shape: str, need: str
) -> None:
    free = _checked(tmp_path, (f"float32[{shape.format('width')}]", result))
    assert free.errors == []
    assert any("width" in a.message and need in a.message for a in free.assumptions)
    promised = _checked(tmp_path, (f"float32[{shape.format('8*width + 1')}]", result))
    if " >= " in need or " <= " in need:
        assert promised.errors == []  # 9 elements or more
    else:
        assert len(promised.errors) == 1
    fixed = _checked(tmp_path, (f"float32[{shape.format(2 if '=' in need[:4] else 1)}]", result))
    assert len(fixed.errors) == 1


def test_the_restriction_of_one_function_is_none_of_the_next(tmp_path: Path) -> None:
    halves = ("float32[b, n]", "x[:, : x.shape[1] // 2] * x[:, x.shape[1] // 2 :]")
    (alone,) = _checked(tmp_path, halves).errors
    (behind,) = _checked(tmp_path, ("float32[b, n]", "F.glu(x)"), halves).errors
    assert alone.counterexample == behind.counterexample


def test_the_example_of_one_function_is_none_of_the_next(tmp_path: Path) -> None:
    first, second = ("float32[b, n=8]", "x + 1"), ("float32[b, n]", "x + 2")
    found = {one.expression: one.type for one in _checked(tmp_path, first, second).types}
    assert found["x + 1"] == "torch.Tensor(dtype=float32, shape=(b, 8 (n)))"
    assert found["x + 2"] == "torch.Tensor(dtype=float32, shape=(b, n))"


def test_a_promise_of_one_function_is_not_weakened_by_another(tmp_path: Path) -> None:
    promised = ("float32[b, 2*n]", "x.narrow(1, 1, 2)")
    assert len(_checked(tmp_path, promised).errors) == 1
    assert len(_checked(tmp_path, ("float32[n]", "x"), promised).errors) == 1


def test_as_many_of_the_last_elements_of_a_table_need_a_table_that_long(tmp_path: Path) -> None:
    last = "x + torch.ones(2, 16, 4)[:, max(0, 16 - x.shape[1]) :]"
    report = _checked(tmp_path, ("float32[2, n, 4]", last))
    assert report.errors == []
    assert "n <= 16 (the last of an axis of 16)" in [a.message for a in report.assumptions]
    (error,) = _checked(tmp_path, ("float32[2, n + 20, 4]", last)).errors
    assert "cannot broadcast" in error.message
    own = "x + x[:, max(0, x.shape[1] - 16) :]"
    (error,) = _checked(tmp_path, ("float32[2, n, 4]", own)).errors
    assert error.counterexample["n"] > 16


def test_a_copy_of_a_part_lies_without_gaps(tmp_path: Path) -> None:
    copied = _checked(
        tmp_path,
        (
            "float32[rows, width]",
            "x[:, :3].clone().view(-1), x[:, : x.shape[1] // 2].clone().view(-1)",
        ),
    )
    assert copied.exit_code == 0
    assert len(_checked(tmp_path, ("float32[8, 16]", "x.t().clone().view(-1)")).errors) == 1
    plain = "x.t().clone(memory_format=torch.contiguous_format).view(-1)"
    assert _checked(tmp_path, ("float32[8, 16]", plain)).exit_code == 0
    assert len(_checked(tmp_path, ("float32[rows, width]", "x[:, :3].view(-1)")).errors) == 1
