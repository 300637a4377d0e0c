"""A real Spark cluster and a real Connect server on this machine, from the installed pyspark.

    with SparkCluster() as cluster:          a master and two workers, each its own JVM
        lakebed.spark.session(cluster.url, **cluster.settings)
    with ConnectServer() as server:          a driver that listens for clients
        lakebed.spark.session(server.url)

All listen on 127.0.0.1, on ports that the kernel chose, behind a secret drawn for the run. Each
server is the child of a guard, which ends it together with its executors when we leave, and also
when we are killed: a pipe closes either way.
"""

import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lakebed.clock import SystemClock
from lakebed.errors import RequestError, UnavailableError
from lakebed.spark.java import ensure_java

START_DURATION_MS_MAX = 120_000
STOP_DURATION_MS_MAX = 15_000
_HOST = "127.0.0.1"
_LOG_LENGTH_MAX = 4_000
_CLOCK = SystemClock()
# It ends with its group; pyspark's daemons have groups of their own and end at their input's end.
_GUARD = '{ "$@" </dev/null; kill -9 0; } & read -r _; kill -9 0'
# Short-lived JVMs on few cores: one compiler, one collector, no more memory than is needed.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as the kernel shows it."""

    pid: int
    session: int
    command: str


class Guarded:
    """A command and all that it starts, in a session of their own, ended together for certain."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> None:
        self._log = log
        with log.open("ab") as output:
            self._guard = subprocess.Popen(  # noqa: S603 - arguments are our own
                ["/bin/bash", "-c", _GUARD, "guard", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=log.parent,
                env=dict(env),
                start_new_session=True,
            )

    def processes(self) -> list[Process]:
        """Those that are alive, without the guard."""
        session = self._guard.pid
        return [each for each in living() if each.session == session and each.pid != session]

    def wait_for(self, pattern: str, count: int = 1) -> str:
        """Wait until the log has `pattern` so often; returns its first group, or all of it.

        Raises:
            UnavailableError: the command has ended, or takes too long.
        """
        deadline_ms = _CLOCK.monotonic_ms() + START_DURATION_MS_MAX
        while True:
            has_ended = self._guard.poll() is not None
            text = self._log.read_text(errors="replace")
            found = list(re.finditer(pattern, text))
            if len(found) >= count:
                return found[0][found[0].re.groups and 1]
            if has_ended or _CLOCK.monotonic_ms() > deadline_ms:
                state = "ended" if has_ended else "is not ready"
                raise UnavailableError(f"Spark {state}; its log:\n{text[-_LOG_LENGTH_MAX:]}")
            _CLOCK.sleep_ms(50)

    def wait(self, duration_s_max: float) -> None:
        """Wait until the command has ended by itself, or the time is up."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(duration_s_max)

    def stop(self) -> None:
        """End all of it, and wait until it has ended."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        deadline_ms = _CLOCK.monotonic_ms() + STOP_DURATION_MS_MAX
        while left := self.processes():
            if _CLOCK.monotonic_ms() > deadline_ms:
                for each in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each.pid, signal.SIGKILL)
            _CLOCK.sleep_ms(20)
        # Only now: until it is waited for, nobody else can get the number of its session.
        self._guard.wait()


def living() -> Iterator[Process]:
    """All processes that have not ended."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name, in brackets, may hold anything; what comes after it is split by spaces.
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if fields[0] != "Z":
            yield Process(pid=int(entry.name), session=int(fields[3]), command=command)


class _Servers:
    """Some guarded servers that share a directory and a secret, for as long as a block lasts."""

    def __init__(self) -> None:
        self.secret = secrets.token_hex(16)
        self._directory = Path()
        self._guarded: list[Guarded] = []

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="lakebed-spark-"))
        with contextlib.ExitStack() as undo:  # an interrupt must not leave a server behind
            undo.callback(self._stop)
            self._start()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def processes(self) -> list[Process]:
        """All that run for it, executors and their Python workers too."""
        return [each for guarded in self._guarded for each in guarded.processes()]

    def log(self) -> str:
        """The end of what each server has said."""
        logs = sorted(self._directory.glob("*.log"))
        return "\n".join(
            f"== {log.name}\n{log.read_text(errors='replace')[-_LOG_LENGTH_MAX:]}" for log in logs
        )

    def _start(self) -> None:
        raise NotImplementedError

    def _run(self, name: str, program: str, arguments: Sequence[str], **env: str) -> Guarded:
        home = spark_home()
        command = [str(home / "bin" / program), *arguments]
        guarded = Guarded(
            command, log=self._directory / f"{name}.log", env=server_environment(home, env)
        )
        self._guarded.append(guarded)
        return guarded

    def _settings_file(self, settings: Mapping[str, str]) -> str:
        """Settings where other users cannot read them: arguments can be seen by everybody."""
        file = self._directory / "spark.conf"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        return str(file)

    def _stop(self) -> None:
        while self._guarded:
            self._guarded.pop().stop()
        shutil.rmtree(self._directory, ignore_errors=True)


