"""Client of an Antiphon gateway: serves tools to its agents."""

from ._server import Call, ServeError, Tools, serve_tools
from .protocol import Retry, ToolDeclaration, WhenAbsent

__all__ = ["Call", "Retry", "ServeError", "ToolDeclaration", "Tools", "WhenAbsent", "serve_tools"]
