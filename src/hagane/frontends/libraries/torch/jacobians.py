"""Derivatives of functions with several results, as programs over ``torch.autograd.grad``.

https://docs.pytorch.org/docs/stable/func.api.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def pulled_back(func: Any, primals: Any, has_aux: Any) -> Any:
    """Return a function's result, arguments of its own, and what it returns beside the result."""
    from torch.utils._pytree import tree_map

    given = tree_map(lambda x: x.clone(), primals)
    found = func(*given)
    return (found[0], given, (found[1],)) if has_aux else (found, given, ())


def gradients(outputs: Any, inputs: Any, cotangents: Any) -> Any:
    """Return the gradients of inputs, in their structure, for those of outputs."""
    import torch
    from torch.utils._pytree import tree_flatten

    leaves, spec = tree_flatten(inputs)
    found = torch.autograd.grad(
        tree_flatten(outputs)[0], leaves, tree_flatten(cotangents)[0],
        create_graph=True, materialize_grads=True,
    )  # fmt: skip
    return spec.unflatten(list(found))


def vjp(func: Any, *primals: Any, has_aux: bool = False) -> Any:
    """Return a function's result, and a function that brings gradients of it back."""
    found, given, aux = pulled_back(func, primals, has_aux)

    def bring_back(cotangents: Any) -> Any:
        return gradients(found, given, cotangents)

    return (found, bring_back, *aux)


def jvp(
    func: Any, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return a function's result, and its derivative in a direction.

    That is the gradient of what gradients bring back, by these: they enter it linearly.
    """
    import torch
    from torch.utils._pytree import tree_flatten, tree_leaves

    found, given, aux = pulled_back(func, tuple(primals), has_aux)
    leaves, spec = tree_flatten(found)
    weights = [torch.ones_like(leaf).requires_grad_() for leaf in leaves]
    back = torch.autograd.grad(
        leaves, tree_leaves(given), weights, create_graph=True, materialize_grads=True
    )
    made = torch.autograd.grad(
        list(back), weights, tree_leaves(tuple(tangents)), create_graph=True, materialize_grads=True
    )
    return (found, spec.unflatten(list(made)), *aux)


def jacobian(func: Any, argnums: Any, has_aux: Any, *args: Any, **named: Any) -> Any:
    """Return the derivatives of each element of the results by each element of arguments."""
    import torch
    from torch.utils._pytree import tree_map

    places = argnums if isinstance(argnums, tuple) else (argnums,)
    places = tuple(place % len(args) for place in places)

    def of_them(*chosen: Any) -> Any:
        whole = list(args)
        for place, value in zip(places, chosen, strict=True):
            whole[place] = value
        return func(*whole, **named)

    found, given, aux = pulled_back(of_them, tuple(args[place] for place in places), has_aux)

    def of_one(result: Any) -> Any:
        flat = result.reshape(-1)
        rows = []
        for place in range(flat.shape[0]):
            rows.append(gradients(flat[place], given, torch.ones(())))
        return given_stacked(rows, result)

    def given_stacked(rows: Any, result: Any) -> Any:
        made = tuple(
            torch.stack([row[i] for row in rows]).reshape(result.shape + given[i].shape)
            for i in range(len(places))
        )
        return made if isinstance(argnums, tuple) else made[0]

    made = tree_map(of_one, found)
    return (made, aux[0]) if has_aux else made


def hessian(func: Any, argnums: Any, has_aux: Any, *args: Any, **named: Any) -> Any:
    """Return the second derivatives of a function."""

    def slopes(*inner: Any) -> Any:
        return jacobian(func, argnums, has_aux, *inner, **named)

    return jacobian(slopes, argnums, has_aux, *args)


# Those of ``torch.autograd.functional``, which apply the function at once.
# https://docs.pytorch.org/docs/stable/autograd.html#functional-higher-level-api


def _detached(made: Any, create_graph: Any) -> Any:
    from torch.utils._pytree import tree_map

    return made if create_graph else tree_map(lambda x: x.detach(), made)


def _several(inputs: Any) -> tuple[Any, Any]:
    """Return arguments as a tuple, and their places as ``jacobian`` takes them."""
    if isinstance(inputs, tuple | list):
        return tuple(inputs), tuple(range(len(inputs)))
    return (inputs,), 0


def functional_jacobian(
    func: Any, inputs: Any, create_graph: Any = False, strict: Any = False, vectorize: Any = False,
    strategy: Any = "reverse-mode",
) -> Any:  # fmt: skip
    """Return the derivatives of each element of the results by each of the inputs."""
    given, places = _several(inputs)
    return _detached(jacobian(func, places, False, *given), create_graph)


def _number(func: Any) -> Any:
    return lambda *given: func(*given).reshape(())


def functional_hessian(
    func: Any, inputs: Any, create_graph: Any = False, strict: Any = False, vectorize: Any = False,
    outer_jacobian_strategy: Any = "reverse-mode",
) -> Any:  # fmt: skip
    """Return the second derivatives of a function whose result is one number."""
    given, places = _several(inputs)
    return _detached(hessian(_number(func), places, False, *given), create_graph)


def functional_vjp(
    func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False
) -> Any:
    """Return a function's result, and the gradients of its inputs for those of the result."""
    import torch

    given, _ = _several(inputs)
    found, own, _ = pulled_back(func, given, False)
    made = gradients(found, own, torch.ones_like(found) if v is None else v)
    made = made if isinstance(inputs, tuple | list) else made[0]
    return _detached((found, made), create_graph)


def functional_jvp(
    func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False
) -> Any:
    """Return a function's result, and its derivative in a direction."""
    import torch

    given, _ = _several(inputs)
    tangents = (torch.ones_like(given[0]),) if v is None else _several(v)[0]
    return _detached(jvp(func, given, tangents), create_graph)


def functional_hvp(
    func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False
) -> Any:
    """Return a function's result, and its second derivatives by the inputs, times a vector."""
    import torch

    given, _ = _several(inputs)
    factors = (torch.ones_like(given[0]),) if v is None else _several(v)[0]
    found, own, _ = pulled_back(_number(func), given, False)
    slopes = gradients(found, own, torch.ones(()))
    made = gradients(slopes, own, factors)
    made = made if isinstance(inputs, tuple | list) else made[0]
    return _detached((found, made), create_graph)


FUNCTIONAL: dict[str, Callable[..., Any]] = {
    "jacobian": functional_jacobian, "hessian": functional_hessian, "vjp": functional_vjp,
    "jvp": functional_jvp, "hvp": functional_hvp, "vhp": functional_hvp,  # H is symmetric
}  # fmt: skip
DERIVED: dict[str, Callable[..., Any]] = {
    "jacrev": jacobian, "jacfwd": jacobian, "hessian": hessian,
}  # fmt: skip
