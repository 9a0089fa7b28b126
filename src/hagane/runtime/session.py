"""Run a model: the interface of ONNX Runtime over hagane's engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hagane.errors import InvalidArgument, InvalidModel, KernelError, OutOfMemory
from hagane.machine import Lock, NoCompiler
from hagane.native.ready.caller import Caller, make_entry
from hagane.runtime.chosen import is_native, level_of, threads_of
from hagane.runtime.device import CPU
from hagane.runtime.kept import Kept, keep, key_of
from hagane.runtime.kept import find as find_kept
from hagane.runtime.options import RunOptions, SessionOptions, copy_of
from hagane.runtime.values.described import ModelMetadata, NodeArg
from hagane.runtime.values.value import OrtValue

# Modules that read, build and profile models are imported where they are used: a session from the
# cache does without, and starts in a fraction of the time.
if TYPE_CHECKING:
    import logging

    from hagane.graph import ModelSource
    from hagane.runtime.device import Value
    from hagane.runtime.opened import Opened
    from hagane.runtime.port import Memory, Observer, Part, Timed
    from hagane.runtime.profile import Profile, ProfileReport
    from hagane.runtime.shapes.beside import Beside
    from hagane.runtime.shapes.specialize import Programs, Sizes
    from hagane.runtime.values.binding import IOBinding

_PROVIDER = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Return the execution providers: the CPU."""
    return [_PROVIDER]


def get_device() -> str:
    """Return the kind of device that models run on."""
    return "CPU"


