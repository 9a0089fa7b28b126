"""Random programs over tensors of named sizes, in PyTorch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)

# Expressions of ``{a}`` and ``{b}``; ``@`` is an axis, ``#`` a size, ``^`` a small number from one
# on, ``~`` one of either sign.
_EXPRESSIONS = (
    "{a}.reshape(#, #)", "{a}.view(#, -1)", "{a}.flatten(@, @)", "{a}.transpose(@, @)",
    "{a}.unsqueeze(@)", "{a}.expand(#, #)", "{a}.expand(-1, #, -1)", "{a}.repeat(^, ^)",
    "{a}.sum(@)", "{a}.mean(@, keepdim=True)", "{a}.max(@)[0]", "{a}.argmax(@)",
    "{a} + {b}", "{a} * {b}", "{a} @ {b}", "torch.where({a} > 0, {a}, {b})",
    "torch.cat([{a}, {b}], @)", "torch.stack([{a}, {b}], @)", "{a}.chunk(^, @)[0]",
    "{a}.chunk(2, @)[1]", "{a}.split(^, @)[0]", "{a}.split(^, @)[1]", "{a}.split([1, ^], @)[1]",
    "{a}.narrow(@, 1, ^)", "{a}.select(@, ~)", "{a}[~]", "{a}[:, ~]", "{a}[^:]", "{a}[:-^]",
    "{a}[..., ::^]", "{a}[..., -^:, :]", "{a}[[0, ^]]", "{a}[torch.tensor([[0, ^], [1, 0]])]",
    "{a}.index_select(@, torch.tensor([0, ^]))", "{a}.gather(@, torch.zeros(#, #).long())",
    "{a}.cumsum(@)", "{a}.sort(@)[1]", "{a}.topk(^, @)[0]", "{a}.roll(1, @)", "{a}.flip(@)",
    "{a}.tril()", "F.pad({a}, (~, ^))", "F.pad({a}, (1, ^), mode='reflect')",
    "F.softmax({a}, @)", "F.linear({a}, torch.ones(2, #))",
    "F.conv1d({a}, torch.ones(2, #, ^), stride=^, padding=1)", "F.max_pool1d({a}, ^, ^)",
    "F.conv2d({a}, torch.ones(4, #, ^, 2), stride=^)", "F.avg_pool2d({a}, ^)",
    "F.adaptive_avg_pool1d({a}, ^)", "F.interpolate({a}, scale_factor=1.5)",
    "{a}.unfold(@, ^, ^)", "F.unfold({a}, ^)", "F.glu({a}, @)", "torch.matmul({a}, {b}.transpose(-1, -2))",
    "torch.bmm({a}, {b})", "{a}.diagonal(0, @, @)", "torch.diag_embed({a})",
    "{a}.unflatten(@, (#, -1))", "{a}.movedim(@, @)", "{a}.to(torch.float64)", "{a} > {b}",
    "{a}.any(@)", "{a}.long()", "{a}.norm(dim=@)", "{a}.broadcast_to(^, #, #)",
    "torch.tensordot({a}, {b}, dims=^)", "torch.hstack([{a}, {b}])",
    "{a}.repeat_interleave(^, @)", "torch.tile({a}, (^, ^))", "F.group_norm({a}, ^)",
    "F.normalize({a}, dim=@)",
    "{a}.unbind(@)[^]", "{a}.size(@) * {a}", "{a}.new_ones({a}.shape[0], ^)",
    "torch.arange({a}.shape[@])",
)  # fmt: skip
_SHAPES = (
    ("n", "6"), ("n", "3", "m"), ("n", "4", "8"), ("n", "2", "h", "w"), ("3", "n"), ("n",),
    ("n", "m"), ("n", "1"), ("1", "n"), ("b", "n", "4"), ("n", "n"), ("n", "2*n"), ("n + 1", "4"),
)  # fmt: skip
SIZES: tuple[Mapping[str, int], ...] = tuple(
    dict(zip("nmhwb", numbers, strict=True))
    for numbers in (
        (2, 3, 6, 4, 2), (3, 2, 4, 6, 1), (4, 4, 3, 5, 2), (6, 1, 6, 6, 3), (1, 5, 2, 3, 4),
        (5, 6, 7, 8, 1),
    )
)  # fmt: skip
_TRIES = 30


class Drawn(NamedTuple):
    """A program and the shapes of its inputs.

    Attributes:
        text: A module with a function ``program(x, y)``.
        shapes: Of ``x`` and ``y``, each size as text.
    """

    text: str
    shapes: tuple[tuple[str, ...], tuple[str, ...]]

    def inputs(self, sizes: Mapping[str, int]) -> list[torch.Tensor]:
        """Return inputs of some sizes."""
        torch.manual_seed(0)
        return [
            torch.randn([eval(size, {}, dict(sizes)) for size in shape]) for shape in self.shapes
        ]

    def types(self) -> list[str]:
        """Return the types of the inputs."""
        return [f"float32[{', '.join(shape)}]" for shape in self.shapes]


def program(seed: int) -> Drawn:
    """Return a program that runs at some sizes, as a rule."""
    draw = random.Random(seed)
    first, second = draw.choice(_SHAPES), draw.choice(_SHAPES)
    drawn = Drawn("", (first, first if draw.random() < 0.4 else second))
    values = dict(zip("xy", drawn.inputs(draw.choice(SIZES[:4])), strict=True))
    names, lines = ["x", "y"], []
    for number in range(draw.randint(1, 4)):
        made = None
        for _ in range(_TRIES):
            text = _expression(draw, names)
            try:
                made = eval(text, {"torch": torch, "F": F}, dict(values))
            except (RuntimeError, IndexError, ValueError, TypeError):
                if draw.random() < 0.03:
                    break
            else:
                break
        lines.append(f"    v{number} = {text}")
        names.append(f"v{number}")
        if made is None:
            break
        values[names[-1]] = made
    head = "import torch\nimport torch.nn.functional as F\n\n\ndef program(x, y):"
    return drawn._replace(text="\n".join([head, *lines, f"    return {names[-1]}", ""]))


def _expression(draw: random.Random, names: list[str]) -> str:
    a = draw.choice(names[-2:] if draw.random() < 0.8 else names)
    text = draw.choice(_EXPRESSIONS)
    for mark, drawn in (
        ("@", (0, 1, 2, -1, -2, 3)), ("#", (1, 2, 3, 4, 6, 8, 12)), ("^", (1, 2, 3)),
        ("~", (-2, -1, 0, 1, 2, 3)),
    ):  # fmt: skip
        while mark in text and not (mark == "@" and " @ " in text):
            text = text.replace(mark, str(draw.choice(drawn)), 1)
    return text.format(a=a, b=draw.choice(names))
