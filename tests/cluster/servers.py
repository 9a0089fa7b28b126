"""HTTP servers of tests: any, and one with fixed answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any

Asked = list[tuple[str, dict[str, Any]]]


@contextmanager
def serving(server: HTTPServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Recorded(BaseHTTPRequestHandler):
    """An extender in another hand: fixed answers, and what was asked."""

    answers: dict[str, Any]
    asked: Asked

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rpartition("/")[2]
        self.asked.append((verb, body))
        answer = json.dumps(self.answers[verb]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def answering(answers: dict[str, Any]) -> Iterator[tuple[str, Asked]]:
    """Serve fixed answers by verb; yields the address and what has been asked."""
    asked: Asked = []
    handler = type("Handler", (Recorded,), {"answers": answers, "asked": asked})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as url:
        yield url + "/ext", asked
