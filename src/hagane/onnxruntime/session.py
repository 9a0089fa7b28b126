"""Sessions with ONNX Runtime's methods, errors and strictness."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane import runtime
from hagane.errors import HaganeError, InvalidArgument, InvalidFeed
from hagane.onnxruntime.binding import IOBinding, check_owner
from hagane.onnxruntime.described import ModelMetadata, NodeArg, shown
from hagane.onnxruntime.devices import (
    PROVIDER,
    OrtEpDevice,
    OrtMemoryInfo,
    cpu_device,
    cpu_memory,
)
from hagane.onnxruntime.environment import with_shared_threads
from hagane.onnxruntime.errors import ModelLoadCanceled
from hagane.onnxruntime.messages import missing_inputs, worded
from hagane.onnxruntime.models import (
    adapted,
    as_texts,
    check_format,
    check_keys,
    with_given,
    with_told,
)
from hagane.onnxruntime.options import RunOptions, SessionOptions
from hagane.onnxruntime.providers import (
    KNOWN_PROVIDERS,
    provider_names,
)
from hagane.onnxruntime.raised import (
    BoundError,
    OddFeed,
    as_bound,
    as_theirs,
    offered_not,
    renamed,
)
from hagane.onnxruntime.values import OrtValue, OrtValueVector

if TYPE_CHECKING:
    from hagane.onnxruntime.compiled import CompiledSession


class InferenceSession(runtime.InferenceSession):
    """A model that is ready to run.

    Args:
        path_or_bytes: A path or bytes of an ONNX model, or of one in ONNX Runtime's own format.
        sess_options: Settings; the defaults if None.
        providers: Execution providers in order of preference, by name or with options. Models
            run on the CPU in any case; a warning says so.
        provider_options: The options of each provider; they have no effect.
        kwargs: ``disabled_optimizers``, ``enable_fallback`` and ``read_config_from_model`` have no
            effect.

    Raises:
        HaganeError: One of the errors below it, which is of ONNX Runtime's class as well.
        TypeError: An argument is of another type.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: runtime.SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ):
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(
                f"expected a path or the bytes of a model, got {type(path_or_bytes).__name__}; "
                "an onnx.ModelProto has .SerializeToString()"
            )
        if not path_or_bytes and not isinstance(path_or_bytes, bytes):
            raise TypeError("expected the path of a model, got an empty one")
        if not isinstance(sess_options, runtime.SessionOptions | None):
            raise AttributeError(
                f"expected SessionOptions, got {type(sess_options).__name__}: {sess_options!r}"
            )
        try:
            names = provider_names(providers, provider_options)
        except ValueError as error:  # ONNX Runtime falls back to the CPU there, with a message
            warnings.warn(f"{error}; the model runs on the CPU", stacklevel=2)
            names = [PROVIDER]
        for name in names:
            if name != PROVIDER:
                warnings.warn(
                    f"the execution provider {name!r} is not available; the model runs on the "
                    f"CPU. Available providers: '{PROVIDER}'",
                    stacklevel=2,
                )
        options = sess_options if sess_options is not None else SessionOptions()
        if isinstance(options, SessionOptions):
            if os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1":
                with as_theirs():
                    options = with_told(path_or_bytes, options)
            if not -1 <= options.log_severity_level <= 4:
                raise RuntimeError(
                    f"SessionOptions.log_severity_level: expected 0 to 4, got "
                    f"{options.log_severity_level}"
                )
            options = with_shared_threads(options)
        if isinstance(options, SessionOptions) and options.cancelled:
            raise ModelLoadCanceled("loading was cancelled by SessionOptions")
        with as_theirs():
            source: Any = path_or_bytes
            if isinstance(options, SessionOptions):
                check_format(path_or_bytes, options)
                source = with_given(path_or_bytes, options)
            super().__init__(source, options)
        if isinstance(path_or_bytes, str | os.PathLike):
            self._model_path = os.fspath(path_or_bytes)
        self._fallback = True
        self._about: ModelMetadata | None = None

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that have to be fed."""
        return [shown(item) for item in super().get_inputs()]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return [shown(item) for item in super().get_outputs()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that may be fed as inputs too."""
        return [shown(item) for item in super().get_overridable_initializers()]

    def get_modelmeta(self) -> ModelMetadata:  # type: ignore[override]
        """Return the model's description of itself, the same object each time."""
        if self._about is None:
            self._about = ModelMetadata(super().get_modelmeta())
        return self._about

    # Where ONNX Runtime's class keeps things: classes that inherit from it reach for these.

    @property
    def _sess(self) -> CompiledSession:
        from hagane.onnxruntime.compiled import CompiledSession  # which needs this module

        return CompiledSession.of(self)

    @property
    def _sess_options(self) -> runtime.SessionOptions:
        return self._options

    @property
    def _sess_options_initial(self) -> runtime.SessionOptions:
        return self._options

    @property
    def _model_bytes(self) -> bytes | None:
        return self._source if isinstance(self._source, bytes) else None

    def _validate_input(self, feed_input_names: Sequence[str]) -> None:
        """Refuse a feed without an input.

        Raises:
            ValueError: An input is missing.
        """
        missing = missing_inputs(self.get_inputs(), dict.fromkeys(feed_input_names))
        if missing:
            raise ValueError(
                f"Required inputs ({missing}) are missing from input feed "
                f"({list(feed_input_names)})."
            )

    @property
    def _inputs_meta(self) -> list[NodeArg]:
        return self.get_inputs()

    @property
    def _outputs_meta(self) -> list[NodeArg]:
        return self.get_outputs()

    @property
    def _overridable_initializers(self) -> list[NodeArg]:
        return self.get_overridable_initializers()

    @property
    def _model_meta(self) -> ModelMetadata:
        return self.get_modelmeta()

    @property
    def _provider_options(self) -> dict[str, dict[str, str]]:
        return self.get_provider_options()

    @property
    def _fallback_providers(self) -> list[str]:
        return [PROVIDER]

    @property
    def _enable_fallback(self) -> bool:
        return self._fallback

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: runtime.RunOptions | None = None,
    ) -> list[Any]:
        """Run the model; see ``hagane.InferenceSession.run``.

        Raises:
            ValueError: An input is missing.
            InvalidArgument: An input or output is unknown, or does not fit.
            Fail: A node failed.
        """
        if isinstance(output_names, Generator):
            output_names = list(output_names)
        if isinstance(output_names, str) or not hasattr(output_names or (), "__len__"):
            self._explain(output_names, input_feed, run_options)
        if isinstance(run_options, RunOptions) and run_options.adapters:
            input_feed = adapted(input_feed, run_options)
        try:
            return super().run(output_names, input_feed, run_options)
        except HaganeError as error:
            self._explain(output_names, input_feed, run_options)
            wording = None
            if isinstance(error, InvalidArgument):
                texts = as_texts(self.get_inputs(), input_feed)
                if texts is not None:
                    return self.run(output_names, texts, run_options)
                wording = worded(self, output_names, input_feed)
            renamed(error, wording)
            raise
        except (TypeError, AttributeError):
            self._explain(output_names, input_feed, run_options)
            raise

    def _explain(self, names: Any, feed: Any, options: Any) -> None:
        """Raise for arguments of types that ONNX Runtime's interface does not take."""
        if not isinstance(feed, Mapping):
            raise AttributeError(
                f"expected the feed to map input names to arrays, got {type(feed).__name__}"
            )
        if isinstance(names, str):
            raise TypeError(f"expected a list of output names, got the text {names!r}: [{names!r}]")
        if not hasattr(names or (), "__len__"):
            raise TypeError(f"expected a list of output names, got {type(names).__name__}")
        if options is not None and not isinstance(options, runtime.RunOptions):
            raise TypeError(f"expected RunOptions, got {type(options).__name__}")
        if missing_inputs(self.get_inputs(), feed):  # which ONNX Runtime tells of first
            return
        odd = [name for name in (*(names or ()), *feed) if not isinstance(name, str)]
        if odd:
            raise TypeError(
                f"expected names of inputs and outputs, got {odd[0]!r} ({type(odd[0]).__name__})"
            )
        known = {item.name: item for item in self.get_inputs()}
        for name, value in feed.items():
            if isinstance(value, str | bytes | int | float | np.generic):
                raise OddFeed(f"input '{name}': expected an array, got {value!r}")
            if isinstance(value, Mapping) and name in known:
                check_keys(known[name], value)
            if isinstance(value, list) and name not in known:
                raise OddFeed(
                    f"unknown input '{name}'; the model takes: {', '.join(sorted(known))}"
                )

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, Any],
        run_options: runtime.RunOptions | None = None,
    ) -> list[Any]:
        """Run the model on held values and return held values."""
        for name, value in input_dict_ort_values.items():
            if not isinstance(value, runtime.OrtValue):
                raise AttributeError(
                    f"input '{name}': expected an OrtValue, got {type(value).__name__}"
                )
        return [OrtValue(v) for v in self.run(output_names, input_dict_ort_values, run_options)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[Any],
    ) -> None:
        """Run the model on a vector of values, and add its outputs to another.

        Args:
            run_options: Settings of this run.
            feed_names: The names of the inputs.
            feeds: Their values.
            fetch_names: The names of the outputs.
            fetches: The outputs are added to it.
            fetch_devices: Where they shall lie: the CPU.
        """
        feed = dict(zip(feed_names, feeds, strict=True))
        for value in self.run(list(fetch_names), feed, run_options):
            fetches.push_back(OrtValue(value))

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: runtime.RunOptions | None = None,
    ) -> None:
        """Run the model in a thread and call ``callback(results, user_data, error)``.

        Raises:
            ValueError: An input is missing.
        """
        missing = missing_inputs(self.get_inputs(), input_feed)
        if missing:
            error = InvalidFeed(f"missing input {', '.join(map(repr, missing))}")
            raise renamed(error, worded(self, output_names, input_feed))
        super().run_async(output_names, input_feed, callback, user_data, run_options)

    def io_binding(self) -> IOBinding:
        """Return an empty binding for ``run_with_iobinding``."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: runtime.IOBinding, run_options: runtime.RunOptions | None = None
    ) -> None:
        """Run the model on bound inputs and write its bound outputs in place."""
        if isinstance(iobinding, IOBinding):
            check_owner(iobinding, self)
        with as_bound():
            super().run_with_iobinding(iobinding, run_options)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Return a value with room for a tensor."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id)

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Warn of providers that are not there; models run on the CPU.

        Raises:
            RuntimeError: ONNX Runtime has no provider of the name.
        """
        names = provider_names(providers, provider_options)
        for name in names:
            if name not in KNOWN_PROVIDERS:
                raise RuntimeError(
                    f"Unknown Provider Type: {name}; available providers: '{PROVIDER}'"
                )
        super().set_providers(names)

    def disable_fallback(self) -> None:
        """Raise errors of providers at once, which hagane does anyway."""
        self._fallback = False

    def enable_fallback(self) -> None:
        """Try the CPU if another provider fails; there is only the CPU."""
        self._fallback = True

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return where the inputs lie."""
        return [cpu_memory() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return where the outputs lie."""
        return [cpu_memory() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """Return the device of each input."""
        return [cpu_device() for _ in self.get_inputs()]

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """Refuse: ``hagane inspect`` shows where the nodes of a model run."""
        raise offered_not(
            "InferenceSession.get_provider_graph_assignment_info",
            "`hagane inspect MODEL` shows where the nodes of a model run",
        )

    def get_tuning_results(self) -> list[Any]:
        """Return the choices of kernels that providers measured: none."""
        return []

    def set_tuning_results(self, results: Sequence[Any], *, error_on_invalid: bool = False) -> None:
        """Take choices of kernels that providers measured.

        Raises:
            BoundError: There are some, and ``error_on_invalid``.
        """
        if results and error_on_invalid:
            raise BoundError(
                "results of tuning belong to the provider that measured them, of which hagane has "
                "none; SessionOptions.tune measures hagane's kernels"
            )

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Refuse: the CPU has no options that change while a session lives."""
        raise offered_not(
            "InferenceSession.set_ep_dynamic_options",
            "the CPU has no options that change while a session lives",
        )

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Let go of a captured graph: the CPU has none."""

    def end_profiling(self) -> str:
        """Write the recorded times as a Chrome trace and return the file's name; "" if none."""
        if self._profile is None:
            return ""
        path = super().end_profiling()
        self._profile = None
        return path
