"""Names of the original robot_config.json that are others than here: they are accepted, too.

| there | here |
|---|---|
| `settingsBootstrapMode`: ROBOT_WINS, BACKEND_WINS | LOCAL, BACKEND |
| `resetPolicy`: `supportsReset`, `resetCooldownMs` | `allowReset`, `cooldownSeconds` |
| `type` of inputs and outputs | `role` |
| `supportedModules`: object of true and false | list |
| `nats` or `nats.timeouts`: `connectTimeoutMs`, `requestTimeoutMs`, `reconnectWaitMs` | `connectSeconds`, `requestSeconds`, `reconnectWaitSeconds` of `timeouts` |
"""  # noqa: E501

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from understudy.errors import ConfigError

Values = dict[str, Any]
BOOTSTRAP_MODES = {"ROBOT_WINS": "LOCAL", "BACKEND_WINS": "BACKEND"}
PLAIN_POINTS = ("DIGITAL", "DIGITAL_INPUT", "DIGITAL_OUTPUT")
"""Types of inputs and outputs that say nothing about what they are for."""
MODULE_ENDING = "Module"


class Synonym(NamedTuple):
    key: str
    meaning: Callable[[Any], Any]
    """Another type than expected stays as it is: reading the file names the mistake."""


def _seconds(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if is_number else value


def _same(value: Any) -> Any:
    return value


RESET_POLICY = {
    "supportsReset": Synonym("allowReset", _same),
    "resetCooldownMs": Synonym("cooldownSeconds", _seconds),
}
TIMEOUTS = {
    "connectTimeoutMs": Synonym("connectSeconds", _seconds),
    "requestTimeoutMs": Synonym("requestSeconds", _seconds),
    "reconnectWaitMs": Synonym("reconnectWaitSeconds", _seconds),
}
POINTS = {
    "type": Synonym("role", lambda value: "GENERAL" if value in PLAIN_POINTS else value),
}


def in_own_words(file: Any) -> Any:
    """The values of a robot_config.json with the names that are used here."""
    if not isinstance(file, dict):
        return file
    made = {
        "runtime": _changed(file.get("runtime"), _runtime),
        "nats": _changed(file.get("nats"), _nats),
        "capabilities": _changed(file.get("capabilities"), _capabilities),
        "motors": _each(file.get("motors"), _motor),
        "io": _changed(file.get("io"), _io),
    }
    return file | {key: value for key, value in made.items() if key in file}


def _changed(value: Any, change: Callable[[Values], Values]) -> Any:
    return change(value) if isinstance(value, dict) else value


def _each(value: Any, change: Callable[[Values], Values]) -> Any:
    return [_changed(each, change) for each in value] if isinstance(value, list) else value


def _renamed(values: Values, synonyms: Mapping[str, Synonym], place: str) -> Values:
    made: Values = {}
    for key, value in values.items():
        other = synonyms.get(key)
        if other is not None and other.key in values:
            raise ConfigError(f"{key} and {other.key} mean the same; give one", key=place)
        made[other.key if other else key] = other.meaning(value) if other else value
    return made


def _runtime(runtime: Values) -> Values:
    policy = runtime.get("startupPolicy")
    mode = policy.get("settingsBootstrapMode") if isinstance(policy, dict) else None
    if isinstance(policy, dict) and isinstance(mode, str) and mode in BOOTSTRAP_MODES:
        policy = policy | {"settingsBootstrapMode": BOOTSTRAP_MODES[mode]}
        return runtime | {"startupPolicy": policy}
    return runtime


def _nats(nats: Values) -> Values:
    outside = {key: value for key, value in nats.items() if key in TIMEOUTS}
    inside = nats.get("timeouts", {})
    if not isinstance(inside, dict) or not (outside or inside):
        return nats
    rest = {key: value for key, value in nats.items() if key not in outside}
    return rest | {"timeouts": _renamed(outside | inside, TIMEOUTS, "nats.timeouts")}


def _capabilities(capabilities: Values) -> Values:
    modules = capabilities.get("supportedModules")
    if isinstance(modules, dict) and all(isinstance(each, bool) for each in modules.values()):
        modules = [name for name, supported in modules.items() if supported]
    if isinstance(modules, list):
        names = [
            each.removesuffix(MODULE_ENDING) if isinstance(each, str) else each for each in modules
        ]
        return capabilities | {"supportedModules": names}
    return capabilities


def _motor(motor: Values) -> Values:
    policy = motor.get("resetPolicy")
    if isinstance(policy, dict):
        return motor | {"resetPolicy": _renamed(policy, RESET_POLICY, "motors.resetPolicy")}
    return motor


def _io(io: Values) -> Values:
    kinds = [key for key in ("digitalInputs", "digitalOutputs") if key in io]
    return io | {
        key: _each(io[key], lambda point, key=key: _renamed(point, POINTS, f"io.{key}"))  # type: ignore[misc]
        for key in kinds
    }
