"""An S3 server of a few lines whose answers to puts are scripted: what no real one does on cue."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a-very-secret-key"


class ScriptedS3(ThreadingHTTPServer):
    """Each put takes the next word of `script`; after the last, it behaves.

    A number is the status it answers with, and nothing is stored. `lost` stores the object and
    drops the connection; `stored-500` stores it and answers 500; `taken` lets another writer
    come first and drops the connection.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[int | str] = []
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.read_status = 0

    @property
    def options(self) -> dict[str, str]:
        return {
            "aws_endpoint_url": f"http://127.0.0.1:{self.server_port}",
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": "AKIA-SCRIPTED",
            "aws_secret_access_key": SECRET,
            "timeout": "2s",
        }


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedS3
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        server = self.server
        server.requests.append(f"PUT {self.path}")
        step: int | str = server.script.pop(0) if server.script else "ok"
        is_taken = self.path in server.objects
        if isinstance(step, int):
            self._answer(step, b"<Error><Code>Scripted</Code></Error>")
            return
        if not is_taken:
            server.objects[self.path] = b"another writer's" if step == "taken" else content
        if step in ("lost", "taken"):
            self.close_connection = True
            return
        self._answer(500 if step == "stored-500" else 412 if is_taken else 200)

    def do_GET(self) -> None:
        self.server.requests.append(f"GET {self.path} {self.headers.get('range', '')}".strip())
        found = self.server.objects.get(self.path)
        if self.server.read_status:
            body = f"<Error>{SECRET} AKIA-SCRIPTED</Error>".encode()
            self._answer(self.server.read_status, body)
        elif found is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif "range" in self.headers:
            start, _, end = self.headers["range"].removeprefix("bytes=").partition("-")
            first = int(start) if start else max(0, len(found) - int(end))
            last = int(end) if start and end else len(found) - 1
            span = f"bytes {first}-{last}/{len(found)}"
            self._answer(206, found[first : last + 1], span)
        else:
            self._answer(200, found)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes = b"", span: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"x"')
        self.send_header("last-modified", "Wed, 18 Nov 2026 09:00:00 GMT")
        if span:
            self.send_header("content-range", span)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def scripted_s3() -> Iterator[ScriptedS3]:
    with ScriptedS3() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
