"""Random sequences of calls of ONNX Runtime's interface, in both.

Run: ``python -m tests.surface.random_calls FIRST LAST`` prints the first call of each sequence
whose result, or whose class of error, is another one with hagane in ONNX Runtime's place.

Left out, because hagane takes more: numbers in the place of scalars, values that hold texts, lists
for initializers. Because ONNX Runtime reads bytes of another type: arrays in another byte order,
updates of another type. Because it ends the process: outputs of a binding after a failed run.
"""

# ruff: noqa: B023, E501  (functions are called before the loop goes on; a call a line)

from __future__ import annotations

import argparse
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Both = tuple[Any, Any]
TYPES = ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "uint16",
         "uint32", "uint64", "int16"]  # fmt: skip
SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (0, 3), (1, 3), (2, 1, 3), (6,)]


def _model(nodes: Any, inputs: Any, outputs: Any, weights: Any = (), ir: int = 10) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir)
    return bytes(made.SerializeToString())


def models() -> dict[str, tuple[bytes, dict[str, tuple[str, Any]], list[str]]]:
    """Return models by name: their bytes, their inputs with types and shapes, their outputs."""
    F, I, S = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING  # noqa: E741
    node = helper.make_node
    ones = np.ones(3, np.float32)
    return {
        "add": (
            _model([node("Add", ["x", "w"], ["y"])], [("x", F, ["n", 3])], [("y", F, ["n", 3])],
                   [("w", ones)]),
            {"x": ("float32", (2, 3))}, ["y"]),
        "two": (
            _model([node("Add", ["a", "b"], ["s"]), node("Shape", ["a"], ["d"])],
                   [("a", F, ["n", "m"]), ("b", F, ["n", "m"])],
                   [("s", F, ["n", "m"]), ("d", I, [2])]),
            {"a": ("float32", (2, 3)), "b": ("float32", (2, 3))}, ["s", "d"]),
        "default": (
            _model([node("Mul", ["x", "k"], ["y"])], [("x", F, [2, 3]), ("k", F, [3])],
                   [("y", F, [2, 3])], [("k", ones * 2)]),
            {"x": ("float32", (2, 3)), "k": ("float32", (3,))}, ["y"]),
        "found": (
            _model([node("NonZero", ["x"], ["y"])], [("x", I, [None])], [("y", I, [1, "k"])]),
            {"x": ("int64", (3,))}, ["y"]),
        "texts": (
            _model([node("Identity", ["x"], ["y"])], [("x", S, ["n"])], [("y", S, ["n"])]),
            {"x": ("object", (3,))}, ["y"]),
        "list": (
            _model([node("SequenceConstruct", ["x", "x"], ["q"]),
                    node("SequenceAt", ["q", "i"], ["y"]), node("SequenceLength", ["q"], ["z"])],
                   [("x", F, ["n"]), ("i", I, [])], [("y", F, ["n"]), ("z", I, [])]),
            {"x": ("float32", (3,)), "i": ("int64", ())}, ["y", "z"]),
        "optional": (
            _model([node("Cast", ["x"], ["y"], to=TensorProto.INT32),
                    node("ReduceSum", ["x"], ["z"])],
                   [("x", F, ["n", "m"])], [("y", TensorProto.INT32, ["n", "m"]), ("z", F, None)]),
            {"x": ("float32", (3, 2))}, ["y", "z"]),
        "half": (
            _model([node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT16, ["n"])],
                   [("y", TensorProto.FLOAT16, ["n"])]),
            {"x": ("float16", (6,))}, ["y"]),
        "truth": (
            _model([node("Not", ["x"], ["y"])], [("x", TensorProto.BOOL, [2, 3])],
                   [("y", TensorProto.BOOL, [2, 3])]),
            {"x": ("bool", (2, 3))}, ["y"]),
    }  # fmt: skip


MODELS = models()


def shown(value: Any) -> Any:
    """Return a result in a form that compares, without the package it comes from."""
    if isinstance(value, np.ndarray):
        flat = [shown(each) for each in value.ravel().tolist()]
        return "array", str(value.dtype), value.shape, flat
    if isinstance(value, np.generic):
        return "scalar", str(value.dtype), value.item()
    if isinstance(value, float):
        return "nan" if value != value else round(value, 5)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(each) for each in value]
    if isinstance(value, dict):
        return "dict", sorted((str(key), shown(each)) for key, each in value.items())
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return value
    if hasattr(value, "has_value"):  # an OrtValue
        return "value", value.data_type(), value.shape() if value.is_tensor() else None
    return type(value).__name__


