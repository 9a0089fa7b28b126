"""Sessions beside threads, event loops and interpreters, and at the end of a process."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hagane

SIZE = 64


def product() -> bytes:
    """Return a model of two products with the identity."""
    one = onnx.numpy_helper.from_array(np.eye(SIZE, dtype=np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("MatMul", ["y", "w"], ["z"]),
    ]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", SIZE])] for name in "xz"
    )
    graph = helper.make_graph(nodes, "product", inputs, outputs, [one])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(proto.SerializeToString())


X = np.arange(8 * SIZE, dtype=np.float32).reshape(8, SIZE)


@pytest.fixture
def session() -> hagane.InferenceSession:
    return hagane.InferenceSession(product())


def in_process(text: str) -> subprocess.CompletedProcess[str]:
    begin = "from tests.surface.test_life import X, product\nimport hagane, threading\n"
    program = begin + textwrap.dedent(text)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_process_ends_while_threads_run_a_session() -> None:
    done = in_process(
        """
        session = hagane.InferenceSession(product())
        begun = threading.Semaphore(0)

        def work():
            while True:
                session.run(None, {"x": X})
                begun.release()

        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(6):
            begun.acquire()
        print("leaving")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_a_session_lives_as_long_as_a_run_of_it() -> None:
    begun, found = threading.Event(), []

    def work(own: hagane.InferenceSession) -> None:
        for _ in range(20):
            found.append(own.run(None, {"x": X})[0])
            begun.set()

    own = hagane.InferenceSession(product())
    kept = weakref.ref(own)
    thread = threading.Thread(target=work, args=(own,))
    thread.start()
    begun.wait()
    del own
    thread.join()
    assert len(found) == 20
    assert all(np.array_equal(each, X) for each in found)
    del thread
    gc.collect()
    assert kept() is None


def test_runs_are_awaited_together(session: hagane.InferenceSession) -> None:
    async def all_of() -> list[np.ndarray]:
        runs = (asyncio.to_thread(session.run, None, {"x": X * k}) for k in range(12))
        return [result[0] for result in await asyncio.gather(*runs)]

    for k, result in enumerate(asyncio.run(all_of())):
        assert np.array_equal(result, X * k)


def test_a_cancelled_await_leaves_the_session_as_it_was(session: hagane.InferenceSession) -> None:
    async def cancelled() -> bool:
        task = asyncio.create_task(asyncio.to_thread(session.run, None, {"x": X}))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    assert asyncio.run(cancelled())
    assert np.array_equal(session.run(None, {"x": X})[0], X)


def test_another_interpreter_of_the_process_is_refused_or_has_its_own_sessions() -> None:
    # NumPy 2 says that it cannot be loaded twice in a process.
    done = in_process(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        session = hagane.InferenceSession(product())
        text = (
            "try:\\n"
            "    from tests.surface.test_life import X, product\\n"
            "    import hagane\\n"
            "    found = hagane.InferenceSession(product()).run(None, {'x': X})[0]\\n"
            "    print('same', bool((found == X).all()))\\n"
            "except ImportError:\\n"
            "    print('refused')\\n"
        )
        interpreters.run_string(interpreters.create(), text)
        print(bool((session.run(None, {"x": X})[0] == X).all()))
        """
    )
    assert done.stdout.splitlines() in (["refused", "True"], ["same True", "True"]), done.stderr
