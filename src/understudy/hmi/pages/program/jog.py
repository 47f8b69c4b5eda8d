"""Manual operation: homing, overrides, and jogging that ends when the button is released."""

import asyncio
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import Slider, button, fixed, keep_filled, operator_only
from understudy.hmi.page import STATIC

SCRIPT = f"{STATIC}/pages/program/jog.js"
"""A page with a `JogPanel` lists this script."""
STEPS = (0, 0.1, 1, 10, 50)
"""mm or degrees; 0: as long as the button is held."""
DEFAULT_STEP = 1
"""The first step of robots that jog in steps only."""
SLOWEST, FASTEST, DEFAULT_SPEED = 1, 100, 20
TIMEOUT_SECONDS = 0.5
"""Dead-man timeout of a held jog. A real robot's own timeout is shorter; the cell checks it."""
FEED_PERCENT, RAPID_PERCENT = (10, 200), (5, 100)
POSE = ("X", "Y", "Z", "RX", "RY", "RZ")
MACHINE_AXES = ("X", "Y", "Z", "A", "B", "C")
LETTERS = {1: "QWERTYUI", -1: "ASDFGHJK"}
"""Letters that jog axis 0, 1, … in a direction while they and Shift are held: two rows of keys."""
JOG_KEYS = {
    "manual.jog_plus": f"Shift+{' '.join(LETTERS[1])}",
    "manual.jog_minus": f"Shift+{' '.join(LETTERS[-1])}",
}
"""Of a page with a `JogPanel`."""


# ── homing and overrides ──


def _homing(browser: Browser) -> None:
    """Homes all axes, or one of them."""
    with ui.element("div").classes("u-homing") as place:
        every = button("", icon="home", hint=browser.texts("manual.home"), mark="home")
        single = button(
            "", icon="expand_more", hint=browser.texts("manual.home_axis"), mark="home-axis"
        )
        with single, ui.menu().classes("u-menu"):
            axes = ui.element("div")

    def fill(joints: list[str]) -> None:
        for axis, name in enumerate(joints):
            home = partial(browser.robot_command, "home", {"axis": axis})
            ui.menu_item(name, home).classes("u-menu-item")

    every.on_click(lambda: browser.robot_command("home"))
    keep_filled(browser, axes, lambda: _joint_names(browser), fill)
    _show_if(browser, single, "jog_joint")
    _show_if(browser, place, "home")


def _joint_names(browser: Browser) -> list[str]:
    return [joint["name"] for joint in browser.facts.get("joints", ())]


def overrides(browser: Browser) -> None:
    """Feed and rapid override, as the cell has them; another browser may set them too."""
    with ui.element("div").classes("u-overrides").props("data-mark=overrides") as place:
        _override(browser, "feed", FEED_PERCENT)
        _override(browser, "rapid", RAPID_PERCENT)
    operator_only(browser, place)
    _show_if(browser, place, "override")


def _show_if(browser: Browser, place: ui.element, capability: str) -> None:
    browser.on_update(lambda: place.set_visibility(browser.can(capability)))


def _override(browser: Browser, name: str, bounds: tuple[int, int]) -> None:
    ui.label(browser.texts(f"manual.{name}")).classes("u-caption")

    async def set_percent(percent: float) -> None:
        await browser.robot_command("override", {f"{name}_percent": percent})

    slider = Slider(browser, bounds, 5, set_percent).mark(f"{name}-override")
    hint = browser.texts("manual.reset_override")
    shown = button("100 %", kind="u-figure", hint=hint, mark=f"{name}-override-value")

    def update() -> None:
        percent = (browser.facts.get("overrides_percent") or {}).get(name)
        if percent is not None:
            shown.set_text(f"{fixed(percent, 0)} %")
            slider.show(percent)

    shown.on_click(lambda: set_percent(100.0))
    browser.on_update(update)


# ── jogging ──


class Jogging:
    """Jog of one browser, one axis at a time.

    A jog without a step goes on while the browser sends `keep_alive`; it ends on `release`, when
    the browser leaves, or when no `keep_alive` arrives within the timeout.
    """

    def __init__(self, browser: Browser, page: AbstractContextManager[Any]) -> None:
        """``page``: where a refusal is shown that no click has caused."""
        self._browser = browser
        self._page = page
        self._robot = ""
        self._moved = False
        self._timeout: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def step(self, jog: dict[str, Any], step: float) -> None:
        await self._browser.robot_command("jog", {**jog, "step": step})

    async def hold(self, jog: dict[str, Any]) -> None:
        if self._timeout is not None:
            return
        self._robot, self._moved = self._browser.robot, False
        self._start_timeout()
        if await self._browser.robot_command("jog", jog) is None:
            self._cancel_timeout()

    async def keep_alive(self) -> None:
        """The button is still held; for a REAL robot the cell gets a heartbeat."""
        if self._timeout is None:
            return
        self._start_timeout()
        facts = self._browser.cell.robots.get(self._robot, {})
        real = facts.get("mode") == "REAL"
        if real and await self._browser.query("heartbeat", {"robot": self._robot}) is None:
            self.release()
        elif self._moved and not facts.get("moving"):
            self._cancel_timeout()
            with self._page:
                self._browser.notice(self._browser.texts("manual.jog_ended"))
        self._moved |= bool(facts.get("moving"))

    def release(self) -> None:
        if self._timeout is not None:
            self._cancel_timeout()
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    def _start_timeout(self) -> None:
        self._cancel_timeout()
        loop = asyncio.get_running_loop()
        self._timeout = loop.call_later(TIMEOUT_SECONDS, self.release)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    async def _stop(self) -> None:
        with self._page:
            await self._browser.command("stop_jog", {"robot": self._robot})


