"""WebSocket client of the standard library alone (RFC 6455): text frames, pings and closes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import select
import socket
import ssl
import struct
import threading
from urllib.parse import urlsplit

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_MAX_MESSAGE = 8 * 1024 * 1024


class Refused(Exception):
    """The gateway refused the upgrade with this status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status


class Closed(Exception):
    """The connection ended. `code` is that of the close frame, 1006 without one."""

    def __init__(self, code: int) -> None:
        super().__init__(f"closed with {code}")
        self.code = code


def _mask(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class WebSocket:
    """One connection. `receive` has one caller; `send` may be called by any thread."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "wss"
        port = parts.port or (443 if secure else 80)
        host = parts.hostname or ""
        raw = socket.create_connection((host, port), timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket: socket.socket = (
            ssl.create_default_context().wrap_socket(raw, server_hostname=host) if secure else raw
        )
        self._buffer = b""
        self._lock = threading.Lock()
        try:
            self._upgrade(parts.netloc, parts.path or "/", headers)
        except BaseException:
            self._socket.close()
            raise

    def _upgrade(self, host: str, path: str, headers: dict[str, str]) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > 65_536:
                raise Closed(1006)
            self._fill()
        head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        first, *rest = head.decode("latin-1").split("\r\n")
        _, status, *reason = first.split(" ", 2)
        if status != "101":
            raise Refused(int(status), " ".join(reason))
        answer = dict(line.lower().split(":", 1) for line in rest if ":" in line)
        accept = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
        if answer.get("sec-websocket-accept", "").strip() != accept.lower():
            raise Closed(1006)

    def send(self, text: str) -> None:
        self._write(_TEXT, text.encode())

    def wait(self, seconds: float) -> bool:
        """Waits until there is something to read. Returns false after the time."""
        pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        return bool(self._buffer) or pending or bool(select.select([self._socket], [], [], seconds)[0])

    def receive(self) -> str | None:
        """Returns the next text; None after a ping or a pong. Raises `Closed`."""
        parts: list[bytes] = []
        while True:
            final, opcode, data = self._read_frame()
            if opcode == _PING:
                self._write(_PONG, data)
            elif opcode == _CLOSE:
                code = struct.unpack("!H", data[:2])[0] if len(data) >= 2 else 1005
                self.close()
                raise Closed(code)
            elif opcode != _PONG:
                parts.append(data)
                if sum(map(len, parts)) > _MAX_MESSAGE:
                    raise Closed(1009)
                if final:
                    return b"".join(parts).decode()
                continue
            if not parts:
                return None

    def close(self) -> None:
        try:
            self._write(_CLOSE, struct.pack("!H", 1000))
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def _write(self, opcode: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 65_536:
            head = struct.pack("!BBH", 0x80 | opcode, 0xFE, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0xFF, size)
        mask = os.urandom(4)
        with self._lock:
            try:
                self._socket.sendall(head + mask + _mask(data, mask))
            except OSError:
                # A part of the frame may have left: nothing can follow it.
                self._socket.close()
                raise

    def _read_frame(self) -> tuple[bool, int, bytes]:
        first, second = self._read(2)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack("!H", self._read(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self._read(8))[0]
        if second & 0x80 or size > _MAX_MESSAGE:
            raise Closed(1002)
        return bool(first & 0x80), first & 0x0F, self._read(size)

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _fill(self) -> None:
        # Before Python 3.13 a TLS connection may not be read and written at one time.
        lock = self._lock if isinstance(self._socket, ssl.SSLSocket) else contextlib.nullcontext()
        try:
            with lock:
                data = self._socket.recv(65_536)
        except OSError as error:
            raise Closed(1006) from error
        if not data:
            raise Closed(1006)
        self._buffer += data
