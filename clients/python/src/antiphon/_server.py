"""Serves tools over the socket `/ws/tools` of a gateway."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ._schema import schema_of, takes_call
from ._socket import Closed, Refused, WebSocket
from .protocol import CallFrame, Retry, ToolDeclaration, WhenAbsent

_log = logging.getLogger("antiphon")
_HEARTBEAT_S = 5.0
_SILENT_BEATS = 3
_CONNECT_S = 10.0
#: Interval of looks whether the program is to stop.
_LOOK_S = 0.25
_FIRST_DELAY_S, _MAX_DELAY_S = 0.1, 5.0
#: Characters of a result that are one frame, and of each part of a longer one.
_MAX_WHOLE, _PART = 256 * 1024, 80 * 1024
_MAX_RESULT = 64 * 1024 * 1024
_FATAL_CLOSES = (4401, 4403)
_FATAL_STATUSES = (401, 403)


class ServeError(Exception):
    """The gateway refuses the key, and will do so again."""


@dataclass(frozen=True)
class Call:
    """One call, as a handler sees it."""

    call_id: str
    tool: str
    #: Epoch of the driver of the session: a newer one has a higher epoch.
    epoch: int
    #: The same for each attempt of a call.
    idempotency_key: str
    #: Time of the timeout, seconds since the epoch.
    deadline: float
    session_id: str
    agent_id: str | None
    #: Set when the call is cancelled, times out, or is given up.
    cancelled: threading.Event
    _report: Callable[[dict[str, Any]], None] = field(repr=False)

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Reports progress to the clients of the session."""
        more = {} if fraction is None else {"fraction": fraction}
        self._report({"type": "progress", "message": message, **more})


@dataclass(frozen=True)
class _Tool:
    declaration: ToolDeclaration
    handler: Callable[..., Any]
    takes_call: bool


def _to_content(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result)


