"""The inner products of attention: a few rows as they lie, times columns that are packed."""

from __future__ import annotations

from hagane.machine import Level

# Vectors of columns that a tile computes together.
BLOCKS = 2
# Rows whose distance from a base register an address can state: the scales of x86 and nothing.
_SCALED = (0, 1, 2, 4, 8)


def heights(most: int) -> tuple[int, ...]:
    """Return the heights of tiles, the largest first; sums of them are all numbers."""
    return (most, *(height for height in (8, 4, 2, 1) if height < most))


def rows_function(name: str, rows: int, level: Level) -> str:
    """Return a C function ``name(s, step, w, k, d, to)``: ``d[rows][columns] = sum over k of s x w``.

    Rows of ``s`` and of ``d`` lie ``step`` and ``to`` bytes apart, and are contiguous; ``w`` is packed
    as ``[k][columns]``, of which there are two vectors.

    Args:
        name: Of the function.
        rows: Rows that it computes.
        level: Vector instructions.
    """
    lanes = level.lanes
    signature = (
        f"SHARED void {name}(const float *s, int64_t step, const float *w, int64_t k, float *d, "
        "int64_t to)"
    )
    if not level.assembly:
        return _portable(signature, rows, lanes)
    register = "zmm" if lanes == 16 else "ymm"
    used = rows * BLOCKS
    weights = [f"%%{register}{used + j}" for j in range(BLOCKS)]
    spare = [f"%%{register}{i}" for i in range(used + BLOCKS, level.registers)][-3:]
    bases, places = _addresses(rows)
    text = [f"vxorps %%xmm{i}, %%xmm{i}, %%xmm{i}" for i in range(min(used, 16))]
    text += [f"vpxord %%zmm{i}, %%zmm{i}, %%zmm{i}" for i in range(16, used)]
    for base, first in enumerate(bases[1:], 1):
        text.append(f"imul ${first}, %[step], %[s{base}]")
        text.append(f"add %[s0], %[s{base}]")

    def at(row: int, u: int) -> str:
        base, scale = places[row]
        index = f",%[step],{scale}" if scale else ""
        return f"{4 * u}(%[s{base}]{index})"

    def step(u: int) -> list[str]:
        out = [f"vmovups {(u * BLOCKS + j) * lanes * 4}(%[w]), {weights[j]}" for j in range(BLOCKS)]
        for t in range(rows):
            x = spare[(u * rows + t) % len(spare)]
            out.append(f"vbroadcastss {at(t, u)}, {x}")
            out += [
                f"vfmadd231ps {weights[j]}, {x}, %%{register}{t * BLOCKS + j}"
                for j in range(BLOCKS)
            ]
        return out

    def loop(unroll: int) -> list[str]:
        lines = [line for u in range(unroll) for line in step(u)]
        lines += [f"add ${4 * unroll}, %[s{base}]" for base in range(len(bases))]
        return [*lines, f"add ${unroll * BLOCKS * lanes * 4}, %[w]"]

    text += ["mov %[k], %[n]", "shr $2, %[n]", "jz 2f", "1:", *loop(4), "dec %[n]", "jnz 1b"]
    text += ["2:", "mov %[k], %[n]", "and $3, %[n]", "jz 4f", "3:", *loop(1)]
    text += ["dec %[n]", "jnz 3b", "4:"]
    for t in range(rows):
        text += [
            f"vmovups %%{register}{t * BLOCKS + j}, {j * lanes * 4}(%[d])" for j in range(BLOCKS)
        ]
        if t + 1 < rows:
            text.append("add %[to], %[d]")
    body = "\n".join(f'    "{line}\\n\\t"' for line in text)
    clobbered = ", ".join(f'"{register}{i}"' for i in range(level.registers))
    others = "".join(f', [s{base}] "=&r"(s{base})' for base in range(1, len(bases)))
    declared = "".join(f" const float *s{base};" for base in range(1, len(bases)))
    return f"""{signature} {{
  int64_t n;{declared}
  __asm__ volatile(
{body}
    : [s0] "+&r"(s), [w] "+&r"(w), [n] "=&r"(n), [d] "+&r"(d){others}
    : [k] "rm"(k), [step] "r"(step), [to] "rm"(to)
    : "memory", "cc", {clobbered});
}}
"""


def _addresses(rows: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the rows that base registers point to, and each row as a base and a scaled distance."""
    bases: list[int] = []
    places: list[tuple[int, int]] = []
    for row in range(rows):
        found = next(
            ((b, row - first) for b, first in enumerate(bases) if row - first in _SCALED), None
        )
        if found is None:
            bases.append(row)
            found = len(bases) - 1, 0
        places.append(found)
    return bases, places


def _portable(signature: str, rows: int, lanes: int) -> str:
    lines = [f"{signature} {{", "  step /= 4, to /= 4;"]
    lines += [f"  vf a{t}_{j} = {{0}};" for t in range(rows) for j in range(BLOCKS)]
    lines.append(f"  for (; k > 0; k--, s++, w += {BLOCKS * lanes}) {{")
    lines += [f"    vf w{j} = v_load(w + {j * lanes});" for j in range(BLOCKS)]
    lines += [f"    a{t}_{j} += s[{t} * step] * w{j};" for t in range(rows) for j in range(BLOCKS)]
    lines.append("  }")
    lines += [
        f"  v_store(d + {t} * to + {j * lanes}, a{t}_{j});"
        for t in range(rows)
        for j in range(BLOCKS)
    ]
    return "\n".join([*lines, "}\n"])
