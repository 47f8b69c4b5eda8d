"""The hand on the robot: home, overrides, and jogging that ends when the hand does."""

import asyncio
from contextlib import AbstractContextManager
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, within_reach
from understudy.hmi.pages.slider import Slider

STEPS = (0, 0.1, 1, 10, 50)
"""mm or degrees; 0: as long as the button is held."""
STEP_AT_FIRST = 1
"""Where a button cannot be held."""
SLOWEST, FASTEST, AT_FIRST = 1, 100, 20
LATE_SECONDS = 0.5
"""A hand that was not felt for so long is taken to be gone; a real robot is stricter, and feels it
itself."""
FEED, RAPID = (10, 200), (5, 100)
POSE = ("X", "Y", "Z", "RX", "RY", "RZ")


# ── home and overrides ──


def _homing(browser: Browser) -> None:
    """All axes, or one."""
    with ui.element("div").classes("u-homing") as place:
        every = button("", icon="home", hint=browser.texts("hand.home"), mark="home")
        single = button(
            "", icon="expand_more", hint=browser.texts("hand.home_axis"), mark="home-axis"
        )
        with single, ui.menu().classes("u-menu"):
            axes = ui.element("div")

    def rebuild() -> None:
        joints = browser.facts.get("joints", ())
        single.set_visibility(browser.can("jog_joint"))
        axes.clear()
        with axes:
            for axis, joint in enumerate(joints):
                _home_axis(browser, axis, joint["name"])

    every.on_click(lambda: browser.order("home"))
    browser.on_choice(rebuild)
    rebuild()
    _shown_where(browser, place, "home")


def _home_axis(browser: Browser, axis: int, name: str) -> None:
    ui.menu_item(name, lambda: browser.order("home", {"axis": axis})).classes("u-menu-item")


def overrides(browser: Browser) -> None:
    """Feed and rapid; the figures shown are the cell's, whoever set them."""
    with ui.element("div").classes("u-overrides").props("data-mark=overrides") as place:
        _override(browser, "feed", FEED)
        _override(browser, "rapid", RAPID)
    within_reach(browser, place)
    _shown_where(browser, place, "override")


def _shown_where(browser: Browser, place: ui.element, capability: str) -> None:
    def update() -> None:
        place.set_visibility(browser.can(capability))

    browser.each_round(update)


def _override(browser: Browser, name: str, bounds: tuple[int, int]) -> None:
    ui.label(browser.texts(f"hand.{name}")).classes("u-caption")

    async def turn(percent: float) -> None:
        await browser.order("override", {f"{name}_percent": percent})

    slider = Slider(browser, bounds, 5, turn).mark(f"{name}-override")
    mark = f"{name}-override-value"
    shown = button("100 %", kind="u-figure", hint=browser.texts("hand.hundred"), mark=mark)

    def update() -> None:
        told = (browser.facts.get("overrides_percent") or {}).get(name)
        if told is not None:
            shown.set_text(f"{told:.0f} %")
            slider.show(told)

    shown.on_click(lambda: turn(100.0))
    browser.each_round(update)


# ── jogging ──


class Jogging:
    """One browser's hand on one axis at a time.

    A jog without a step goes on while the browser says that the hand is there; a browser that
    falls silent, or leaves, has let go.
    """

    def __init__(self, browser: Browser, page: AbstractContextManager[Any]) -> None:
        """``page``: where a refusal is to be shown, though nobody has pressed anything."""
        self._seat = browser
        self._page = page
        self._robot = ""
        self._late: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def step(self, order: dict[str, Any], step: float) -> None:
        await self._seat.order("jog", {**order, "step": step})

    async def hold(self, order: dict[str, Any]) -> None:
        if self._late is not None:
            return
        self._robot = self._seat.robot
        self._wait_for_it()
        if await self._seat.order("jog", order) is None:
            self._forget()

    async def feel(self) -> None:
        if self._late is None:
            return
        self._wait_for_it()
        real = self._seat.picture.robots.get(self._robot, {}).get("mode") == "REAL"
        if real and await self._seat.look("heartbeat", {"robot": self._robot}) is None:
            self.let_go()

    def let_go(self) -> None:
        if self._late is not None:
            self._forget()
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    def _wait_for_it(self) -> None:
        self._forget()
        self._late = asyncio.get_running_loop().call_later(LATE_SECONDS, self.let_go)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    async def _stop(self) -> None:
        with self._page:
            await self._seat.ask("stop_jog", {"robot": self._robot})


