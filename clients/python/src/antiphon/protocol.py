"""Frames of the socket on which programs serve tools.

Written by `npm run generate:client` from libs/contracts/gateway/tool-socket.ts. Do not edit.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class WaitForWorker(TypedDict):
    waitMs: int


class Retry(TypedDict):
    maxAttempts: int
    backoffMs: int
    maxBackoffMs: int
    onTimeout: bool


class ToolDeclaration(TypedDict):
    name: str
    description: str
    inputSchema: NotRequired[dict[str, Any]]
    idempotent: NotRequired[bool]
    timeoutMs: NotRequired[int]
    retry: NotRequired[Retry]
    whenAbsent: NotRequired[Literal["unavailable"] | WaitForWorker]


class ServeFrame(TypedDict):
    type: Literal["tools.serve"]
    tools: list[dict[str, Any]]
    concurrency: NotRequired[int]


class CallFrame(TypedDict):
    type: Literal["tools.call"]
    callId: str
    attemptId: str
    epoch: int
    tool: str
    input: Any
    idempotencyKey: str
    deadline: str
    timeoutMs: int
    sessionId: str
    agentId: str | None


WhenAbsent = Literal["unavailable"] | WaitForWorker