class Calls:
    """One sequence: what was made so far, in both packages."""

    def __init__(self, seed: int, theirs: Any, ours: Any):
        self.draw = random.Random(seed)
        self.packages = theirs, ours
        self.name = self.draw.choice(list(MODELS))
        self.bytes, self.inputs, self.outputs = MODELS[self.name]
        self.said: list[str] = []
        self.options: Both = (None, None)
        self.session: Both | None = None
        self.binding: Both | None = None
        self.values: list[Both] = []
        self.runs: list[Both] = []

    def often(self, share: float) -> bool:
        return self.draw.random() < share

    def both(self, said: str, call: Callable[[Any, int], Any]) -> Both | None:
        """Do the same in both packages; remember it; return both results if there are any."""
        self.said.append(said)
        found: list[Any] = []
        for place, package in enumerate(self.packages):
            try:
                found.append((True, call(package, place)))
            except Exception as error:
                found.append((False, error))
        (fine, theirs), (also, ours) = found
        if fine and also:
            if shown(theirs) != shown(ours):
                raise Differs(f"theirs {shown(theirs)}, ours {shown(ours)}")
            return theirs, ours
        if fine or also:
            raise Differs(f"theirs {_told(theirs)}, ours {_told(ours)}")
        wanted = type(theirs).__name__
        if wanted not in [each.__name__ for each in type(ours).__mro__]:
            raise Differs(f"theirs {_told(theirs)}, ours {_told(ours)}")
        return None

    # Values.

    def array(self, kind: str | None = None, shape: Any = None) -> Any:
        """Return an array, usually of a type and shape."""
        if shape == ():
            return np.array(self.draw.randint(0, 2), kind)
        if kind != "object":  # ONNX Runtime makes texts of numbers
            kind = self.draw.choice(TYPES) if kind is None or self.often(0.1) else kind
        shape = self.draw.choice(SHAPES) if shape is None or self.often(0.15) else shape
        size = int(np.prod(shape))
        if kind == "object":
            return np.array(
                [self.draw.choice(["a", "", "é"]) for _ in range(size)], object
            ).reshape(shape)
        values = np.array([self.draw.randint(0, 4) for _ in range(size)], kind).reshape(shape)
        way = self.draw.randrange(14)
        if way == 1 and values.ndim:
            return np.repeat(values, 2, -1)[..., ::2]
        if way == 2:
            return np.asfortranarray(values)
        if way == 3:
            values.flags.writeable = False
        return values

    def feed(self) -> dict[Any, Any]:
        """Return a feed of the model, with a mistake here and there."""
        found: dict[Any, Any] = {}
        for name, (kind, shape) in self.inputs.items():
            if self.often(0.05) or (name == "k" and self.often(0.5)):
                continue
            value = self.array(kind, shape)
            way = self.draw.randrange(20)
            found[name] = (
                value.tolist() if way == 0 and shape else None if way == 1 and self.often(0.3)
                else value.ravel()[0] if way == 2 and value.size and shape else value
            )  # fmt: skip
        if "k" in found and isinstance(found["k"], list):
            del found["k"]  # taken by hagane alone
        if self.often(0.05):
            found[self.draw.choice(["q", "", "X", 3])] = self.array()
        return found

    def wanted(self) -> Any:
        """Return names of outputs."""
        way = self.draw.randrange(12)
        if way < 5:
            return None
        if way < 9:
            return [self.draw.choice(self.outputs) for _ in range(self.draw.randint(1, 3))]
        return self.draw.choice([[], ["q"], [*self.outputs, "q"], tuple(self.outputs), [""], [None],
                                 list(self.inputs), [3]])  # fmt: skip

    def value(self) -> tuple[str, Both] | None:
        """Return a held value."""
        if not self.values:
            return None
        number = self.draw.randrange(len(self.values))
        return f"v{number}", self.values[number]

    # Calls.

    def make_options(self) -> None:
        made = self.both("SessionOptions()", lambda ort, _: ort.SessionOptions())
        assert made is not None
        self.options = made
        for _ in range(self.draw.randint(0, 3)):
            choices: list[tuple[str, list[Any]]] = [
                ("intra_op_num_threads", [0, 1, 2, -1, "1", 1.5, None, True]),
                ("inter_op_num_threads", [0, 1, -3, np.int64(1)]),
                ("enable_mem_pattern", [True, False, 0, None, "x"]),
                ("log_severity_level", [3, 4, 0.5, "3"]),
                ("logid", ["x", 3, None]),
                ("enable_profiling", [False, 0]),
                ("optimized_model_filepath", ["", 3]),
                ("graph_optimization_level", [99, 0, "all", None]),
                ("execution_mode", [0, 1, None]),
                ("no_such_option", [1]),
            ]  # fmt: skip
            name, values = self.draw.choice(choices)
            value = self.draw.choice(values)
            self.both(f"options.{name} = {value!r}",
                      lambda _, n: setattr(made[n], name, value))  # fmt: skip
            if name != "graph_optimization_level" and name != "execution_mode":
                self.both(f"options.{name}", lambda _, n: getattr(made[n], name))
        if self.often(0.3):
            key, value = self.draw.choice([("a", "b"), ("session.use_env_allocators", "1"), ("a", 1),
                                           ("", ""), ("session.disable_prepacking", "1")])  # fmt: skip
            self.both(f"add_session_config_entry({key!r}, {value!r})",
                      lambda _, n: made[n].add_session_config_entry(key, value))  # fmt: skip
            self.both(f"get_session_config_entry({key!r})",
                      lambda _, n: made[n].get_session_config_entry(key))  # fmt: skip
        if self.often(0.2):
            name, size = self.draw.choice(["n", "m", "q"]), self.draw.choice([2, 3, 1, 5])
            self.both(f"add_free_dimension_override_by_name({name!r}, {size})",
                      lambda _, n: made[n].add_free_dimension_override_by_name(name, size))  # fmt: skip
        if self.often(0.2):
            array = self.array("float32", (3,))
            name = self.draw.choice(["w", "k", "x", "q"])
            held = self.both(
                f"w = {_a(array)}", lambda ort, _: ort.OrtValue.ortvalue_from_numpy(array)
            )
            if held:
                self.values.append(held)
                self.both(f"add_initializer({name!r}, w)",
                          lambda _, n: made[n].add_initializer(name, held[n]))  # fmt: skip

    def make_session(self) -> None:
        options = self.options
        self.session = self.both(
            f"InferenceSession({self.name})",
            lambda ort, n: ort.InferenceSession(
                self.bytes, options[n], providers=["CPUExecutionProvider"]
            ),
        )
        self.binding = None

    def ask_session(self) -> None:
        session = self.session
        assert session is not None
        what = self.draw.choice(["get_inputs", "get_outputs", "get_overridable_initializers"])

        def told(_: Any, n: int) -> Any:
            return [(each.name, each.shape, each.type) for each in getattr(session[n], what)()]

        self.both(f"{what}()", told)
        if self.often(0.2):

            def meta(_: Any, n: int) -> Any:
                one = session[n].get_modelmeta()
                return (one.producer_name, one.graph_name, one.domain, one.description, one.version,
                        one.custom_metadata_map, one.graph_description)  # fmt: skip

            self.both("get_modelmeta()", meta)

    def run(self) -> None:
        session, names, feed = self.session, self.wanted(), self.feed()
        assert session is not None
        options = (
            self.both("RunOptions()", lambda ort, _: ort.RunOptions()) if self.often(0.2) else None
        )
        if options and self.often(0.3):
            name, value = self.draw.choice([("terminate", True), ("terminate", 1), ("logid", "x"),
                                            ("log_severity_level", "x"), ("what", 1),
                                            ("only_execute_path_to_fetches", True)])  # fmt: skip
            self.both(
                f"run_options.{name} = {value!r}", lambda _, n: setattr(options[n], name, value)
            )
        shown_feed = {name: _a(value) for name, value in feed.items()}
        made = self.both(
            f"run({names}, {shown_feed})",
            lambda _, n: session[n].run(names, dict(feed), options[n] if options else None),
        )
        if made:
            self.runs.append(made)

    def run_values(self) -> None:
        session, names = self.session, self.wanted()
        assert session is not None
        feed = {}
        for name in self.inputs:
            held = self.value()
            if held and self.often(0.9):
                feed[name] = held
        said = {name: held[0] for name, held in feed.items()}
        made = self.both(
            f"run_with_ort_values({names}, {said})",
            lambda _, n: session[n].run_with_ort_values(
                names, {k: v[1][n] for k, v in feed.items()}
            ),
        )
        if made:
            for number in range(len(made[0])):
                self.values.append((made[0][number], made[1][number]))

    def make_value(self) -> None:
        kind, shape = self.draw.choice(list(self.inputs.values()))
        if kind == "object":
            return  # values of texts are hagane's alone
        if self.often(0.7):
            array = (
                self.array(kind, shape).copy()
                if self.often(0.9)
                else self.draw.choice([3, [1], "x", None])
            )
            made = self.both(f"v{len(self.values)} = ortvalue_from_numpy({_a(array)})",
                             lambda ort, _: ort.OrtValue.ortvalue_from_numpy(array))  # fmt: skip
        else:
            kind_ = self.draw.choice([np.float32, np.int64, np.dtype("float32"), 1, 7, "float32", float,
                                      np.float16, bool, 99, None])  # fmt: skip
            size = self.draw.choice([*SHAPES, [2, 3], [-1], ["n"], 3, None, np.array([2, 3])])
            made = self.both(f"v{len(self.values)} = ortvalue_from_shape_and_type({size!r}, {kind_!r})",
                             lambda ort, _: ort.OrtValue.ortvalue_from_shape_and_type(size, kind_))  # fmt: skip
            if made:
                array = np.zeros(made[0].shape(), made[0].numpy().dtype)
                self.both("update_inplace(zeros)", lambda _, n: made[n].update_inplace(array))
        if made:
            self.values.append(made)

    def ask_value(self) -> None:
        held = self.value()
        if held is None:
            return
        said, both = held
        what = self.draw.choice(["shape", "data_type", "element_type", "is_tensor", "has_value", "numpy",
                                 "is_sparse_tensor", "is_tensor_sequence", "device_name",
                                 "tensor_size_in_bytes"])  # fmt: skip
        self.both(f"{said}.{what}()", lambda _, n: getattr(both[n], what)())
        if self.often(0.3) and both[0].is_tensor():
            kind = str(both[0].numpy().dtype)
            # Of another type ONNX Runtime copies bytes; it writes into read-only memory, too.
            array = np.full(both[0].shape(), self.draw.randint(0, 3), kind)
            self.both(
                f"{said}.update_inplace({_a(array)})", lambda _, n: both[n].update_inplace(array)
            )
            self.both(f"{said}.numpy()", lambda _, n: both[n].numpy())
        elif self.often(0.1):
            other = self.value()
            assert other is not None
            if other[1][0].data_type() == both[0].data_type():
                self.both(f"{said}.update_inplace({other[0]})",
                          lambda _, n: both[n].update_inplace(other[1][n]))  # fmt: skip
            self.both(f"{said}.numpy()", lambda _, n: both[n].numpy())

    def bind(self) -> None:
        session = self.session
        assert session is not None
        if self.binding is None or self.often(0.1):
            self.binding = self.both("b = io_binding()", lambda _, n: session[n].io_binding())
        binding = self.binding
        assert binding is not None
        name, (kind, shape) = self.draw.choice(list(self.inputs.items()))
        out = self.draw.choice([*self.outputs, *self.outputs, "q", name])
        name = name if self.often(0.93) else "q"
        way = self.draw.randrange(12)
        if way < 3 and kind != "object" and name != "k":
            array = self.array(kind, shape)
            self.both(f"b.bind_cpu_input({name!r}, {_a(array)})",
                      lambda _, n: binding[n].bind_cpu_input(name, array))  # fmt: skip
        elif way < 5 and (held := self.value()):
            said, pair = held
            self.both(f"b.bind_ortvalue_input({name!r}, {said})",
                      lambda _, n: binding[n].bind_ortvalue_input(name, pair[n]))  # fmt: skip
        elif way < 8:
            self.both(f"b.bind_output({out!r})", lambda _, n: binding[n].bind_output(out))
        elif way < 10 and (held := self.value()):
            said, pair = held
            self.both(f"b.bind_ortvalue_output({out!r}, {said})",
                      lambda _, n: binding[n].bind_ortvalue_output(out, pair[n]))  # fmt: skip
        elif way < 12:
            what = self.draw.choice(["clear_binding_inputs", "clear_binding_outputs"])
            self.both(f"b.{what}()", lambda _, n: getattr(binding[n], what)())

    def run_binding(self) -> None:
        session, binding = self.session, self.binding
        assert session is not None
        if binding is None:
            return
        # ONNX Runtime ends the process where outputs are asked for after a run that failed.
        if not self.both(
            "run_with_iobinding(b)", lambda _, n: session[n].run_with_iobinding(binding[n])
        ):
            self.binding = None
            return
        self.both("b.copy_outputs_to_cpu()", lambda _, n: binding[n].copy_outputs_to_cpu())
        self.both(
            "b.get_outputs()",
            lambda _, n: [
                each.numpy() if each.is_tensor() else each.data_type()
                for each in binding[n].get_outputs()
            ],
        )
        for number, both in enumerate(self.values):
            if both[0].is_tensor():
                self.both(f"v{number}.numpy()", lambda _, n: both[n].numpy())

    def sparse(self) -> None:
        shape = self.draw.choice([[3, 3], [2, 4], [4]])
        count = self.draw.randint(0, 4)
        kind = self.draw.choice(["float32", "int64", "float64"])
        values = np.array([self.draw.randint(0, 4) for _ in range(count)], kind)
        flat = sorted(self.draw.sample(range(int(np.prod(shape))), min(count, int(np.prod(shape)))))
        places = np.array(flat, np.int64)
        if self.often(0.4) and len(shape) == 2:
            places = np.stack(np.unravel_index(places, shape), 1).astype(np.int64)
        if self.often(0.1):
            places = places.astype(np.int32)

        def made(ort: Any, _: int) -> Any:
            device = ort.OrtDevice.make("cpu", 0)
            return ort.SparseTensor.sparse_coo_from_numpy(shape, values, places, device)

        both = self.both(f"s = sparse_coo_from_numpy({shape}, {_a(values)}, {_a(places)})", made)
        if both is None:
            return
        for what in ("values", "dense_shape", "data_type", "device_name"):
            self.both(f"s.{what}()", lambda _, n: getattr(both[n], what)())
        self.both("s.format()", lambda _, n: str(both[n].format()).split(".")[-1])
        self.both("s.as_coo_view().indices()", lambda _, n: both[n].as_coo_view().indices())
        self.both("s.as_csrc_view().inner()", lambda _, n: both[n].as_csrc_view().inner())
        held = self.both("OrtValue.ort_value_from_sparse_tensor(s)",
                         lambda ort, n: ort.OrtValue.ort_value_from_sparse_tensor(both[n]))  # fmt: skip
        if held:
            for what in ("is_sparse_tensor", "is_tensor", "data_type", "shape", "numpy"):
                self.both(f"value.{what}()", lambda _, n: getattr(held[n], what)())

    def go(self, calls: int) -> None:
        """Make calls until there is a difference."""
        if self.often(0.4):
            self.make_options()
        self.make_session()
        for _ in range(calls):
            way = self.draw.randrange(24)
            if self.session is None:
                if way < 4:
                    self.make_value()
                elif way < 8:
                    self.ask_value()
                elif way < 9:
                    self.sparse()
                continue
            if way < 8:
                self.run()
            elif way < 11:
                self.make_value()
            elif way < 13:
                self.ask_value()
            elif way < 15:
                self.run_values()
            elif way < 20:
                self.bind()
            elif way < 22:
                self.run_binding()
            elif way < 23:
                self.ask_session()
            else:
                self.sparse()


