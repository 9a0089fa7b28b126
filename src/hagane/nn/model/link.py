"""Links: parameters, and values that are saved with them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hagane.nn.autograd.devices import cpu, get_device
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.initializers import NaN
from hagane.nn.model.hooks import (
    ForwardPostprocess,
    ForwardPreprocess,
    LinkHook,
    get_link_hooks,
)

_MOVES = ("to_cpu", "to_gpu", "to_intel64")


class DeviceResident:
    """Something that lies on a device: this machine's.

    Subclasses may define ``to_cpu`` and its like, as old programs do, which are called when what
    holds them is moved.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("to_device", "to_chx", "from_chx"):
            if name in cls.__dict__:
                raise TypeError(f"{cls.__name__}: {name} is not to be defined by a subclass")
        for name in _MOVES:
            if name in cls.__dict__:
                warnings.warn(
                    f"{cls.__name__}: to define {name} is deprecated; to_device moves arrays",
                    DeprecationWarning,
                    stacklevel=2,
                )

    def __init__(self) -> None:
        self._device = cpu

    @property
    def device(self) -> Any:
        """The device."""
        return cpu

    @property
    def xp(self) -> Any:
        """The array module: NumPy."""
        return np

    def to_cpu(self) -> Any:
        """Return itself: arrays lie in this machine's memory; ``to_device`` is the newer name."""
        warnings.warn(
            "to_cpu is deprecated. Use to_device('@numpy') instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        self._move_parts("to_cpu")
        return self

    def _parts(self) -> Iterator[DeviceResident]:
        """Return its contents that lie on a device."""
        return iter(())

    def _move_parts(self, name: str) -> None:
        """Call the methods of a name that subclasses of its parts define."""
        for part in self._parts():
            if getattr(type(part), name) is getattr(DeviceResident, name):
                part._move_parts(name)
            else:
                getattr(part, name)()

    def to_gpu(self, device: Any = None) -> Any:
        """Refuse: there is no GPU.

        Raises:
            NoDevice: Always.
        """
        return self.to_device("@cupy:0" if device is None else device)

    def to_intel64(self) -> Any:
        """Return itself."""
        return self

    def to_chx(self) -> Any:
        """Refuse: there is no ChainerX.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("ChainerX is not available: hagane computes on NumPy's arrays")

    def from_chx(self) -> Any:
        """Return itself."""
        return self

    def to_device(self, device: Any) -> Any:
        """Return itself after a check that the device is the CPU."""
        get_device(device)
        self._move_parts("to_cpu")
        return self

    def device_resident_accept(self, visitor: Any) -> None:
        """Let a visitor see the arrays; there is nothing to move."""


class Link(DeviceResident):
    """Parameters, with the function ``forward`` that uses them.

    Parameters are registered by assigning them inside ``with self.init_scope():``.

    Args:
        params: Sizes, or pairs of sizes and element type, of parameters to register.

    Attributes:
        name: Its name in the chain that holds it.
    """

    _local_link_hooks: dict[str, LinkHook] | None = None
    _ready = False
    # Whether a class that a program mixes in behind Link brings the method ``__call__``.
    _has_call_behind: ClassVar[bool] = False
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a parameter, a link or a value."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        behind = cls.__mro__[cls.__mro__.index(Link) + 1 :]
        cls._has_call_behind = any("__call__" in each.__dict__ for each in behind)

    def __init__(self, **params: Any):
        super().__init__()
        self._params: set[str] = set()
        self._persistent: set[str] = set()
        self._within_init_scope = False
        self.name: str | None = None
        self._ready = True
        for name, value in params.items():
            shape, dtype = (value, np.float32) if _is_shape(value) else value
            self.add_param(name, shape, dtype=dtype)

    def _check_ready(self) -> None:
        if not self._ready:
            error = RuntimeError("Link.__init__() has not been called.")
            error.add_note(f"{type(self).__name__}.__init__: call super().__init__() first")
            raise error

    def __str__(self) -> str:
        specs = ", ".join(f"{key}={value}" for key, value in self.printable_specs)
        return f"{type(self).__name__}({specs})"

    @property
    def printable_specs(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and value that ``str`` shows."""
        return iter(())

    @property
    def local_link_hooks(self) -> dict[str, LinkHook]:
        """The hooks of this link alone, by name."""
        if self._local_link_hooks is None:
            self._local_link_hooks = {}
        return self._local_link_hooks

    @property
    def within_init_scope(self) -> bool:
        """Whether assigned parameters are registered."""
        return getattr(self, "_within_init_scope", False)

    @contextmanager
    def init_scope(self) -> Iterator[None]:
        """Register the parameters and links that are assigned in a ``with`` block."""
        self._check_ready()
        before = self.within_init_scope
        self._within_init_scope = True
        try:
            yield
        finally:
            self._within_init_scope = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward``, and the hooks before and after."""
        self._check_ready()
        forward = super().__call__ if self._has_call_behind else self.forward  # type: ignore[misc]
        general, own = get_link_hooks(), self._local_link_hooks
        if not general and not own:
            return forward(*args, **kwargs)
        hooks = list({**general, **(own or {})}.values())
        for hook in hooks:
            hook.forward_preprocess(ForwardPreprocess(self, "forward", args, kwargs))
        out = forward(*args, **kwargs)
        for hook in hooks:
            hook.forward_postprocess(ForwardPostprocess(self, "forward", args, kwargs, out))
        return out

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter) and self.within_init_scope:
            value.name = name
            self._params.add(name)
            self._persistent.discard(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._params.discard(name)
        self._persistent.discard(name)
        super().__delattr__(name)

    def add_param(
        self, name: str, shape: Any = None, dtype: Any = np.float32, initializer: Any = None
    ) -> None:
        """Register a new parameter.

        Raises:
            AttributeError: There is an attribute of that name.
        """
        if name in self.__dict__:
            raise AttributeError(f"cannot register a new parameter {name}: attribute exists")
        made = Parameter(NaN(dtype) if initializer is None else initializer, shape)
        with self.init_scope():
            setattr(self, name, made)

    def add_persistent(self, name: str, value: Any) -> None:
        """Register a new value that is saved and loaded with the parameters.

        Raises:
            AttributeError: There is an attribute of that name.
        """
        if name in self.__dict__:
            raise AttributeError(f"cannot register a new persistent value {name}: attribute exists")
        self._persistent.add(name)
        self._params.discard(name)
        self.__dict__[name] = value

    def register_persistent(self, name: str) -> None:
        """Let an attribute be saved and loaded with the parameters.

        Raises:
            AttributeError: There is no such attribute.
        """
        if not hasattr(self, name):
            raise AttributeError(
                f"cannot register non-existent attribute {name} as a persistent value"
            )
        self._persistent.add(name)
        self._params.discard(name)

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a link on given parameters, where the class defines it."""
        raise NotImplementedError(f"{cls.__name__} does not implement from_params")

    def copy(self, mode: str = "share") -> Any:
        """Return a copy.

        Args:
            mode: ``share`` the arrays, ``copy`` them, or ``init`` them anew.
        """
        if mode == "share":
            made = copy.copy(self)
            made._params = set(self._params)
            made._persistent = set(self._persistent)
            made.name = None
            for name in made._params:
                made.__dict__[name] = copy.copy(made.__dict__[name])
                made.__dict__[name].grad = None
            return made
        _check_mode(mode)
        made = copy.deepcopy(self)
        if mode == "init":
            for parameter in made.params(include_uninit=False):
                parameter.initialize(parameter.shape)
        return made

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """Return the parameters in the order of their names."""
        for name in sorted(self._params):
            parameter = self.__dict__[name]
            if include_uninit or parameter.array is not None:
                yield parameter

    def namedparams(self, include_uninit: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Return paths and parameters in the order of their names."""
        for name in sorted(self._params):
            parameter = self.__dict__[name]
            if include_uninit or parameter.is_initialized:
                yield f"/{name}", parameter

    def links(self, skipself: bool = False) -> Iterator[Link]:
        """Return the link and those in it."""
        if not skipself:
            yield self

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """Return paths and links."""
        if not skipself:
            yield "/", self

    def children(self) -> Iterator[Link]:
        """Return the links that it holds directly."""
        return iter(())

    def _parts(self) -> Iterator[DeviceResident]:
        return self.children()

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Copy the arrays of another link of the same structure.

        Args:
            link: The other.
            copy_persistent: Whether persistent values are copied too.
        """
        own, others = self.__dict__, link.__dict__
        for name in self._params:
            own[name].copydata(others[name])
        for name in self._persistent if copy_persistent else ():
            if isinstance(own[name], np.ndarray) and isinstance(others[name], np.ndarray):
                np.copyto(own[name], others[name], casting="unsafe")
            else:
                own[name] = copy.deepcopy(others[name])

    def cleargrads(self) -> None:
        """Drop the gradients of all parameters."""
        for parameter in self.params():
            parameter.cleargrad()

    def zerograds(self) -> None:
        """Set the gradients of all parameters to zeros; ``cleargrads`` costs less."""
        warnings.warn(
            "Link.zerograds is deprecated. Use Link.cleargrads instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for parameter in self.params():
                parameter.zerograd()

    def addgrads(self, link: Link) -> None:
        """Add the gradients of another link of the same structure."""
        for name in self._params:
            self.__dict__[name].addgrad(link.__dict__[name])

    def _rules(self) -> Iterator[Any]:
        return (p.update_rule for p in self.params() if p.update_rule is not None)

    def enable_update(self) -> None:
        """Let the optimizer update all parameters."""
        for rule in self._rules():
            rule.enabled = True

    def disable_update(self) -> None:
        """Keep the optimizer from updating the parameters."""
        for rule in self._rules():
            rule.enabled = False

    @property
    def update_enabled(self) -> bool:
        """Whether the optimizer updates any parameter."""
        return any(rule.enabled for rule in self._rules())

    def serialize(self, serializer: Any) -> None:
        """Read or write the parameters and persistent values."""
        values = self.__dict__
        for name in sorted(self._params):
            parameter = values[name]
            data = serializer(name, parameter.array)
            if not parameter.is_initialized and data is not None:
                parameter.initialize(data.shape)
                np.copyto(parameter.data, data, casting="unsafe")
        for name in sorted(self._persistent):
            values[name] = serializer(name, values[name])

    def to_torch(self, names: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the parameters as tensors of PyTorch that share their memory.

        Args:
            names: Names that differ, by path; see ``hagane.nn.exchange``.
        """
        from hagane.nn.exchange import to_torch

        return to_torch(self, names)

    def from_torch(
        self, source: Any, names: Mapping[str, str] | None = None, strict: bool = True
    ) -> Any:
        """Let the parameters be those of a module of PyTorch, in its memory; returns the link.

        Args:
            source: A module, or tensors by name.
            names: Names that differ, by path; see ``hagane.nn.exchange``.
            strict: Whether names on one side only are an error.

        Raises:
            InvalidArgument: Names, sizes or types do not fit; all of them are listed.
        """
        from hagane.nn.exchange import from_torch

        from_torch(self, source, names, strict)
        return self

    def repeat(self, n_repeat: int, mode: str = "init") -> Any:
        """Return a ``Sequential`` of copies.

        Args:
            n_repeat: How many.
            mode: How each is copied, as in ``copy``.
        """
        from hagane.nn.model.sequential import Sequential

        made = Sequential()
        if n_repeat <= 0:
            return made
        _check_mode(mode)
        for _ in range(n_repeat):
            made.append(self.copy(mode))
        return made

    def count_params(self) -> int:
        """Return the number of elements of all parameters that have an array."""
        total = 0
        for name, parameter in self.namedparams():
            if parameter.array is None:
                warnings.warn(
                    f"Parameter '{name}' has not been initialized, so the resulting count will "
                    "not include the number of parameters in it.",
                    stacklevel=2,
                )
                continue
            total += parameter.size
        return total

    def add_hook(self, hook: LinkHook, name: str | None = None) -> Any:
        """Register a hook for this link alone; returns the link.

        Raises:
            TypeError: It is no hook.
            KeyError: There is one of that name.
        """
        if not isinstance(hook, LinkHook):
            raise TypeError(f"Hook must be of type LinkHook, got {type(hook)}")
        name = hook.name if name is None else name
        if name in self.local_link_hooks:
            raise KeyError(f"Hook {name} already exists")
        self.local_link_hooks[name] = hook
        hook.added(self)
        return self

    def delete_hook(self, name: str) -> None:
        """Take a hook away.

        Raises:
            KeyError: There is none of that name.
        """
        if name not in self.local_link_hooks:
            raise KeyError(f"Hook {name} does not exist")
        self.local_link_hooks.pop(name).deleted(self)


def _check_mode(mode: str) -> None:
    if mode not in ("init", "copy", "share"):
        raise ValueError(
            f"The 'mode' argument should be either 'init', 'copy', or 'share', got {mode!r}"
        )


def _is_shape(value: Any) -> bool:
    if value is None:
        return True
    try:
        if isinstance(value, Sequence):
            return all(int(item) or True for item in value)
        int(value)
    except (TypeError, ValueError):
        return False
    return True
