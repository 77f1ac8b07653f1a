"""AWS Lambda as its runtime client sees it: the Runtime API, and the sandboxes around it.

A function's code is a copy of the built artifact that nothing may write to. Each sandbox is a
process of the real runtime client (`awslambdaric`) in an environment of its own, from which this
checkout can't be imported. Between two events it is frozen; at its deadline it is killed.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

from tests.listening import Handler

LARGEST_RESPONSE: Final = 6_291_556
"""Bytes that Lambda passes on from a function."""

INIT_SECONDS: Final = 20.0
"""Lambda allows 10; the machine of a test may have more to do."""

ARN: Final = "arn:aws:lambda:eu-west-1:123456789012:function:intermezzo"

_API: Final = "/2018-06-01/runtime"


class FunctionError(Exception):
    """An invocation that ended without a response: what the platform tells the caller."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


@dataclass(slots=True)
class Invocation:
    """One event on its way through a sandbox."""

    event: Any
    deadline: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    answer: Future[Any] = field(default_factory=Future[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What a function runs: the artifact, the Python that it was built for, and the client."""

    artifact: Path
    python: str
    client: Path
    version: str


class Sandbox:
    """One execution environment: a process, its Runtime API, and what it has printed."""

    def __init__(self, code: Code, handler: str, environ: Mapping[str, str]) -> None:
        self._events: SimpleQueue[Invocation | None] = SimpleQueue()
        self._invocation: Invocation | None = None
        self._ready: Future[None] = Future()
        self._freezing = threading.Lock()
        self.invocations = 0
        self.restored = False
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.process = subprocess.Popen(
            _unable_to_write([code.python, "-S", "-m", "awslambdaric", handler]),
            cwd=code.artifact,
            env=self._environ(code, handler, environ),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._wait, daemon=True).start()

    def _environ(self, code: Code, handler: str, environ: Mapping[str, str]) -> dict[str, str]:
        """The platform's variables, and the function's own: nothing of the tests' process."""
        return {
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{code.version}",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "AWS_LAMBDA_FUNCTION_NAME": "intermezzo",
            "AWS_LAMBDA_LOG_FORMAT": "JSON",
            "AWS_LAMBDA_LOG_LEVEL": "INFO",
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_port}",
            "AWS_REGION": "eu-west-1",
            "LAMBDA_TASK_ROOT": str(code.artifact),
            "LANG": "en_US.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": str(code.client),
            "TZ": ":UTC",
            "_HANDLER": handler,
            **environ,
        }

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def invoke(self, event: Any, seconds: float) -> Any:
        """Gives the process an event, and returns its response.

        Raises:
            FunctionError: it had none, in time or at all.
        """
        try:
            self._ready.result(INIT_SECONDS)
        except FutureTimeoutError:
            self.kill()
            raise FunctionError("Sandbox.Timedout", "the init phase took too long") from None
        invocation = Invocation(event, time.time() + seconds)
        self.invocations += 1
        self._invocation = invocation
        with self._freezing:
            self._events.put(invocation)
            self._signal(signal.SIGCONT)
        try:
            return invocation.answer.result(seconds)
        except FutureTimeoutError:
            self.kill()
            raise FunctionError(
                "Sandbox.Timedout", f"Task timed out after {seconds:.2f} seconds"
            ) from None

    def started(self) -> None:
        """Waits until the init phase is over."""
        self._ready.result(INIT_SECONDS)

    def log(self) -> str:
        """All that the process has printed."""
        return os.pread(self._output.fileno(), 1 << 26, 0).decode("utf-8", "replace")

    def lines(self) -> list[dict[str, Any]]:
        """What it logged as JSON."""
        lines = [line for line in self.log().splitlines() if line.startswith("{")]
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """Ends the process at once, as the platform does."""
        self._signal(signal.SIGKILL)
        self.process.wait(10)

    def close(self) -> None:
        self.kill()
        self._events.put(None)
        self._server.shutdown()
        self._server.server_close()
        self._output.close()

    def next(self) -> Invocation | None:
        """The process is idle: it is frozen until there is an event."""
        if not self._ready.done():
            self._ready.set_result(None)
        with self._freezing:
            if self._events.empty():
                self._signal(signal.SIGSTOP)
        return self._events.get()

    def answered(self, id: str, body: bytes) -> bool:
        """Takes a response; false when it is too large to be passed on."""
        invocation = self._invocation
        assert invocation is not None
        assert invocation.id == id
        if len(body) > LARGEST_RESPONSE:
            error = FunctionError("Function.ResponseSizeTooLarge", f"{len(body)} bytes")
            invocation.answer.set_exception(error)
            return False
        invocation.answer.set_result(json.loads(body))
        return True

    def failed(self, id: str | None, error: Mapping[str, str]) -> None:
        """Takes an error, of an invocation or of the init phase."""
        failure = FunctionError(error["errorType"], error["errorMessage"])
        invocation = self._invocation
        if id is None:
            self._ready.set_exception(failure)
        elif invocation is not None:
            invocation.answer.set_exception(failure)

    def _wait(self) -> None:
        code = self.process.wait()
        error = FunctionError("Runtime.ExitError", f"exit status {code}")
        for waiting in (self._ready, self._invocation and self._invocation.answer):
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(("127.0.0.1", 0), _RuntimeApi)
        self.sandbox = sandbox

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A process that was killed hangs up without a word."""


class _RuntimeApi(Handler):
    """The HTTP side of a sandbox."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    @property
    def _sandbox(self) -> Sandbox:
        assert isinstance(self.server, _Server)
        return self.server.sandbox

    def do_GET(self) -> None:
        if self.path == f"{_API}/restore/next":  # here the snapshot would be taken
            self._sandbox.restored = True
            self._send(200, b"")
            return
        assert self.path == f"{_API}/invocation/next"
        invocation = self._sandbox.next()
        if invocation is None:
            self.close_connection = True
            return
        self._send(
            200,
            json.dumps(invocation.event).encode(),
            ("Lambda-Runtime-Aws-Request-Id", invocation.id),
            ("Lambda-Runtime-Deadline-Ms", str(int(invocation.deadline * 1000))),
            ("Lambda-Runtime-Invoked-Function-Arn", ARN),
            ("Lambda-Runtime-Trace-Id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0"),
        )

    def do_POST(self) -> None:
        body = self.sent()
        part = self.path.removeprefix(_API).split("/")
        match part:
            case ["", "invocation", id, "response"]:
                taken = self._sandbox.answered(id, body)
                self._send(202 if taken else 413, b'{"status":"OK"}')
            case ["", "invocation", id, "error"]:
                self._sandbox.failed(id, json.loads(body))
                self._send(202, b'{"status":"OK"}')
            case ["", "init", "error"]:
                self._sandbox.failed(None, json.loads(body))
                self._send(202, b'{"status":"OK"}')
            case _:
                self._send(404, b"{}")

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.answer(status, body, [("Content-Type", "application/json"), *headers])
        with suppress(ConnectionError):  # the process was killed meanwhile
            self.wfile.flush()


class Function:
    """A deployed function: events go to idle sandboxes, and to a new one where there is none.

    Args:
        seconds: its timeout.
        rotate: how many sandboxes take turns, where events come one after another.
    """

    def __init__(
        self,
        code: Code,
        environ: Mapping[str, str],
        *,
        handler: str = "handler.lambdas.endpoint",
        seconds: float = 29.0,
        rotate: int = 1,
    ) -> None:
        self.seconds = seconds
        self.sandboxes: list[Sandbox] = []
        self._code = code
        self._environ = environ
        self._handler = handler
        self._rotate = rotate
        self._idle: list[Sandbox] = []
        self._lock = threading.Lock()

    def invoke(self, event: Any) -> Any:
        """The response to an event.

        Raises:
            FunctionError: there was none.
        """
        sandbox = self._take()
        try:
            return sandbox.invoke(event, self.seconds)
        finally:
            with self._lock:
                if sandbox.alive:
                    self._idle.append(sandbox)

    def _take(self) -> Sandbox:
        with self._lock:
            self._idle = [each for each in self._idle if each.alive]
            if len(self._idle) >= self._rotate:
                return self._idle.pop(0)
            sandbox = Sandbox(self._code, self._handler, self._environ)
            self.sandboxes.append(sandbox)
            return sandbox

    def lines(self) -> list[dict[str, Any]]:
        """What all sandboxes have logged."""
        return [line for sandbox in self.sandboxes for line in sandbox.lines()]

    def log(self) -> str:
        return "".join(sandbox.log() for sandbox in self.sandboxes)

    def close(self) -> None:
        for sandbox in self.sandboxes:
            sandbox.close()

    def __enter__(self) -> "Function":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def seal(folder: Path) -> None:
    """Takes every right to write away."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)


def _unable_to_write(command: list[str]) -> list[str]:
    """For root too: it loses the power to write against a file's mode."""
    if os.geteuid() != 0:
        return command
    setpriv = shutil.which("setpriv")
    assert setpriv is not None, "of util-linux, which every Linux has"
    powers = "-dac_override"
    return [setpriv, f"--bounding-set={powers}", f"--inh-caps={powers}", *command]