class SparkCluster(_Servers):
    """A standalone cluster: a master, and workers that each have one core and 1 GB.

    `hosts` are the workers' names of this machine: Spark runs a copy of a task only elsewhere.
    """

    def __init__(self, hosts: Sequence[str] = (_HOST, _HOST)) -> None:
        super().__init__()
        self.url = ""
        self._hosts = hosts

    @property
    def settings(self) -> dict[str, str]:
        """What a driver needs to be let in, and to be cheap."""
        return self._secrets | {
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.cores": "1",
            "spark.executor.memory": "768m",
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }

    @property
    def _secrets(self) -> dict[str, str]:
        return {"spark.authenticate": "true", "spark.authenticate.secret": self.secret}

    def executors(self) -> list[Process]:
        """The executors that run now."""
        return [each for each in self.processes() if _EXECUTOR in each.command]

    def _start(self) -> None:
        file = self._settings_file(self._secrets | {"spark.master.rest.enabled": "false"})
        listen = ["--port", "0", "--webui-port", "0", "--properties-file", file]
        package = "org.apache.spark.deploy"
        main = [f"{package}.master.Master", "--host", _HOST, *listen]
        master = self._run("master", "spark-class", main)
        self.url = master.wait_for(r"Starting Spark master at (spark://[0-9.:]+)")
        for number, host in enumerate(self._hosts):
            place = ["-c", "1", "-m", "1g", "-d", str(self._directory / f"worker-{number}")]
            worker = [f"{package}.worker.Worker", "--host", host, *place, *listen, self.url]
            self._run(f"worker-{number}", "spark-class", worker, SPARK_LOCAL_IP=host)
        master.wait_for("Registering worker ", count=len(self._hosts))


class ConnectServer(_Servers):
    """A Spark Connect server on two cores.

    Clients need `token` in `SPARK_CONNECT_AUTHENTICATE_TOKEN`.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.url = ""
        self._environment = {"SPARK_DAEMON_MEMORY": "1g", **(environment or {})}

    @property
    def token(self) -> str:
        """What a client shows to be let in."""
        return self.secret

    def _start(self) -> None:
        file = self._settings_file(
            {
                "spark.master": "local[2]",
                "spark.driver.host": _HOST,
                "spark.driver.bindAddress": _HOST,
                "spark.connect.grpc.binding.address": _HOST,
                "spark.connect.grpc.binding.port": "0",
                "spark.connect.authenticate.token": self.token,
                "spark.local.dir": str(self._directory / "local"),
                "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.session.timeZone": "UTC",
                "spark.ui.enabled": "false",
            }
        )
        main = "org.apache.spark.sql.connect.service.SparkConnectServer"
        arguments = ["--properties-file", file, "--class", main, "spark-internal"]
        # A Connect server counts as a daemon: its memory is that of daemons, whatever a file says.
        server = self._run("connect", "spark-submit", arguments, **self._environment)
        port = server.wait_for(r"Spark Connect server started at: .*:(\d+)")
        # By this name alone a client sends its token without asking for a certificate.
        self.url = f"sc://localhost:{port}"


def spark_home() -> Path:
    """The installed pyspark, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise RequestError("pyspark is not installed", hint="pip install 'lakebed[spark]'")
    return Path(found.origin).parent


def server_environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Variables for a server: ours, without those by which Spark would mistake it for a client."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    env |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        **extra,
    }
    ensure_java(env)
    return env


__all__ = ["ConnectServer", "Guarded", "Process", "SparkCluster", "living", "spark_home"]
