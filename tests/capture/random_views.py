"""Random programs of views, copies and writes in place, in PyTorch and in NumPy."""

from __future__ import annotations

import random
from typing import NamedTuple


class Kind(NamedTuple):
    """The statements of a library: expressions of ``{a}`` and ``{b}``, and writes.

    Operands of a write are copied where they may overlap with what is written: PyTorch leaves open
    what comes of it.
    """

    copy: str
    values: tuple[str, ...]
    writes: tuple[str, ...]


TORCH = Kind(
    "{a}.clone()",
    (
        "{a}.t()", "{a}.reshape(-1)", "{a}.view(-1)", "{a}[0]", "{a}[1:]", "{a}[:, 1:]",
        "{a}[:, 0]", "{a}.flatten()", "{a}.contiguous()", "{a}.unsqueeze(0)", "{a}.expand(2, 4, 4)",
        "{a}.chunk(2)[1]", "{a}.clone()", "{a}.transpose(0, 1)", "{a}.diagonal()", "{a}[::2]",
        "{a}.T", "{a}.squeeze()", "{a}.detach()", "{a}.unbind(0)[1]", "{a}[None]", "{a}[..., -1]",
        "{a}.narrow(0, 1, 2)", "{a}.to(torch.float32)", "{a}.split(2)[0]", "{a}.select(1, 0)",
        "{a}.permute(1, 0)", "{a}.reshape(2, 2, 4)", "{a}.view(2, 8)", "{a}.movedim(0, 1)",
        "{a}[[0, 1]]", "torch.ravel({a})", "torch.atleast_2d({a})", "{a}.mT",
        "{a}.unflatten(0, (2, 2))", "{a}.view_as({a})", "{a}.data", "{a}.repeat(1, 1)",
        "torch.where({a} > 0, {a}, {a})", "{a}.roll(1)", "{a}.flip(0)",
        "torch.broadcast_to({a}, (2, 4, 4))", "{a} + 1", "{a} * {b}", "{a}.relu()", "{a}.sum()",
        "{a} @ {b}", "torch.cat([{a}, {b}])", "torch.stack([{a}, {b}])",
    ),
    (
        "{a} += 1", "{a}.mul_(2)", "{a}.zero_()", "{a}[0] = 5", "{a}[1:] += 2",
        "{a}.copy_({b}.clone())", "{a}[:, 0] = {b}[:, 1].clone()", "{a}.add_({b}.clone())",
        "{a}[-1] = {a}[0]", "{a} *= {b}.clone()", "{a}.clamp_(0, 1)", "{a}.fill_(3)",
        "{a}[{a} > 1] = 0", "{a}.t().mul_(3)", "{a}[0].add_(1)", "{a}.view(-1)[0] = 9",
        "{a}.reshape(-1)[1] = 7", "{a}[1:, 1:] = 4", "torch.add({a}, 1, out={a})",
        "{a}.index_fill_(0, torch.tensor([0]), 2.0)", "{a}.masked_fill_({a} > 1, 0.0)",
        "{a}.diagonal().add_(-1)", "{a}[0][1:].mul_(2)", "{a}.T.copy_({b}.clone())",
        "{a}.unbind()[0].zero_()", "{a}.chunk(2)[1].neg_()", "{a}.flatten()[2:5].sub_(1)",
        "{a}.split([1, 3])[1].t()[0].add_(2)", "{a}.narrow(1, 0, 2).select(0, 1).fill_(6)",
        "{a}.view(-1)[::2] = 0", "{a}.unflatten(0, (2, 2))[1].diagonal().mul_(3)",
        "{a}.movedim(0, 1)[1, 2] = 8",
    ),
)  # fmt: skip
NUMPY = Kind(
    "{a}.copy()",
    (
        "{a}.T", "{a}.reshape(-1)", "{a}[0]", "{a}[1:]", "{a}[:, 1:]", "{a}[:, 0]", "{a}.flatten()",
        "{a}.ravel()", "np.ascontiguousarray({a})", "{a}[None]", "np.broadcast_to({a}, (2, 4, 4))",
        "np.split({a}, 2)[1]", "{a}.copy()", "{a}.transpose()", "np.diagonal({a})", "{a}[::2]",
        "{a}[::-1]", "{a}.squeeze()", "{a}[..., -1]", "{a}.astype(np.float32)", "np.asarray({a})",
        "np.array({a})", "{a}.swapaxes(0, 1)", "{a}.reshape(2, 2, 4)", "np.moveaxis({a}, 0, 1)",
        "{a}[[0, 1]]", "np.ravel({a})", "np.atleast_2d({a})", "np.flip({a}, 0)", "np.rot90({a})",
        "np.roll({a}, 1)", "np.tile({a}, 2)", "np.repeat({a}, 2)", "np.where({a} > 0, {a}, {a})",
        "{a}.real", "np.expand_dims({a}, 0)", "np.fliplr({a})", "{a}[1, 1]", "np.triu({a})",
        "np.sort({a})", "np.take({a}, 0, axis=0)", "np.hsplit({a}, 2)[0]", "np.diag({a})",
        "np.concatenate([{a}, {a}])[1:3]", "np.clip({a}, 0, 9)", "{a} + 1", "{a} * {b}",
        "np.maximum({a}, 0)", "{a}.sum()", "{a} @ {b}", "np.stack([{a}, {b}])",
    ),
    (
        "{a} += 1", "{a} *= 2", "{a}[...] = 0", "{a}[0] = 5", "{a}[1:] += 2", "np.copyto({a}, {b})",
        "{a}[:, 0] = {b}[:, 1]", "{a} += {b}", "{a}[-1] = {a}[0]", "np.clip({a}, 0, 1, out={a})",
        "{a}.fill(3)", "{a}[{a} > 1] = 0", "{a}.T[0] = 3", "{a}[0] += 1", "{a}.reshape(-1)[1] = 7",
        "{a}[1:, 1:] = 4", "np.add({a}, 1, out={a})", "{a}[[0, 1]] = 2", "{a}[:] = {b}[::-1]",
        "{a}.sort()", "{a}[::2] -= 1", "{a}[:] = {a}[::-1]", "np.split({a}, 2)[1][...] = 2",
        "np.hsplit({a}, 2)[0].T[1] += 1", "{a}[0][1:] *= 2", "{a}.ravel()[::2].fill(0)",
    ),
)  # fmt: skip


