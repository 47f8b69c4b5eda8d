"""Simulation panel: time control, metrics, and faults that the operator injects."""

import math
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from understudy.hmi.figures import fixed
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.reset import RESET, clear
from understudy.hmi.frame.widgets import (
    Slider,
    button,
    dialog_answers,
    operator_only,
    set_class,
    temporary_dialog,
)

SLOWEST, FASTEST = 0.1, 10.0
EXPONENT_STEP = 0.05
"""Step of the slider, in units of log10 of the time scale."""
STEPS_S = (0.01, 0.1, 1.0)


# ── time ──


def time_control(browser: Browser) -> None:
    """Clocks, play, pause, stop, reset, single step and time scale."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-simulated") as panel:
        with ui.row(wrap=False).classes("u-clocks"):
            with ui.column().classes("u-clock"):
                ui.label(texts("time.simulated")).classes("u-caption")
                simulated = ui.label().classes("u-figure").props("data-mark=simulated-time")
            with ui.column().classes("u-clock"):
                ui.label(texts("time.real")).classes("u-caption")
                real = ui.label().classes("u-figure u-quiet").props("data-mark=real-time")
        scale = TimeScale(browser)
        _time_buttons(browser, scale)
        scale.build()
    operator_only(browser, panel, on_real=False)

    def update() -> None:
        figures = browser.cell.metrics
        simulated.set_text(f"{fixed(figures.get('simulation_time_s', 0.0), 2)} s")
        real.set_text(f"{fixed(figures.get('real_time_s', 0.0), 2)} s")

    browser.on_update(update)


def _time_buttons(browser: Browser, scale: "TimeScale") -> None:
    texts = browser.texts
    with ui.element("div").classes("u-five"):
        play = _time_button(browser, "play", "play_arrow", "p").on_click(scale.play)
        pause = _time_button(browser, "pause", "pause", "h")
        pause.on_click(lambda: browser.command("pause"))
        stop = _time_button(browser, "stop", "stop", "s")
        stop.on_click(lambda: browser.command("stop"))
        _time_button(browser, "reset", "replay", "z").on_click(lambda: clear(browser, [RESET]))
        step = _time_button(browser, "step", "skip_next", "n")
    with ui.element("div").classes("u-inline"):
        ui.label(texts("time.step_size")).classes("u-caption")
        size = ui.toggle({s: f"{s:g} s" for s in STEPS_S}, value=STEPS_S[1])
        size.classes("u-toggle").props("data-mark=step-size no-caps unelevated")
        size.props("toggle-color=blue-grey-2 toggle-text-color=black")
    step.on_click(lambda: browser.command("advance", {"seconds": size.value}))

    def update() -> None:
        state = browser.cell.metrics.get("state")
        paused = browser.cell.status.get("rate") == 0.0  # also when the engine is in an error
        set_class(play, state == "RUNNING" and not paused, "u-chosen")
        set_class(pause, paused, "u-chosen")
        set_class(stop, state == "STOPPED", "u-chosen")

    browser.on_update(update)


def _time_button(browser: Browser, name: str, icon: str, key: str) -> ui.button:
    return button("", icon=icon, key=key, hint=browser.texts(f"time.{name}"), mark=name)


class TimeScale:
    """Slider of the time scale; logarithmic, so that 1× is in the middle.

    It follows the cell, whose rate another browser may set. A scale that is set while time is
    paused is kept and sent with the next play."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._pending: float | None = None

    async def play(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            await self._browser.command("rate", {"rate": pending})
        answer = await self._browser.command("play")
        if answer is not None:
            self._show_outcome(answer)

    def _show_outcome(self, answer: Mapping[str, Any]) -> None:
        """A notice if a program was refused, or if there was none to run."""
        for robot, reason in answer["refused"].items():
            self._browser.notify_refusal(f"{robot}: {reason}")
        if not (answer["under_way"] or answer["started"] or answer["refused"]):
            ui.notify(self._browser.texts("time.nothing_loaded"), position="top")

    async def _set(self, exponent: float) -> None:
        scale = round(10.0**exponent, 2)
        if self._browser.cell.metrics.get("state") == "PAUSED":
            self._pending = scale
        else:
            await self._browser.command("rate", {"rate": scale})

    def build(self) -> None:
        bounds = math.log10(SLOWEST), math.log10(FASTEST)
        with ui.element("div").classes("u-inline"):
            ui.label(self._browser.texts("time.scale")).classes("u-caption")
            self._slider = Slider(self._browser, bounds, EXPONENT_STEP, self._set)
            self._slider.mark("time-scale")
            self._shown = ui.label().classes("u-figure u-scale")
            self._shown.props("data-mark=time-scale-value")
        self._browser.on_update(self._update)

    def _update(self) -> None:
        status = self._browser.cell.status
        rate = status.get("rate", 1.0)
        stepped = rate if isinstance(rate, str) else ""  # "max" or "step"
        kept = status.get("parts", {}).get("engine", {}).get("time_scale", 1.0)
        now = kept if stepped else self._pending or rate or kept
        scale = min(max(now, SLOWEST), FASTEST)
        self._shown.set_text(stepped or f"{fixed(scale, 1)}×")
        self._slider.show(round(math.log10(scale) / EXPONENT_STEP) * EXPONENT_STEP)


# ── metrics ──


def metrics(browser: Browser) -> None:
    """Counts since the last reset."""
    with ui.element("section").classes("u-card u-metrics"):
        figures = {}
        for key in ("gcodes", "distance", "collisions"):
            with ui.column().classes("u-clock"):
                ui.label(browser.texts(f"metrics.{key}")).classes("u-caption")
                figures[key] = ui.label().classes("u-figure").props(f"data-mark=metric-{key}")

    def update() -> None:
        counted = browser.cell.metrics
        figures["gcodes"].set_text(str(counted.get("gcode_executed", 0)))
        figures["distance"].set_text(f"{fixed(counted.get('total_distance_mm', 0.0), 1)} mm")
        collisions = int(counted.get("collisions_detected", 0))
        figures["collisions"].set_text(str(collisions))
        set_class(figures["collisions"], collisions > 0, "u-alarm")

    browser.on_update(update)


# ── faults ──


def fault_buttons(browser: Browser) -> None:
    """A button for each fault that can be injected into the robot or its devices."""
    buttons = ui.element("div").classes("u-faults u-simulated")
    operator_only(browser, buttons, on_real=False)
    shown: list[object] = [None]

    def update() -> None:
        faults = browser.cell.faults_of(browser.robot)
        if faults == shown[0]:
            return
        shown[0] = faults
        buttons.clear()
        with buttons:
            for fault, place in sorted(faults, key=lambda each: "." not in each[1]):
                _fault_button(browser, fault, place)  # devices first, then the robot itself

    browser.on_update(update)


def _fault_button(browser: Browser, fault: str, place: str) -> None:
    facts = browser.cell.faults[fault]
    with ui.element("div").classes("u-fault"):
        inject = button(browser.texts.of("fault", fault), kind="u-wide", hint=facts["doc"])
        inject.props(f'data-fault="{fault}"')
        inject.on_click(lambda: browser.command("inject", {"fault": fault, "on": place}))
        if facts["parameters"]:
            more = button("", icon="tune", hint=browser.texts("faults.parameters"))
            more.on_click(lambda: _parameters(browser, fault, place, facts["parameters"]).open())


def _parameters(
    browser: Browser, fault: str, place: str, parameters: Mapping[str, Any]
) -> ui.dialog:
    """A dialog that injects the fault with other parameters than the defaults."""
    with temporary_dialog() as dialog, ui.card().classes("u-dialog"):
        ui.label(browser.texts.of("fault", fault)).classes("u-figure")
        fields = {
            name: ui.number(name, value=each["default"], min=each["low"], max=each["high"])
            for name, each in parameters.items()
        }

        async def inject() -> None:
            given = {name: field.value for name, field in fields.items()}
            await browser.command("inject", {"fault": fault, "on": place, "parameters": given})
            dialog.close()

        dialog_answers(browser, dialog, "faults.inject").on_click(inject)
    return dialog