def jog_panel(browser: Browser) -> None:
    """A row for each axis of the frame; held by jog.js, which fills in the figures as well."""
    jogging = Jogging(browser, ui.context.client)
    with ui.element("div").classes("u-jog").props("data-mark=jog"):
        with ui.element("div").classes("u-inline"):
            frame = _choice(browser, "frame", {}, None)
            _homing(browser)
        with ui.element("div").classes("u-inline"):
            step = _choice(browser, "step", {}, None)
        speed = Speed(browser)
        rows = ui.element("div").classes("u-axes").props('id="axes"')

    def rebuild() -> None:
        frames = browser.facts.get("frames", ())
        chosen = frame.value if frame.value in frames else (frames[0] if frames else None)
        if list(frame.options) != list(frames):
            frame.set_options(
                {name: browser.texts(f"hand.{name}") for name in frames}, value=chosen
            )
        _offer_steps(browser, step)
        rows.clear()
        rows.props(f'data-robot="{browser.robot}" data-frame="{frame.value}"')
        with rows:
            for axis, name in enumerate(_names(browser, frame.value)):
                _axis(axis, name)
            if not frames:
                ui.label(browser.texts("hand.no_jog")).classes("u-caption")

    async def begin(event: GenericEventArguments) -> None:
        wanted = event.args
        if wanted["robot"] != browser.robot:  # the rows under the hand were another's
            return
        signed = speed.value * (1.0 if wanted["direction"] > 0 else -1.0)
        order = {"frame": wanted["frame"], "axis": int(wanted["axis"]), "speed": signed}
        await (jogging.step(order, step.value) if step.value else jogging.hold(order))

    frame.on_value_change(rebuild)
    _when_known(browser, rebuild)
    ui.on("jog_begin", begin)
    ui.on("jog_hold", jogging.feel)
    ui.on("jog_end", jogging.let_go)
    ui.context.client.on_delete(jogging.let_go)


def _choice(browser: Browser, name: str, options: dict[Any, str], value: Any) -> ui.toggle:
    made = ui.toggle(options, value=value).classes("u-toggle").props(f"data-mark=jog-{name}")
    made.props("no-caps unelevated toggle-color=blue-grey-2 toggle-text-color=black")
    made.tooltip(browser.texts(f"hand.{name}"))
    return made


def _offer_steps(browser: Browser, choice: ui.toggle) -> None:
    """Not every robot can be jogged for as long as a button is held."""
    held = browser.can("jog_held")
    steps = {step: _step_text(browser, step) for step in STEPS if step or held}
    if list(choice.options) != list(steps):
        first = 0 if held else STEP_AT_FIRST
        choice.set_options(steps, value=choice.value if choice.value in steps else first)


def _step_text(browser: Browser, step: float) -> str:
    return f"{step:g}" if step else browser.texts("hand.continuous")


class Speed:
    """How fast a hand jogs; this browser's own."""

    def __init__(self, browser: Browser) -> None:
        with ui.element("div").classes("u-inline u-speed-line"):
            ui.label(browser.texts("hand.speed")).classes("u-caption")
            self._slider = Slider(browser, (SLOWEST, FASTEST), 1, self._turn).mark("jog-speed")
            self._shown = ui.label().classes("u-figure u-speed")
        self._take(AT_FIRST)

    async def _turn(self, value: float) -> None:
        self._take(value)

    def _take(self, value: float) -> None:
        self.value = value
        self._slider.show(value)
        self._shown.set_text(f"{value:g} mm/s · °/s")


def _names(browser: Browser, frame: str | None) -> list[str]:
    if frame is None:
        return []
    joints = [joint["name"] for joint in browser.facts.get("joints", ())]
    return joints if frame == "joint" and joints else list(POSE)


def _axis(axis: int, name: str) -> None:
    with ui.element("div").classes("u-axis"):
        _jog_button(axis, name, -1)
        with ui.element("div").classes("u-axis-figure"):
            ui.label(name).classes("u-axis-name")
            ui.element("div").classes("u-figure").props(f'data-figure="{axis}"')
        _jog_button(axis, name, 1)


def _jog_button(axis: int, name: str, direction: int) -> None:
    made = button("", icon="add" if direction > 0 else "remove", kind="u-jog-button")
    made.props(f'data-jog="{axis}" data-direction="{direction}"')
    made.props["aria-label"] = f"{name} {'+' if direction > 0 else '−'}"


def _when_known(browser: Browser, rebuild: Any) -> None:
    """At once, for another robot, and again when the robot's facts come late."""
    browser.on_choice(rebuild)
    known = [False]

    def update() -> None:
        if bool(browser.facts) != known[0]:
            known[0] = bool(browser.facts)
            rebuild()

    rebuild()
    browser.each_round(update)
