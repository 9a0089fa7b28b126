"""The arithmetic that this machine does at most, measured."""

from __future__ import annotations

from hagane.machine import Level
from hagane.native.kernels.kernel import Call, Kernel
from hagane.native.run.compiled import Compiled
from hagane.native.run.context import Spent
from hagane.native.run.engine import compile_kernels, kernel_name, load_engine
from hagane.native.run.loaded import Loaded

# Independent sums hide the latency of a multiplication with addition.
_SUMS, _STEPS, _TASKS = 12, 4000, 16

_CODE = """
void KERNEL(char *const *P, const int64_t *D, int64_t q, const hg_thread *thread) {{
  (void)P, (void)D, (void)q;
  vf x = v_set1(0.5f), y = v_set1(1.f), {declared};
  for (int i = 0; i < {steps}; i++) {{
    {products}
    __asm__ volatile("" : {outputs});
  }}
  v_store((float *)thread->scratch, {total});
}}
"""


def peak_flops(level: Level, threads: int, rounds: int = 20) -> float:
    """Return the best floating-point operations a second of float32, on some threads.

    Multiplications with additions of registers, nothing else; the fastest of ``rounds`` counts.
    """
    names = [f"a{i}" for i in range(_SUMS)]
    code = _CODE.format(
        declared=", ".join(f"{name} = y" for name in names),
        steps=_STEPS,
        products=" ".join(f"{name} = v_fma({name}, x, y);" for name in names),
        outputs=", ".join(f'"+x"({name})' for name in names),
        total=" + ".join(names),
    )
    code = code.replace('"+x"', '"+v"') if level.lanes == 16 else code
    tasks = _TASKS * threads
    kernel = Kernel("peak", code, (), (), tasks, work=1e6, scratch=256)
    library = compile_kernels([kernel], level)
    calls = (Call.of(kernel, kernel_name(code)),)
    engine = load_engine().path
    nothing = Compiled(level.needs, threads, calls, (), (), (), (), 0, (), library.path, engine)
    segment = Loaded(nothing, library=library)
    times: list[Spent] = []
    for _ in range(rounds):
        segment.run([], times)
    best = min(spent.nanoseconds for spent in times)
    return 2.0 * _SUMS * level.lanes * _STEPS * tasks / (best * 1e-9)