class InferenceSession:
    """A model that is ready to run.

    ``run`` may be called from several threads at once.

    Args:
        path_or_bytes: A path of an ``.onnx`` file, its bytes, an ``onnx.ModelProto`` or an
            ``onnx_ir.Model``. A model in memory is taken as it is now; arrays that an
            ``onnx_ir.Model`` holds are shared, and must stay as they are.
        sess_options: Settings; the defaults if None.
        providers: Execution providers in order of preference. Others than hagane's are
            passed over with a warning; models run on the CPU.
        provider_options: Accepted.
        disabled_optimizers: Accepted.

    Raises:
        ModelError: One of the errors below it names the model's fault.
    """

    def __init__(
        self,
        path_or_bytes: ModelSource,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        disabled_optimizers: Sequence[str] | None = None,
    ):
        self._options = SessionOptions() if sess_options is None else copy_of(sess_options)
        own = [backend.provider for backend in self._options.backends]
        self._providers = tuple(dict.fromkeys((*own, _PROVIDER)))
        self._check_providers(providers)
        self._model_path = (
            os.fspath(path_or_bytes) if isinstance(path_or_bytes, str | os.PathLike) else ""
        )
        # Programs may change their folder while they have a session.
        self._place = os.path.abspath(self._model_path) if self._model_path else ""
        self._source = path_or_bytes
        if not isinstance(path_or_bytes, str | os.PathLike | bytes):
            from hagane.graph import as_it_is

            self._source = as_it_is(path_or_bytes)
        self._model: Opened | None = None
        self._lock = Lock()
        self._profile: Profile | None = None
        self._call: Caller | None = None
        key = key_of(self._place, self._options) if self._place else None
        self._key = key
        kept = None if key is None else find_kept(key)
        if kept is not None:
            self._take(kept)
            return
        model = self._open()
        if self._profile is None:
            self._call = model.entry()
        # A file may have been written to meanwhile.
        if key is not None and self._call is not None:
            found = model.kept()
            if found is not None and key_of(self._place, self._options) == key:
                keep(key, found, self._place)

    @property
    def _logger(self) -> logging.Logger:
        import logging

        return logging.getLogger("hagane.runtime")

    def _open(self) -> Opened:
        """Read the model and build it."""
        if is_native(self._options):
            from hagane.native.run.engine import begin_engine

            begin_engine(level_of(self._options))
        from hagane.runtime.opened import Opened

        if self._options.enable_profiling:
            from hagane.runtime.profile import Profile

            self._profile = Profile()
        try:
            model = Opened(self._source, self._options, self._logger, self._finds_beside)
        except OutOfMemory:
            raise
        except MemoryError as error:
            at = f" '{self._model_path}'" if self._model_path else ""
            raise OutOfMemory(
                f"there is no memory to open the model{at}: {_short(error)}"
            ) from error
        self._describe(
            model.arguments,
            model.fed,
            list(model.overridable),
            model.outputs,
            model.metadata,
            model.largest,
        )
        self._model = model
        if self._profile is not None:
            self._profile.opened()
        return model

    @property
    def _opened(self) -> Opened:
        """The model as it is built; of a session from the cache, when it is first needed."""
        with self._lock:
            if self._model is not None:
                return self._model
            if key_of(self._place, self._options) != self._key:
                raise InvalidModel(
                    f"'{self._model_path}' was changed after the session was made, and is "
                    "needed again: make a new session"
                )
            self._source = self._place
            return self._open()

    @property
    def _programs(self) -> Programs:
        """The programs of the model's runs."""
        return self._opened.programs

    def _describe(
        self,
        arguments: Mapping[str, NodeArg],
        fed: list[str],
        optional: list[str],
        outputs: list[NodeArg],
        metadata: ModelMetadata,
        largest: str,
    ) -> None:
        """Take over the facts of the model that the session is asked for."""
        self._input_args, self._fed, self._optional = arguments, fed, optional
        self._output_args, self._output_names = outputs, [arg.name for arg in outputs]
        self._metadata, self._largest = metadata, largest

    def _take(self, kept: Kept) -> None:
        """Become the session that is kept."""
        self._describe(
            {item.name: item for item in kept.arguments},
            [item.name for item in kept.inputs],
            list(kept.overridable),
            list(kept.outputs),
            kept.metadata,
            kept.largest,
        )
        from hagane.runtime.shapes.kept_runs import fit_of, repeats_of

        self._repeats = repeats_of(kept, self._finds_beside(self._fed))
        fit = fit_of(kept, self._repeats)
        names = self._fed, self._output_names
        likely = [(item.dtype, item.dims) for item in kept.inputs]
        self._call = make_entry(*names, fit, OrtValue, CPU, kept.extension, likely)

    def _finds_beside(self, fed: Sequence[str]) -> Callable[[], Beside | None]:
        """Return a function that finds a way to compile in other processes, if there is one."""
        given = self._place, self._source, self._options, self._key, tuple(fed)

        def find() -> Beside | None:
            from hagane.runtime.shapes.beside import beside_of

            return beside_of(*given)

        return find

    def _check_providers(
        self, providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None
    ) -> None:
        names = [name if isinstance(name, str) else name[0] for name in providers or ()]
        for name in names:
            if name not in self._providers:
                self._logger.warning(
                    "the execution provider '%s' is not available; the model runs on the CPU", name
                )

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that have to be fed."""
        return [self._input_args[name] for name in self._fed]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._output_args)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that may be fed as inputs too."""
        return [self._input_args[name] for name in self._optional]

    def get_modelmeta(self) -> ModelMetadata:
        """Return the model's description of itself."""
        return self._metadata

    def get_providers(self) -> list[str]:
        """Return the execution providers in use."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of the execution providers in use."""
        return {name: {} for name in self._providers}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Warn of providers that are not there; ``SessionOptions.backends`` chooses."""
        self._check_providers(providers)

    def get_session_options(self) -> SessionOptions:
        """Return the settings of this session."""
        return self._options

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model.

        Args:
            output_names: Which outputs to return, in which order; all if None or empty.
            input_feed: An array, or list of arrays, for each input by name.
            run_options: Settings of this run.

        Returns:
            An array for a tensor, a list for a sequence, a dict for a map, None for an absent
            optional; all owned by the caller.

        Raises:
            InvalidFeed: The feed does not fit the inputs.
            InvalidArgument: An output name is unknown.
            KernelError: A node failed; the message names it.
            OutOfMemory: There is no memory for the values of the model.
        """
        call = self._call  # a local name: a method's look-up would be tried before the attribute's
        try:
            if call is not None and run_options is None:
                found = call(input_feed, output_names)
                if found is not None:
                    return found
            return self._run(output_names, input_feed, run_options)
        except OutOfMemory:
            raise
        except MemoryError as error:
            raise _out_of_memory(error, self._largest) from error

    def _run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
    ) -> list[Any]:
        wanted = self._wanted(output_names)
        return self._opened.run(input_feed, wanted, self._observer(run_options))

    def memory_plan(self, shapes: Mapping[str, Sequence[Sizes]] | None = None) -> Memory:
        """Return the memory that runs will need, before the first one; compiles nothing.

        Args:
            shapes: The shape of each input whose declared one has sizes left open. A size may be a
                pair, the least and the largest of a range: the result is then the most that any
                shape in it takes. Of a range of more than 256 shapes some are tried, its ends among
                them.

        Raises:
            InvalidArgument: A size is left open.
        """
        return self._programs.memory_plan(shapes or {})

    def prepare(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Give inputs of these shapes kernels of their own, which runs of them then use.

        Without this a shape has them some time after its eighth run.

        Raises:
            InvalidArgument: A size is left open.
        """
        model = self._opened
        model.prepare(shapes)
        if self._call is not None:
            self._call = model.entry(ready=False)  # it asks anew for the program of each shape

    def profile(
        self,
        input_feed: Mapping[str, Any] | None = None,
        runs: int = 20,
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> ProfileReport:
        """Return the time of each kernel, its operations a second and its share of the peak.

        Args:
            input_feed: As for ``run``; random inputs if None.
            runs: How many runs to measure; the faster half counts.
            shapes: Those of the random inputs whose sizes the model leaves open.

        Raises:
            InvalidArgument: ``runs`` is not positive, or a size is left open.
        """
        from hagane.runtime.profile import measure
        from hagane.runtime.values.feeds import any_feed

        if runs < 1:
            raise InvalidArgument(f"profile: expected one run or more, got {runs}")
        model = self._opened
        if input_feed is None:
            given = {name: tuple(shape) for name, shape in (shapes or {}).items()}
            input_feed = any_feed(self.get_inputs(), given)
        return measure(model.runner(input_feed), self._peak_flops, runs)

    def _peak_flops(self) -> float:
        """Return the operations a second that the session's threads do at most, measured."""
        from hagane.native import peak_flops

        try:
            return peak_flops(level_of(self._options), threads_of(self._options))
        except NoCompiler:
            return float("inf")

    def _wanted(self, names: Sequence[str] | None) -> list[int]:
        if not names:
            return list(range(len(self._output_names)))
        unknown = [name for name in names if name not in self._output_names]
        if unknown:
            raise InvalidArgument(
                f"unknown output {', '.join(map(repr, unknown))}; the model has: "
                f"{', '.join(self._output_names)}"
            )
        return [self._output_names.index(name) for name in names]

    def _observer(self, options: RunOptions | None) -> Observer | None:
        if self._profile is None and options is None:
            return None
        if self._profile is not None:
            self._profile.start_run()
        return _Watch(self._profile, options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run the model on held values and return held values."""
        return [OrtValue(v) for v in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Return an empty binding for ``run_with_iobinding``."""
        from hagane.runtime.values.binding import IOBinding

        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run the model on bound inputs and write its bound outputs in place."""
        names = list(iobinding.outputs)
        if not names:
            raise InvalidArgument("bind at least one output before run_with_iobinding")
        if self._call is not None and run_options is None:
            targets = iobinding.targets()
            found = self._call(iobinding.inputs, names, targets)
            if found is not None:
                for name, result, target in zip(names, found, targets, strict=True):
                    if result is not target:
                        iobinding.fill(name, result)
                return
        results = self.run(names, iobinding.inputs, run_options)
        for name, result in zip(names, results, strict=True):
            iobinding.fill(name, result)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run the model in a thread and call ``callback(results, user_data, error)``."""

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as caught:  # handed to the caller as text
                results, error = [], str(caught)
            callback(results, user_data, error)

        import threading

        threading.Thread(target=work, name="hagane-run-async", daemon=True).start()

    def end_profiling(self) -> str:
        """Write the recorded times as a Chrome trace and return the file's name.

        Raises:
            InvalidArgument: The session was made without ``enable_profiling``.
        """
        if self._profile is None:
            raise InvalidArgument("set SessionOptions.enable_profiling before making the session")
        import json
        import time

        from hagane.machine.whole_files import write_whole

        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        path = f"{self._options.profile_file_prefix}_{stamp}.json"
        write_whole(path, json.dumps(self._profile.trace()))
        return path

    def __getstate__(self) -> Any:
        raise TypeError(
            "an InferenceSession cannot be pickled or copied: it holds code and threads of "
            "this process; send the model's path or bytes, and make a session there"
        )

    def get_profiling_start_time_ns(self) -> int:
        """Return when recording began, in nanoseconds of ``time.perf_counter_ns``."""
        return 0 if self._profile is None else self._profile.start_ns


def _out_of_memory(error: MemoryError, largest: str) -> OutOfMemory:
    """Return the error for values that could not be allocated."""
    at = f"; the largest of known size is that of {largest}" if largest else ""
    return OutOfMemory(f"there is no memory for the model's values: {_short(error)}{at}")


def _short(error: MemoryError) -> str:
    """Return what memory was asked for; Python's own errors don't tell."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return str(error) or f"Python had none for an object; the process took {used:,} bytes at most"


class _Watch:
    """Notes the times of a run's steps, and ends it when it is told to."""

    def __init__(self, profile: Profile | None, options: RunOptions | None):
        self._profile, self._options = profile, options
        self.stop = None if options is None else options.stop

    def __call__(
        self,
        part: Part,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        records: Sequence[Timed],
    ) -> None:
        if self._profile is not None:
            self._profile.record(part, inputs, outputs, records)
        if self._options is not None and self._options.terminate:
            raise KernelError("the run was ended by RunOptions.terminate")
