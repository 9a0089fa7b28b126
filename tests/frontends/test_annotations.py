"""Shapes in annotations: jaxtyping's strings and hagane's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.errors import InvalidArgument
from hagane.frontends.python.values.type_text import ContainerText, parse_jaxtyping, parse_type
from hagane.symbolic import symbol

from .checking import check_text, line_of


def test_annotated_arguments_need_no_input(tmp_path: Path) -> None:
    source = """
    def f(x: Float[Tensor, "batch 3 height width"], n: Int[Tensor, ""]):
        return x.mean(dim=(2, 3)), n
    """
    report = check_text(tmp_path, source)
    assert report.returned == (
        "(torch.Tensor(dtype=float32, shape=(batch, 3)), torch.Tensor(dtype=int64, shape=()))"
    )


def test_an_own_annotation_reads_like_an_input(tmp_path: Path) -> None:
    source = """
    def f(x: Shaped["float32[batch, 3, 2*h, w]"]):
        return x[:, :, ::2]
    """
    report = check_text(tmp_path, source)
    assert report.returned == "torch.Tensor(dtype=float32, shape=(batch, 3, h, w))"


def test_a_type_in_quotes_is_an_annotation_and_other_quoted_names_are_none(tmp_path: Path) -> None:
    source = """
    def f(x: "float32[batch, 8]", y: "numpy.ndarray" = None, z: "float32[:]" = None):
        return nn.Linear(4, 2)(x)
    """
    (finding,) = check_text(tmp_path, source).errors
    assert "expected 4 features in the last axis, got 8" in str(finding)


def test_given_sizes_become_the_example_of_annotated_names(tmp_path: Path) -> None:
    source = """
    def f(x: Float[Tensor, "batch 3 height width"]):
        return F.avg_pool2d(x, 3, stride=2)
    """
    report = check_text(tmp_path, source, {"x": "float32[2, 3, 227, 99]"})
    assert report.returned == (
        "torch.Tensor(dtype=float32, shape=(2 (batch), 3, 113 ((height - 1) // 2), "
        "49 ((width - 1) // 2)))"
    )


def test_a_size_that_is_not_known_leaves_the_others_known(tmp_path: Path) -> None:
    source = """
    def f(x):
        return F.avg_pool2d(x, 3, stride=2)
    """
    report = check_text(tmp_path, source, {"x": "float32[2, 3, 227, None]"})
    assert report.returned == "torch.Tensor(dtype=float32, shape=(2, 3, 113, None))"


def test_annotations_of_called_functions_are_checked(tmp_path: Path) -> None:
    source = """
    def g(a: Float[Tensor, "n k"], b: Float[Tensor, "k m"]) -> Float[Tensor, "n m"]:
        return a @ b
    def h(a: Float[Tensor, "n k"]) -> Float[Tensor, "k n"]:
        return a
    def f(x, y):
        g(x, y)
        g(x, x)
        h(x)
        g(x.long(), y)
        return x
    """
    report = check_text(tmp_path, source, {"x": "float32[4, 5]", "y": "float32[5, 6]"})
    found = [(p.code, p.message) for p in report.errors]
    assert found == [
        ("annotation", "argument 'b': expected k = 5 where 4 came, got float32(4, 5)"),
        ("annotation", "the result: expected k = 5 where 4 came, got float32(4, 5)"),
        ("annotation",
         "argument 'a': expected float32 or float16 or bfloat16, got int64(4, 5)"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("annotation", "shape", "ok"),
    [
        ("...", "2, 3", True),
        ("... c", "2, 3, 4", True),
        ("*batch 3", "5, 6, 3", True),
        ("*batch 3", "5, 6, 4", False),
        ("b _", "2, 9", True),
        ("b #c c", "2, 1, 5", True),
        ("n n", "3, 3", True),
        ("n n", "3, 4", False),
        ("n n+1", "3, 4", True),
        ("n 2*n", "3, 7", False),
        ("a b c", "3, 4", False),
    ],
)
def test_forms_of_jaxtyping_hold_or_fail(
    tmp_path: Path, annotation: str, shape: str, ok: bool
) -> None:
    source = f"""
    def g(a: Float[Tensor, "{annotation}"]):
        return a
    def f(x):
        return g(x)
    """
    report = check_text(tmp_path, source, {"x": f"float32[{shape}]"})
    assert (report.errors == []) is ok


def test_a_shape_that_is_none_is_an_error_at_its_annotation(tmp_path: Path) -> None:
    source = """
    def f(x: Float[Tensor, "b (3"]):
        return x
    """
    report = check_text(tmp_path, source, {"x": "float32[2, 3]"})
    assert report.errors[0].code == "annotation"
    assert report.errors[0].place.line == line_of(source, "def f")


def test_types_of_inputs_are_read() -> None:
    assert str(parse_type("float32[n, 2*h + 1]").axes[1].size) == "2*h + 1"  # type: ignore[union-attr]
    assert parse_type("int64[n=3]").axes[0].example == 3  # type: ignore[union-attr]
    assert parse_type("list[int64[b], 3]") == ContainerText("list", (parse_type("int64[b]"),), 3)
    assert parse_type("list[t, b]").times == symbol("b")  # type: ignore[union-attr]
    assert parse_type("tuple[float32[2], none]".replace("none", "None")).kind == "tuple"  # type: ignore[union-attr]
    assert parse_type("'text'").value == "text"  # type: ignore[union-attr]
    assert parse_jaxtyping("Float32", "b ceil(h/2)").axes[1].size is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float33[2]", "'float33' is no element type"),
        ("float32[2", "column 10: expected ',', got 'the end'"),
        ("float32[2] x", "expected the end, got 'x'"),
        ("float32[$]", "no part of a type begins with '$'"),
        ("float32[f(n)]", "'f' is no function of sizes"),
        ("", "expected a size, got 'the end'"),
    ],
)
def test_a_text_that_is_no_type_says_where_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match="type '") as caught:
        parse_type(text)
    assert message in str(caught.value)


def test_plain_annotations_are_numbers_of_any_value(tmp_path: Path) -> None:
    source = """
        def f(x: Shaped["float32[b, 4]"], n: int, flag: bool, rate: float, mode: str):
            y = x * rate if flag else x.sum(1, keepdim=True).expand(-1, 4)
            if mode == "wide":
                y = torch.cat([y, y], 1)
            return y.repeat(n, 1) @ torch.ones(5, 1)
        """
    (error,) = check_text(tmp_path, source).errors
    assert error.place.line == line_of(source, "return y")


def test_type_variables_bound_to_classes_and_new_types_are_read(tmp_path: Path) -> None:
    source = """
    from typing import Generic, NewType, TypeVar
    M = TypeVar("M", bound=nn.Module)
    Ids = NewType("Ids", torch.Tensor)

    class Holder(Generic[M]):
        def __init__(self, module: M):
            self.module = module

    def f(x: Shaped["float32[b, 4]"]):
        return Ids(Holder(nn.Linear(4, 5)).module(x))
    """
    report = check_text(tmp_path, source)
    assert (report.exit_code, report.returned) == (
        0,
        "torch.Tensor(dtype=float32, shape=(b, 5))",
    )
