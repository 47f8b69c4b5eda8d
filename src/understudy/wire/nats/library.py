"""Imports nats-py without aiohttp, which it needs for web sockets only: 0.15 s at each start.

A cell connects by TCP. A web socket that someone else opens in this process loads aiohttp then.
"""

import sys
from importlib import import_module
from typing import Any

NEEDED_BY_WEB_SOCKETS = ("aiohttp", "multidict")


class LateModule:
    """A module that is imported when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def load() -> None:
    """Imports nats-py, unless it or aiohttp is imported already."""
    if {"aiohttp", "nats.aio.transport"} & set(sys.modules):
        return
    sys.modules["aiohttp"] = None  # type: ignore[assignment]  # an import of it fails
    try:
        transport = import_module("nats.aio.transport")
    finally:
        del sys.modules["aiohttp"]
    for name in NEEDED_BY_WEB_SOCKETS:
        setattr(transport, name, LateModule(name))
