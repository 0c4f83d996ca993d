"""JSON Schemas of functions, from their type hints."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

_NAMES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _schema_of_type(hint: Any) -> dict[str, Any]:
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        options = [_schema_of_type(one) for one in arguments if one is not type(None)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if hint is list or origin is list:
        return {"type": "array", **({"items": _schema_of_type(arguments[0])} if arguments else {})}
    if hint is dict or origin is dict:
        return {"type": "object"}
    return {}


def takes_call(function: Callable[..., Any]) -> bool:
    """Returns true for a function with a parameter `call`, which gets the call itself."""
    return "call" in inspect.signature(function).parameters


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the JSON Schema of the parameters of a function, without `call`."""
    hints = typing.get_type_hints(function)
    parameters = [
        one for name, one in inspect.signature(function).parameters.items() if name != "call"
    ]
    return {
        "type": "object",
        "properties": {one.name: _schema_of_type(hints.get(one.name, Any)) for one in parameters},
        "required": [one.name for one in parameters if one.default is inspect.Parameter.empty],
        "additionalProperties": False,
    }