class JogPanel:
    """Frame, step, speed, and a row with two buttons for each axis of the frame.

    jog.js sends the events of held buttons and shows the positions."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._jogging = Jogging(browser, ui.context.client)
        with ui.element("div").classes("u-jog").props("data-mark=jog"):
            with ui.element("div").classes("u-inline"):
                self._frame = _toggle(browser, "frame")
                _homing(browser)
            with ui.element("div").classes("u-inline"):
                self._step = _toggle(browser, "step")
            self._speed = JogSpeed(browser)
            self._axes = ui.element("div").classes("u-axes").props('id="axes"')
        self._frame.on_value_change(self._rebuild)
        # the facts of a robot may arrive after the page
        browser.on_change_of(
            lambda: (browser.robot, bool(browser.facts)), lambda _: self._rebuild()
        )
        browser.on_event("jog_begin", self._begin)
        browser.on_event("jog_hold", lambda _: self._jogging.keep_alive())
        browser.on_event("jog_end", lambda _: self._jogging.release())
        browser.on_leave(self._jogging.release)

    def _rebuild(self) -> None:
        browser, frame = self._browser, self._frame
        frames = browser.facts.get("frames", ())
        chosen = frame.value if frame.value in frames else (frames[0] if frames else None)
        if list(frame.options) != list(frames):
            names = {name: browser.texts(f"manual.{name}") for name in frames}
            frame.set_options(names, value=chosen)
        _offer_steps(browser, self._step, frame.value)
        self._axes.clear()
        self._axes.props["data-robot"] = browser.robot
        self._axes.props["data-frame"] = frame.value
        self._axes.update()
        with self._axes:
            for axis, name in enumerate(_axis_names(browser, frame.value)):
                _axis_row(axis, name)
            if not frames:
                ui.label(browser.texts("manual.no_jog")).classes("u-caption")

    async def _begin(self, event: GenericEventArguments) -> None:
        pressed = event.args
        if pressed["robot"] != self._browser.robot:  # the rows were still those of another robot
            return
        speed = self._speed.value * (1.0 if pressed["direction"] > 0 else -1.0)
        jog = {"frame": pressed["frame"], "axis": int(pressed["axis"]), "speed": speed}
        if self._step.value:
            await self._jogging.step(jog, self._step.value)
        else:
            await self._jogging.hold(jog)


def _toggle(browser: Browser, name: str) -> ui.toggle:
    made = ui.toggle({}).classes("u-toggle").props(f"data-mark=jog-{name}")
    made.props("no-caps unelevated toggle-color=blue-grey-2 toggle-text-color=black")
    made.tooltip(browser.texts(f"manual.{name}"))
    return made


def _offer_steps(browser: Browser, toggle: ui.toggle, frame: str | None) -> None:
    """`hold` only for robots that can jog without a step."""
    held = browser.can("jog_held")
    unit = _step_unit(browser, frame)
    steps = {step: _step_text(browser, step, unit) for step in STEPS if step or held}
    if toggle.options != steps:
        first = 0 if held else DEFAULT_STEP
        toggle.set_options(steps, value=toggle.value if toggle.value in steps else first)


def _step_unit(browser: Browser, frame: str | None) -> str:
    """The unit of a step for the axes of the frame: joints may turn or slide, a pose has both."""
    units = {joint["unit"] for joint in browser.facts.get("joints", ())}
    if frame != "joint" or len(units) != 1:
        return " mm·°"
    return " mm" if units == {"mm"} else "°"


def _step_text(browser: Browser, step: float, unit: str) -> str:
    return f"{step:g}{unit}" if step else browser.texts("manual.continuous")


class JogSpeed:
    """Speed of this browser's jogs."""

    def __init__(self, browser: Browser) -> None:
        with ui.element("div").classes("u-inline u-speed-line"):
            ui.label(browser.texts("manual.speed")).classes("u-caption")
            self._slider = Slider(browser, (SLOWEST, FASTEST), 1, self._changed).mark("jog-speed")
            self._shown = ui.label().classes("u-figure u-speed")
        self._set(DEFAULT_SPEED)

    async def _changed(self, value: float) -> None:
        self._set(value)

    def _set(self, value: float) -> None:
        self.value = value
        self._slider.show(value)
        self._shown.set_text(f"{value:g} mm/s · °/s")


def _axis_names(browser: Browser, frame: str | None) -> list[str]:
    if frame is None:
        return []
    if frame != "joint":
        return list(POSE)
    return _joint_names(browser) or list(MACHINE_AXES)


def _axis_row(axis: int, name: str) -> None:
    with ui.element("div").classes("u-axis"):
        _jog_button(axis, name, -1)
        with ui.element("div").classes("u-axis-figure"):
            ui.label(name).classes("u-axis-name").props["title"] = name
            ui.element("div").classes("u-figure").props(f'data-figure="{axis}"')
        _jog_button(axis, name, 1)


def _jog_button(axis: int, name: str, direction: int) -> None:
    made = button("", icon="add" if direction > 0 else "remove", kind="u-jog-button")
    made.props(f'data-jog="{axis}" data-direction="{direction}"')
    made.props["aria-label"] = made.props["data-does"] = f"{name} {'+' if direction > 0 else '−'}"
    if axis < len(LETTERS[direction]):
        letter = LETTERS[direction][axis]
        made.props(f'data-hold-key="Key{letter}"')
        with made:
            ui.label(f"⇧{letter}").classes("u-jog-key")