def _frames_of(frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns the frames of a result. The gateway joins the parts of a long one."""
    content = frame.get("content", "")
    if len(content) > _MAX_RESULT:
        message = f"the result has {len(content)} characters, at most {_MAX_RESULT} bytes are taken"
        yield {"type": "error", "message": message}
        return
    at = 0
    if len(content) > _MAX_WHOLE:
        while len(content) - at > _PART:
            yield {"type": "result.part", "content": content[at : at + _PART]}
            at += _PART
    yield {**frame, "content": content[at:]} if at else frame


class Tools:
    """Tools of a program. Functions are added by the decorator `tool`; `serve` serves them."""

    def __init__(self) -> None:
        self._tools: dict[str, _Tool] = {}
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._socket: WebSocket | None = None
        self._running: dict[str, tuple[threading.Event, Future[None]]] = {}
        self._lock = threading.Lock()

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        idempotent: bool = False,
        timeout_ms: int | None = None,
        retry: Retry | None = None,
        when_absent: WhenAbsent | None = None,
    ) -> Callable[..., Any]:
        """Adds a function as a tool. Its types are the schema, its docstring is the description."""

        def add(handler: Callable[..., Any]) -> Callable[..., Any]:
            own = name or handler.__name__
            declaration: ToolDeclaration = {
                "name": own,
                "description": description or (handler.__doc__ or own).strip(),
                "inputSchema": dict(schema) if schema is not None else schema_of(handler),
                "idempotent": idempotent,
            }
            if timeout_ms is not None:
                declaration["timeoutMs"] = timeout_ms
            if retry is not None:
                declaration["retry"] = retry
            if when_absent is not None:
                declaration["whenAbsent"] = when_absent
            self._tools[own] = _Tool(declaration, handler, takes_call(handler))
            return handler

        return add if function is None else add(function)

    def serve(self, url: str | None = None, key: str | None = None, concurrency: int = 16) -> None:
        """Serves the tools until SIGTERM, Ctrl-C or `stop`. Raises `ServeError` for a refused key.

        The defaults are ANTIPHON_URL and ANTIPHON_KEY of the environment.
        """
        address = url or os.environ.get("ANTIPHON_URL", "http://127.0.0.1:7400")
        token = key or os.environ.get("ANTIPHON_KEY")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())
        failures = 0
        with ThreadPoolExecutor(concurrency) as pool:
            while not self._stopping.is_set():
                try:
                    self._serve_once(address, token, concurrency, pool)
                    failures = 0
                except KeyboardInterrupt:
                    self._stopping.set()
                except (Closed, Refused, OSError, ValueError) as error:
                    self._raise_if_fatal(error)
                    _log.warning("connection lost: %s", error)
                    failures = 0 if self._ready.is_set() else failures + 1
                    self._ready.clear()
                    delay = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2 ** min(failures, 16))
                    self._stopping.wait(delay * (0.5 + random.random() / 2))

    def stop(self) -> None:
        """Takes no further call and completes those that run. `serve` then returns."""
        self._stopping.set()

    def _raise_if_fatal(self, error: Exception) -> None:
        is_fatal = (isinstance(error, Closed) and error.code in _FATAL_CLOSES) or (
            isinstance(error, Refused) and error.status in _FATAL_STATUSES
        )
        if is_fatal:
            raise ServeError(f"the key is refused: it needs the scope tools:serve ({error})")

    def _serve_once(
        self, address: str, key: str | None, concurrency: int, pool: ThreadPoolExecutor
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        url = f"{address.replace('http', 'ws', 1).rstrip('/')}/ws/tools"
        ws = WebSocket(url, headers, _CONNECT_S)
        self._socket = ws
        try:
            self._listen(ws, concurrency, pool)
        finally:
            self._socket = None
            ws.close()
            with self._lock:
                for cancelled, _ in self._running.values():
                    cancelled.set()

    def _listen(self, ws: WebSocket, concurrency: int, pool: ThreadPoolExecutor) -> None:
        heard_at = asked_at = time.monotonic()
        while True:
            now = time.monotonic()
            if self._stopping.is_set():
                return self._drain(ws)
            if now - heard_at > _HEARTBEAT_S * _SILENT_BEATS:
                raise Closed(1006)
            if now - max(heard_at, asked_at) > _HEARTBEAT_S:
                asked_at = now
                self._send(ws, {"type": "ping"})
            if not ws.wait(_LOOK_S):
                continue
            text = ws.receive()
            heard_at = time.monotonic()
            if text is not None:
                self._handle(ws, json.loads(text), concurrency, pool)

    def _drain(self, ws: WebSocket) -> None:
        self._send(ws, {"type": "tools.drain"})
        with self._lock:
            running = [future for _, future in self._running.values()]
        wait(running, timeout=10)

    def _handle(
        self, ws: WebSocket, frame: dict[str, Any], concurrency: int, pool: ThreadPoolExecutor
    ) -> None:
        kind = frame.get("type")
        if kind == "session.ack":
            declared = [one.declaration for one in self._tools.values()]
            self._send(ws, {"type": "tools.serve", "tools": declared, "concurrency": concurrency})
        elif kind == "tools.serving":
            self._ready.set()
            for refused in frame["refused"]:
                _log.error("%s is not served: %s", refused["name"], refused["message"])
        elif kind == "tools.call":
            self._start(ws, frame, pool)  # type: ignore[arg-type]
        elif kind == "tools.cancel":
            with self._lock:
                running = self._running.get(frame["attemptId"])
            if running:
                running[0].set()
        elif kind == "tools.error":
            _log.error("%s: %s", frame["code"], frame["message"])
            if not self._ready.is_set():
                raise Closed(1013)

    def _start(self, ws: WebSocket, frame: CallFrame, pool: ThreadPoolExecutor) -> None:
        attempt = {"callId": frame["callId"], "attemptId": frame["attemptId"]}
        call = Call(
            call_id=frame["callId"],
            tool=frame["tool"],
            epoch=frame["epoch"],
            idempotency_key=frame["idempotencyKey"],
            deadline=time.time() + frame["timeoutMs"] / 1_000,
            session_id=frame["sessionId"],
            agent_id=frame["agentId"],
            cancelled=threading.Event(),
            _report=lambda report: self._send(ws, {**report, **attempt}),
        )

        def run() -> None:
            try:
                if not call.cancelled.is_set():
                    for part in _frames_of(self._run(call, frame["input"])):
                        self._send(ws, {**part, **attempt})
            finally:
                with self._lock:
                    self._running.pop(frame["attemptId"], None)

        with self._lock:
            self._running[frame["attemptId"]] = (call.cancelled, pool.submit(run))

    def _run(self, call: Call, given: Any) -> dict[str, Any]:
        try:
            tool = self._tools[call.tool]
            more = {"call": call} if tool.takes_call else {}
            return {"type": "result", "content": _to_content(tool.handler(**given, **more))}
        except Exception as error:  # noqa: BLE001 - any failure of a handler is a failed call
            return {"type": "error", "message": f"{type(error).__name__}: {error}"}

    def _send(self, ws: WebSocket, frame: Mapping[str, Any]) -> None:
        try:
            # A result of a lost connection was given up with its call.
            if ws is self._socket:
                ws.send(json.dumps(frame))
        except OSError:
            pass


def serve_tools(
    tools: Mapping[str, Callable[..., Any] | Mapping[str, Any]],
    url: str | None = None,
    key: str | None = None,
    concurrency: int = 16,
) -> None:
    """Serves functions by name, or `{"handler": …, "idempotent": …}` with the options of `tool`."""
    own = Tools()
    for name, given in tools.items():
        if callable(given):
            own.tool(given, name=name)
        else:
            options = dict(given)
            own.tool(options.pop("handler"), name=name, **options)
    own.serve(url, key, concurrency)
