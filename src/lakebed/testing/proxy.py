"""A proxy before PostgreSQL that loses the answer to a COMMIT, in the three ways a network can.

    swallow   client ── COMMIT ──▶ proxy ── COMMIT ──▶ server      it is committed,
              client ✂             proxy ◀── done ───  server      and nobody says so
    cut       client ── COMMIT ──▶ proxy ✂                         it never arrives
    delay     client ── COMMIT ──▶ proxy … ── COMMIT ──▶ server    it arrives after the client
              client ✂                                             has given up, when released

The client sees the same in all three: a connection that ends after the COMMIT was sent.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Self

_HOST = "127.0.0.1"
_CHUNK_SIZE_BYTES = 1 << 16
_WAIT_S_MAX = 30.0
_SSL_REQUEST, _GSS_REQUEST = 80_877_103, 80_877_104
_QUERY, _PARSE = b"Q", b"P"


class Fault(StrEnum):
    """What happens to the next COMMIT."""

    SWALLOW = "swallow"
    CUT = "cut"
    DELAY = "delay"


class PostgresProxy:
    """Listens on a port of its own and passes everything on to `port`, until a fault is armed."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((_HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._armed: Fault | None = None
        self._fired_count = 0
        self._released = threading.Event()
        self._landed = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        for each in (self._listener, *self._sockets):
            _end(each)
        for thread in self._threads:
            thread.join(_WAIT_S_MAX)
        for each in (self._listener, *self._sockets):
            each.close()

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[None]:
        """Do this to the next COMMIT; a block in which none came is an error of the test."""
        self._released.clear()
        self._landed.clear()
        with self._lock:
            self._armed, before_count = fault, self._fired_count
        yield
        with self._lock:
            self._armed = None
            assert self._fired_count == before_count + 1, f"no COMMIT came by to {fault}"

    def release(self) -> None:
        """Let a delayed COMMIT go, and wait until the server has answered it."""
        self._released.set()
        assert self._landed.wait(_WAIT_S_MAX), "the server did not answer the delayed COMMIT"

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # Closed: the block is over.
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((_HOST, self._target))
                self._sockets += [client, server]
                muted = threading.Event()
                self._spawn(self._pump_requests, client, server, muted)
                self._spawn(self._pump_answers, client, server, muted)

    def _pump_requests(
        self, client: socket.socket, server: socket.socket, muted: threading.Event
    ) -> None:
        try:
            for message in _messages(client):
                fault = self._take() if _is_commit(message) else None
                if fault is None:
                    server.sendall(message)
                    continue
                muted.set()
                if fault is not Fault.SWALLOW:
                    _end(client)
                if fault is Fault.CUT:
                    break
                if fault is Fault.DELAY:
                    self._released.wait(_WAIT_S_MAX)
                server.sendall(message)
                return  # The other pump ends it when the answer is there.
        except OSError:
            pass
        _end(server)

    def _pump_answers(
        self, client: socket.socket, server: socket.socket, muted: threading.Event
    ) -> None:
        try:
            while data := server.recv(_CHUNK_SIZE_BYTES):
                if muted.is_set():
                    self._landed.set()
                    break
                client.sendall(data)
        except OSError:
            pass
        _end(client)
        _end(server)

    def _take(self) -> Fault | None:
        with self._lock:
            fault, self._armed = self._armed, None
            self._fired_count += fault is not None
            return fault


def _messages(client: socket.socket) -> Iterator[bytes]:
    """Each message of the client, whole; those before the session starts have no type."""
    reader = client.makefile("rb")
    with reader:
        while head := reader.read(4):
            (size,) = struct.unpack("!I", head)
            body = reader.read(size - 4)
            yield head + body
            if struct.unpack("!I", body[:4])[0] not in (_SSL_REQUEST, _GSS_REQUEST):
                break  # That was the startup message.
        while kind := reader.read(1):
            head = reader.read(4)
            (size,) = struct.unpack("!I", head)
            yield kind + head + reader.read(size - 4)


def _is_commit(message: bytes) -> bool:
    kind, body = message[:1], message[5:]
    text = body if kind == _QUERY else body.partition(b"\0")[2] if kind == _PARSE else b""
    return text.partition(b"\0")[0].strip().upper() == b"COMMIT"


def _end(each: socket.socket) -> None:
    """End a connection so that whoever waits on it wakes up; closing comes later."""
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
