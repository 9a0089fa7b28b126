"""Functions that move, join and choose elements, and products."""

from __future__ import annotations

import math

from tests.nn.drawn.text import Text, Value


def moved(t: Text, x: Value) -> None:
    """Write a function that reorders axes."""
    n = len(x.shape)
    order = t.random.sample(range(n), n)
    a, b = t.random.randrange(n), t.random.randrange(n)
    swapped = list(x.shape)
    swapped[a], swapped[b] = swapped[b], swapped[a]
    there = [i for i in range(n) if i != a]
    there.insert(b, a)
    shape = [x.shape[i] for i in order]
    t.let(*t.random.choice([
        (f"F.transpose({x.name}, {tuple(order)})", shape),
        (f"{x.name}.transpose({', '.join(map(str, order))})", shape),
        (f"{x.name}.T", x.shape[::-1]),
        (f"F.swapaxes({x.name}, {a}, {b - n})", swapped),
        (f"F.moveaxis({x.name}, {a}, {b})", [x.shape[i] for i in there]),
        (f"F.expand_dims({x.name}, {a})", (*x.shape[:a], 1, *x.shape[a:])),
        (f"F.squeeze(F.expand_dims({x.name}, {a}), {a})", x.shape),
        (f"F.reshape({x.name}, (-1,))", (math.prod(x.shape),)),
        (f"{x.name}.reshape({x.shape[0]}, -1)", (x.shape[0], math.prod(x.shape[1:]))),
        (f"F.flatten({x.name})", (math.prod(x.shape),)),
    ]))  # fmt: skip


def joined(t: Text, x: Value) -> None:
    """Write a function that joins or repeats arrays."""
    n = len(x.shape)
    axis = t.random.randrange(n)
    y = t.other(x.shape)
    doubled = [m * (1 + (i == axis)) for i, m in enumerate(x.shape)]
    if math.prod(doubled) > 400:
        return
    reps = tuple(2 if i == axis else 1 for i in range(n))
    width = tuple((1, 1) if i == axis else (0, 0) for i in range(n))
    padded = [m + 2 * (i == axis) for i, m in enumerate(x.shape)]
    choices = [
        (f"F.concat([{x.name}, {y}], axis={axis})", doubled),
        (f"F.concat(({x.name}, {y}, {x.name}), axis={axis - n})[{':, ' * axis}:{doubled[axis]}]",
         doubled),
        (f"F.stack([{x.name}, {y}], axis={axis})", (*x.shape[:axis], 2, *x.shape[axis:])),
        (f"F.tile({x.name}, {reps})", doubled),
        (f"F.repeat({x.name}, 2, axis={axis})", doubled),
        (f"F.pad({x.name}, {width}, 'constant', constant_values=0.5)", padded),
        (f"F.vstack([{x.name}, {y}])", (2 * x.shape[0], *x.shape[1:]) if n > 1 else (2, *x.shape)),
        (f"F.broadcast_to({x.name}, (2, *{x.shape}))", (2, *x.shape)),
        (f"F.pad_sequence([{x.name}, {x.name}[:1]], {x.shape[0] + 1}, 0.25)",
         (2, x.shape[0] + 1, *x.shape[1:])),
        (f"F.crelu({x.name}, axis={axis})", doubled),
    ]  # fmt: skip
    t.let(*t.random.choice(choices[: -1 if t.smooth else None]))


def chosen(t: Text, x: Value) -> None:
    """Write a function that takes some elements."""
    n = len(x.shape)
    axis = t.random.randrange(n)
    size = x.shape[axis]
    front = ":, " * axis
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    start = t.random.randrange(size)
    places = [t.random.randrange(-size, size) for _ in range(t.random.randrange(1, 4))]
    order = t.random.sample(range(size), size)
    half = max(1, size // 2)

    def sized(count: int) -> tuple[int, ...]:
        return (*x.shape[:axis], count, *x.shape[axis + 1 :])

    choices = [
        (f"{x.name}[{front}{start}]", rest),
        (f"{x.name}[{front}{start}:]", sized(size - start)),
        (f"{x.name}[{front}::-1]", x.shape),
        (f"{x.name}[{front}{places}]", sized(len(places))),
        (f"{x.name}[..., None]", (*x.shape, 1)),
        (f"F.get_item({x.name}, (Ellipsis, {start % x.shape[-1]}))", x.shape[:-1]),
        (f"F.permutate({x.name}, np.array({order}, 'i'), axis={axis})", x.shape),
        (f"F.permutate({x.name}, np.array({order}, 'i'), axis={axis}, inv=True)", x.shape),
        (f"F.split_axis({x.name}, [{half}], {axis})[0]", sized(half)),
        (f"F.separate({x.name}, {axis})[{start}]", rest),
        (f"F.scatter_add({x.name}, np.array({places}), {x.name}[np.array({places})] * 0.5)"
         if axis == 0 else f"F.scatter_add({x.name}, 0, {x.name}[0])", x.shape),
    ]  # fmt: skip
    if n == 2:
        labels = [t.random.randrange(x.shape[1]) for _ in range(x.shape[0])]
        choices.append((f"F.select_item({x.name}, np.array({labels}, 'i'))", x.shape[:1]))
        choices.append((f"F.diagonal({x.name})", (min(x.shape),)))
    t.let(*t.random.choice([one for one in choices if math.prod(one[1])]))


def product(t: Text, x: Value) -> None:
    """Write a product of matrices."""
    n = len(x.shape)
    if n < 2:
        return
    rows, inner = x.shape[-2:]
    if n == 2:
        square = f"(F.matmul({x.name}, {x.name}, transb=True) + np.eye({rows}, dtype=DTYPE))"
        t.let(*t.random.choice([
            (f"F.matmul({x.name}, {t.array((inner, 3))})", (rows, 3)),
            (f"F.matmul({x.name}, {t.other(x.shape)}, transb=True)", (rows, rows)),
            (f"F.matmul({x.name}, {t.other(x.shape)}, transa=True)", (inner, inner)),
            (f"F.einsum('ij,kj->ik', {x.name}, {t.other(x.shape)})", (rows, rows)),
            (f"F.tensordot({x.name}, {t.other(x.shape)}, axes=((1,), (1,)))", (rows, rows)),
            (f"F.matmul({x.name}, {t.array((inner,))})", (rows,)),
            (f"F.linear({x.name}, {t.array((4, inner))}, {t.array((4,))})", (rows, 4)),
            (f"F.bilinear({x.name}, {t.other(x.shape)}, {t.array((inner, inner, 2))})", (rows, 2)),
            (f"F.inv(0.1 * {square})",
             (rows, rows)),
            (f"F.det(0.1 * {square})",
             ()),
            (f"F.cholesky({square})",
             (rows, rows)),
            (f"{x.name} @ {t.array((inner, 2))}", (rows, 2)),
        ]))  # fmt: skip
    else:
        t.let(*t.random.choice([
            (f"F.matmul({x.name}, {t.other(x.shape)}, transb=True)", (*x.shape[:-1], rows)),
            (f"F.matmul({x.name}, {t.array((inner, 2))})", (*x.shape[:-1], 2)),
            (f"F.linear({x.name}, {t.array((2, inner))}, n_batch_axes={n - 1})",
             (*x.shape[:-1], 2)),
        ]))  # fmt: skip


RULES = (moved, moved, joined, joined, chosen, chosen, product)