class Differs(Exception):
    """The packages differ."""


def _told(value: Any) -> str:
    if isinstance(value, Exception):
        return f"{[each.__name__ for each in type(value).__mro__][:4]}: {str(value)[:200]}"
    return str(shown(value))[:200]


def _a(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"{type(value).__name__} {value!r}"[:60]
    return f"{value.dtype}{list(value.shape)}{'' if value.flags.c_contiguous else ' strided'}"


def difference(seed: int, theirs: Any, ours: Any, calls: int = 20) -> str | None:
    """Return the first difference of a sequence, None if there is none."""
    sequence = Calls(seed, theirs, ours)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sequence.go(calls)
    except Differs as error:
        return f"{error}\n  " + "\n  ".join(sequence.said[-8:])
    return None


def main() -> None:
    import onnxruntime

    import hagane.onnxruntime

    onnxruntime.set_default_logger_severity(4)
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    arguments = parser.parse_args()
    bad = 0
    for seed in range(arguments.first, arguments.last):
        child = os.fork()  # ONNX Runtime ends some sequences, and the process, itself
        if not child:
            found = difference(seed, onnxruntime, hagane.onnxruntime)
            if found:
                print(f"--- {seed} {found}", flush=True)
            os._exit(bool(found))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        bad += code == 1
        if code < 0:
            print(f"--- {seed} ended by signal {-code}", flush=True)
    print(f"{bad} differences")


if __name__ == "__main__":
    main()
