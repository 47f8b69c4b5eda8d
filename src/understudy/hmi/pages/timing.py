"""Time under the operator's hand: scale, play, pause, stop, reset, single step; and the metrics."""

import math

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, light, within_reach
from understudy.hmi.pages.slider import Slider

SLOWEST, FASTEST = 0.1, 10.0
EXPONENT = 0.05
"""The slider's step; of the scale's logarithm."""
STEPS_S = (0.01, 0.1, 1.0)


def time_control(browser: Browser) -> None:
    """Two clocks, five buttons, one slider; its scale is logarithmic, so that 1× is the middle."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-simulated") as panel:
        with ui.row(wrap=False).classes("u-clocks"):
            with ui.column().classes("u-clock"):
                ui.label(texts("time.simulated")).classes("u-caption")
                simulated = ui.label().classes("u-figure").props("data-mark=simulated-time")
            with ui.column().classes("u-clock"):
                ui.label(texts("time.real")).classes("u-caption")
                real = ui.label().classes("u-figure u-quiet").props("data-mark=real-time")
        scale = Scale(browser)
        _buttons(browser, scale)
        scale.build()
    within_reach(browser, panel, on_real=False)

    def update() -> None:
        figures = browser.picture.metrics
        simulated.set_text(f"{figures.get('simulation_time_s', 0.0):.2f} s")
        real.set_text(f"{figures.get('real_time_s', 0.0):.2f} s")

    browser.each_round(update)


def _buttons(browser: Browser, scale: "Scale") -> None:
    texts = browser.texts
    with ui.element("div").classes("u-five"):
        play = _act(browser, "play", "play_arrow", "p").on_click(scale.play)
        pause = _act(browser, "pause", "pause", "h").on_click(lambda: browser.ask("pause"))
        stop = _act(browser, "stop", "stop", "s").on_click(lambda: browser.ask("stop"))
        _act(browser, "reset", "replay", "z").on_click(lambda: browser.ask("reset"))
        step = _act(browser, "step", "skip_next", "n")
    with ui.element("div").classes("u-inline"):
        ui.label(texts("time.step_size")).classes("u-caption")
        long = ui.toggle({s: f"{s:g} s" for s in STEPS_S}, value=STEPS_S[1])
        long.classes("u-toggle").props("data-mark=step-size no-caps unelevated")
        long.props("toggle-color=blue-grey-2 toggle-text-color=black")
    step.on_click(lambda: browser.ask("advance", {"seconds": long.value}))

    def update() -> None:
        state = browser.picture.metrics.get("state")
        stands = browser.picture.status.get("rate") == 0.0  # in an error as well
        light(play, state == "RUNNING" and not stands, kind="u-chosen")
        light(pause, stands, kind="u-chosen")
        light(stop, state == "STOPPED", kind="u-chosen")

    browser.each_round(update)


def _act(browser: Browser, name: str, icon: str, key: str) -> ui.button:
    return button("", icon=icon, key=key, hint=browser.texts(f"time.{name}"), mark=name)


class Scale:
    """How fast time is to run. Follows the cell, which another browser may have told; what is set
    while time stands is a wish until it runs again."""

    def __init__(self, browser: Browser) -> None:
        self._seat = browser
        self._wish: float | None = None

    async def play(self) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            await self._seat.ask("rate", {"rate": wish})
        await self._seat.ask("start")

    async def turn(self, exponent: float) -> None:
        scale = round(10.0**exponent, 2)
        if self._seat.picture.metrics.get("state") == "PAUSED":
            self._wish = scale
        else:
            await self._seat.ask("rate", {"rate": scale})

    def build(self) -> None:
        low, high = math.log10(SLOWEST), math.log10(FASTEST)
        with ui.element("div").classes("u-inline"):
            ui.label(self._seat.texts("time.scale")).classes("u-caption")
            self._slider = Slider(self._seat, (low, high), EXPONENT, self.turn).mark("time-scale")
            self._shown = ui.label().classes("u-figure u-scale")
            self._shown.props("data-mark=time-scale-value")
        self._seat.each_round(self._update)

    def _update(self) -> None:
        status = self._seat.picture.status
        rate = status.get("rate", 1.0)
        if isinstance(rate, str):  # as fast as it goes, or step by step
            self._shown.set_text(rate)
            return
        set_ = status.get("parts", {}).get("engine", {}).get("time_scale", 1.0)
        told = min(max(self._wish or rate or set_, SLOWEST), FASTEST)
        self._shown.set_text(f"{told:.1f}×")
        self._slider.show(round(math.log10(told) / EXPONENT) * EXPONENT)


def metrics(browser: Browser) -> None:
    """What the cell has done since it was reset."""
    with ui.element("section").classes("u-card u-metrics"):
        figures = {}
        for key in ("gcodes", "distance", "collisions"):
            with ui.column().classes("u-clock"):
                ui.label(browser.texts(f"metrics.{key}")).classes("u-caption")
                figures[key] = ui.label().classes("u-figure").props(f"data-mark=metric-{key}")

    def update() -> None:
        told = browser.picture.metrics
        figures["gcodes"].set_text(str(told.get("gcode_executed", 0)))
        figures["distance"].set_text(f"{told.get('total_distance_mm', 0.0):.1f} mm")
        hits = int(told.get("collisions_detected", 0))
        figures["collisions"].set_text(str(hits))
        light(figures["collisions"], hits > 0, kind="u-alarm")

    browser.each_round(update)
