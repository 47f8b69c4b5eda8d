"""Settings of the virtual camera of a robot, and of the detectors of a vision process: a form for
each detector, made from the keys of its kind."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import Slider, button, card, operator_only
from understudy.hmi.link import LinkError
from understudy.hmi.page import Panel
from understudy.hmi.texts import Texts

KIND = "kind"
NUMBERS = ("number", "whole")
"""Types of keys whose field is a number."""
OUTLINED = "dense outlined options-dense"
PLACE = re.compile(r"detectors\.(\d+)\.(\w+)")
"""Number and key of a detector in a refusal."""
Edits = Mapping[tuple[int, str, str], Any]
"""(number and kind of a detector, key) → what the user has written there and not applied."""


# ── settings ──


class CameraSetting(NamedTuple):
    """A value of the camera that can be set: its command with all its parameters, its bounds and
    step on the page, and its unit."""

    command: str
    parameters: tuple[str, ...]
    bounds: tuple[float, float]
    step: float
    unit: str = ""


SETTINGS: Mapping[str, CameraSetting] = {
    "exposure_ms": CameraSetting("set_camera_exposure", ("exposure_ms",), (0.5, 60.0), 0.5, "ms"),
    "gain_db": CameraSetting("set_camera_gain", ("gain_db",), (-20.0, 48.0), 1.0, "dB"),
    "brightness": CameraSetting("set_camera_light", ("brightness", "ambient"), (0.0, 3.0), 0.05),
    "ambient": CameraSetting("set_camera_light", ("brightness", "ambient"), (0.0, 1.0), 0.05),
    "noise_grey": CameraSetting("set_camera_noise", ("noise_grey",), (0.0, 40.0), 0.5),
}


def camera_settings(browser: Browser) -> None:
    """Sliders of the virtual camera; hidden without one."""
    with card(browser.texts("camera.title"), "u-camera-settings", mark="eye") as place:
        for name in SETTINGS:
            _setting(browser, name)
        detectors(browser)
    operator_only(browser, place, on_real=False)
    browser.on_update(lambda: place.set_visibility(bool(browser.part("camera"))))


def _setting(browser: Browser, name: str) -> None:
    setting = SETTINGS[name]

    async def change(value: float) -> None:
        now = {**browser.part("camera"), name: value}
        given = {key: now[key] for key in setting.parameters}
        await browser.command(setting.command, {"device": f"{browser.robot}.camera", **given})

    with ui.element("div").classes("u-eye-setting"):
        ui.label(browser.texts(f"camera.{name}")).classes("u-caption")
        slider = Slider(browser, setting.bounds, setting.step, change).mark(f"eye-{name}")
        figure = ui.label().classes("u-eye-figure").props(f"data-mark=eye-{name}-figure")

    @browser.on_update
    def update() -> None:
        now = browser.part("camera")
        if now:
            slider.show(now[name])
            figure.set_text(f"{now[name]:g} {setting.unit}".strip())


# ── detectors ──


def detectors(browser: Browser) -> None:
    """The detectors of the chosen robot, loaded again when they are changed, by any browser. What
    the user has written and not applied stays."""
    place = ui.element("div").classes("u-detectors").props("data-mark=detectors")
    shown: list[Any] = [None]
    forms: dict[str, Forms] = {}

    def show(found: Mapping[str, Any]) -> None:
        if place.is_deleted:
            return
        robot = browser.robot
        edits = forms[robot].edits() if robot in forms else {}
        forms.clear()
        place.clear()
        with place:
            if found["settable"]:
                forms[robot] = Forms(browser, found, edits)
            else:
                _show_fixed(browser, found)

    @browser.on_update
    def update() -> None:
        vision = browser.part("vision")
        place.set_visibility(bool(vision))
        state = (browser.robot, vision.get("detectors_set"))
        if vision and shown[0] != state:
            shown[0] = state
            browser.ask("vision_detectors", show)


def _show_fixed(browser: Browser, found: Mapping[str, Any]) -> None:
    """Detectors that cannot be set."""
    ui.label(browser.texts(f"camera.detectors_{found['source']}")).classes("u-caption")
    for table in found["detectors"]:
        keys = [f"{key}: {json.dumps(value)}" for key, value in table.items() if key != KIND]
        words = f"{table[KIND]} · {', '.join(keys)}" if keys else str(table[KIND])
        ui.label(words).classes("u-detector")


class Forms:
    """The forms of all detectors, with buttons that apply them or set them back."""

    def __init__(self, browser: Browser, found: Mapping[str, Any], edits: Edits) -> None:
        """``edits``: of the forms that these replace."""
        self._browser = browser
        self._sent = False
        texts, fields = browser.texts, found["fields"]
        changed = texts("camera.changed") if found["changed"] else texts("camera.unchanged")
        title = ui.label(f"{texts('camera.detectors')} · {changed}").classes("u-caption")
        title.props("data-mark=detectors-state")
        self._forms = [
            Form(texts, number, table, fields[table[KIND]])
            for number, table in enumerate(found["detectors"])
        ]
        self._problem = ui.label().classes("u-problem").props("data-mark=detectors-problem")
        self._problem.props["role"] = "alert"
        with ui.row().classes("u-inline"):
            apply = button(texts("camera.apply"), kind="u-small u-chosen", mark="detectors-apply")
            apply.on_click(self._apply)
            back = button(texts("camera.as_in_file"), kind="u-small", mark="detectors-back")
            back.on_click(lambda: self._set(None))
        for form in self._forms:
            form.write(edits)
        if self.edits():
            self._problem.set_text(texts("camera.edits_kept"))

    def edits(self) -> Edits:
        """Empty when the user has applied them, or set them back."""
        if self._sent:
            return {}
        return {key: value for form in self._forms for key, value in form.edits().items()}

    async def _apply(self) -> None:
        self._clear()
        tables = [form.table() for form in self._forms]
        if None in tables:
            self._problem.set_text(self._browser.texts("camera.not_applied"))
            return
        await self._set(tables)

    async def _set(self, tables: list[Any] | None) -> None:
        self._clear()
        self._sent = True
        given = {"robot": self._browser.robot, "detectors": tables}
        answer = await self._browser.attempt("set_vision_detectors", given)
        if isinstance(answer, LinkError):
            self._sent = False
            self._refused(answer.message)

    def _clear(self) -> None:
        self._problem.set_text("")
        for form in self._forms:
            form.clear()

    def _refused(self, reason: str) -> None:
        """Beside the field that it names, else below the forms."""
        found = PLACE.search(reason)
        number = int(found[1]) if found else -1
        if found and number < len(self._forms) and self._forms[number].refused(found[2], reason):
            return
        self._problem.set_text(reason)


class Form:
    """The keys of one detector. A key with its default that the table does not have stays out."""

    def __init__(
        self, texts: Texts, number: int, table: Mapping[str, Any], fields: list[Any]
    ) -> None:
        self._texts = texts
        self._number = number
        self._table = table
        self._fields = {field["name"]: field for field in fields}
        with ui.element("fieldset").classes("u-detector-form"):
            with ui.element("legend"):
                ui.label(f"{number + 1} · {table[KIND]}")
            self._inputs: dict[str, Any] = {}
            for name, field in self._fields.items():
                value = table.get(name, field.get("default"))
                made = _control(field, value)
                made.props(f"data-mark=detector-{number}-{name}").classes("u-detector-field")
                self._inputs[name] = made
        self._first = {name: made.value for name, made in self._inputs.items()}

    def edits(self) -> Edits:
        shown = {name: made.value for name, made in self._inputs.items()}
        return {
            (self._number, self._table[KIND], name): value
            for name, value in shown.items()
            if value != self._first[name]
        }

    def write(self, edits: Edits) -> None:
        """Writes what the user had written into the fields."""
        for (number, kind, name), value in edits.items():
            if (number, kind) == (self._number, self._table[KIND]) and name in self._inputs:
                self._inputs[name].value = value

    def clear(self) -> None:
        for each in self._inputs.values():
            if not isinstance(each, ui.switch):
                each.error = None

    def refused(self, key: str, reason: str) -> bool:
        """Shows the reason at the field; False if it cannot."""
        field = self._inputs.get(key)
        if field is None or isinstance(field, ui.switch):
            return False
        field.error = PLACE.sub(r"\2", reason, count=1)
        return True

    def table(self) -> dict[str, Any] | None:
        """The values; None, with the error at each wrong field, if one cannot be read."""
        made: dict[str, Any] = {KIND: self._table[KIND]}
        wrong = False
        for name, field in self._fields.items():
            try:
                value = field_value(field, self._table, self._inputs[name].value)
            except FieldError as problem:
                text = self._texts(f"camera.{problem.text}")
                self._inputs[name].error = text.format(**problem.values)
                wrong = True
                continue
            if name in self._table or value != field.get("default"):
                made[name] = value
        return None if wrong else made


class FieldError(Exception):
    """What is shown in a field is no value. ``text``: its key in the section `camera`; ``values``
    fill it in."""

    def __init__(self, text: str, **values: str) -> None:
        super().__init__(text)
        self.text = text
        self.values = values


def field_value(field: Mapping[str, Any], table: Mapping[str, Any], shown: Any) -> Any:
    """The value of a key, from what its field shows.

    An empty number is an error, not the default: the browser also sends 1e999 as empty. Other
    fields can be empty if the table has no value for the key."""
    kind, filled = field["type"], table.get(field["name"]) not in (None, "")
    if shown in (None, "") and (kind in NUMBERS or filled):
        raise FieldError("empty", allowed=field["allowed"])
    if kind == "value":
        return _read_json(shown)
    if kind not in NUMBERS:
        return shown
    number = _finite(shown)
    if kind == "whole" and isinstance(number, float) and number.is_integer():
        return int(number)  # the control gives 5.0 for 5; the cell refuses what is not whole
    return number


def _control(field: Mapping[str, Any], value: Any) -> Any:
    """The control for a key of this type (`config/typed.py`)."""
    name, kind = field["name"], field["type"]
    if kind == "switch":
        return ui.switch(name, value=bool(value)).classes("u-switch")
    if kind == "choice":
        return ui.select(list(field["choices"]), value=value, label=name).props(OUTLINED)
    if kind in NUMBERS:
        low, high = field.get("ge", field.get("gt")), field.get("le", field.get("lt"))
        # in the label: an input with `min` would replace the value
        limits = "" if low is None or high is None else f"  {low:g} … {high:g}"
        made: Any = ui.number(f"{name}{limits}", value=value)
    elif kind == "value":
        made = ui.input(name, value=json.dumps(value)).classes("u-detector-wide")
    else:
        made = ui.input(name, value=value)
    made.props(OUTLINED + (" readonly" if field.get("file") else ""))
    made.tooltip(field["allowed"])
    return made


def _finite(shown: Any) -> Any:
    if not math.isfinite(shown):
        raise FieldError("not_finite")
    return shown


def _read_json(shown: Any) -> Any:
    """Python also reads NaN, Infinity and 1e999, which are errors here."""
    try:
        return json.loads(
            shown or "null",
            parse_float=lambda digits: _finite(float(digits)),
            parse_constant=lambda word: _finite(float(word)),
        )
    except ValueError as problem:
        raise FieldError("bad_json", problem=str(problem)) from None


PANEL = Panel(
    name="camera", build=camera_settings, folder=Path(__file__).parent, styles=("camera.css",)
)