def program(kind: Kind, seed: int) -> str:
    """Return the text of a function of one matrix of four rows, which may be wrong."""
    draw = random.Random(seed)
    lines, names = [f"x = {kind.copy.format(a='x')}"], ["x"]
    for number in range(draw.randint(3, 7)):
        a, b = draw.choice(names), draw.choice(names)
        if draw.random() < 0.6:
            names.append(f"v{number}")
            lines.append(f"v{number} = {draw.choice(kind.values).format(a=a, b=b)}")
        else:
            lines.append(draw.choice(kind.writes).format(a=a, b=b))
    lines.append(f"return ({', '.join(names)},)")
    return "\n".join(["import numpy as np", "import torch", "", "", "def program(x):"]) + "".join(
        f"\n    {line}" for line in lines
    )


def looped(kind: Kind, seed: int) -> str:
    """Return a function of a matrix and an array, whose loop writes under several names."""
    draw = random.Random(seed)
    names = ["x"]

    def statement() -> str:
        a, b = draw.choice(names), draw.choice(names)
        chance = draw.random()
        if chance < 0.55:
            return draw.choice(kind.writes).format(a=a, b=b)
        return f"{draw.choice(names)} = {b}" if chance < 0.7 else f"total = total + {a}.sum()"

    before = [f"x = {kind.copy.format(a='x')}"]
    for number in range(draw.randint(1, 3)):
        a, b = draw.choice(names), draw.choice(names)
        value = draw.choice(kind.values[:24]).format(a=a, b=b) if draw.random() < 0.75 else a
        names.append(f"v{number}")
        before.append(f"v{number} = {value}")
    inside = []
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.65:
            inside.append(statement())
            continue
        inside += ["if t[i] > 0:", f"    {statement()}"]
        if draw.random() < 0.3:
            inside.append(f"    {draw.choice(['break', 'continue'])}")
        if draw.random() < 0.4:
            inside += ["else:", f"    {statement()}"]
    lines = [
        *before, "total = x.sum() * 0", "for i in range(len(t)):",
        *(f"    {line}" for line in inside),
        *(statement() for _ in range(draw.randint(0, 2))),
        f"return ({', '.join(names)}, total)",
    ]  # fmt: skip
    head = ["import numpy as np", "import torch", "", "", "def program(x, t):"]
    return "\n".join([*head, *(f"    {line}" for line in lines)])
