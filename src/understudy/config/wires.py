"""The wire of an endpoint, from the keys of a cell file."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

from understudy.config.typed import read
from understudy.errors import ConfigError
from understudy.ports import Endpoint
from understudy.registry import module_of
from understudy.wire.interface import Wire


def wire_keys(endpoint: Endpoint) -> tuple[str, ...]:
    """Keys of a cell file for the wires of an endpoint, those that select one included."""
    modules = [module_of("wires", kind) for kind in endpoint.wires]
    fields = [field for module in modules for field in module.Config.__struct_fields__]
    return tuple(dict.fromkeys([*fields, *_selectors(modules)]))


def read_wire(endpoint: Endpoint, given: Any) -> Wire:
    """The settings of an endpoint's wire: its defaults, and what the cell file says."""
    if not isinstance(given, dict | None):
        raise ConfigError("this does not fit", value=given, allowed="a mapping")
    keys = dict(given or {})
    modules = [module_of("wires", kind) for kind in endpoint.wires]
    selectors = {
        key: read(keys.pop(key), kind, key)
        for key, kind in _selectors(modules).items()
        if key in keys
    }
    texts = {k: v for k, v in selectors.items() if isinstance(v, str) and _has_detail(k, modules)}
    selectors |= dict.fromkeys(texts, True)
    chosen = next(
        (m for m in modules if all(m.SELECTED_BY.get(k) == v for k, v in selectors.items())), None
    )
    if chosen is None:
        raise ConfigError("these keys select no wire together", value=selectors)
    settings = {k: v for k, v in endpoint.defaults.items() if k in chosen.Config.__struct_fields__}
    wire: Wire = read(settings | keys | texts, chosen.Config)
    return wire


def _selectors(modules: Sequence[ModuleType]) -> dict[str, Any]:
    """Keys that select one of several wires, and the type of their values."""
    keys = dict.fromkeys(key for module in modules for key in module.SELECTED_BY)
    choices = {
        key: {module.SELECTED_BY[key]: None for module in modules if key in module.SELECTED_BY}
        for key in keys
    }
    return {
        key: (bool | str if _has_detail(key, modules) else bool)
        if True in values
        else Literal[tuple(values)]
        for key, values in choices.items()
        if len(values) > 1
    }


def _has_detail(key: str, modules: Sequence[ModuleType]) -> bool:
    """Whether a text selects a wire as `true` does: it is a setting of that wire (`pty: PATH`)."""
    return any(key in module.Config.__struct_fields__ for module in modules)
