"""Time under the operator's hand: scale, play, pause, stop, reset, single step; and the metrics."""

import math

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from understudy.hmi.pages.frame import button
from understudy.hmi.pages.seat import Seat

SLOWEST, FASTEST = 0.1, 10.0
STEPS_S = (0.01, 0.1, 1.0)


def time_control(seat: Seat) -> None:
    """Two clocks, five buttons, one slider; its scale is logarithmic, so that 1× is the middle."""
    texts = seat.texts
    with ui.element("section").classes("u-card").mark("time-control"):
        with ui.row(wrap=False).classes("u-clocks"):
            with ui.column().classes("u-clock"):
                ui.label(texts("time.simulated")).classes("u-caption")
                simulated = ui.label().classes("u-figure").mark("simulated-time")
            with ui.column().classes("u-clock"):
                ui.label(texts("time.real")).classes("u-caption")
                real = ui.label().classes("u-figure u-quiet").mark("real-time")
        _buttons(seat)
        _scale(seat)

    def update() -> None:
        figures = seat.picture.metrics
        simulated.set_text(f"{figures.get('simulation_time_s', 0.0):.2f} s")
        real.set_text(f"{figures.get('real_time_s', 0.0):.2f} s")

    seat.each_round(update)


def _buttons(seat: Seat) -> None:
    texts = seat.texts
    with ui.element("div").classes("u-five"):
        play = button("", icon="play_arrow", key="p", hint=texts("time.play")).mark("play")
        play.on_click(lambda: seat.ask("start"))
        pause = button("", icon="pause", key="h", hint=texts("time.pause")).mark("pause")
        pause.on_click(lambda: seat.ask("pause"))
        stop = button("", icon="stop", key="s", hint=texts("time.stop")).mark("stop")
        stop.on_click(lambda: seat.ask("stop"))
        again = button("", icon="replay", key="z", hint=texts("time.reset")).mark("reset")
        again.on_click(lambda: seat.ask("reset"))
        step = button("", icon="skip_next", key="n", hint=texts("time.step")).mark("step")
        step.on_click(lambda: seat.ask("advance", {"seconds": long.value}))
    with ui.element("div").classes("u-inline"):
        ui.label(texts("time.step_size")).classes("u-caption")
        long = ui.toggle({s: f"{s:g} s" for s in STEPS_S}, value=STEPS_S[1]).mark("step-size")
        long.props("no-caps unelevated toggle-color=blue-grey-2 toggle-text-color=black")
        long.classes("u-toggle")

    def update() -> None:
        state = seat.picture.metrics.get("state")
        for each, when in ((play, "RUNNING"), (pause, "PAUSED"), (stop, "STOPPED")):
            _choose(each, state == when)

    seat.each_round(update)


def _choose(each: ui.button, chosen: bool) -> None:
    each.classes(add="u-chosen" if chosen else "", remove="" if chosen else "u-chosen")


def _scale(seat: Seat) -> None:
    low, high = math.log10(SLOWEST), math.log10(FASTEST)
    with ui.element("div").classes("u-inline"):
        ui.label(seat.texts("time.scale")).classes("u-caption")
        slider = ui.slider(min=low, max=high, step=0.05, value=0.0).classes("u-slider")
        slider.mark("time-scale").props('markers :marker-labels="[]" color=blue-grey-2')
        shown = ui.label("1.0×").classes("u-figure u-scale").mark("time-scale-value")

    async def turn(event: ValueChangeEventArguments) -> None:
        if abs(event.value - math.log10(told())) > 0.01:
            await seat.ask("rate", {"rate": round(10.0**event.value, 2)})

    def told() -> float:
        """The cell's scale; what runs as fast as it goes has none."""
        rate = seat.picture.status.get("parts", {}).get("engine", {}).get("time_scale", 1.0)
        return min(max(float(rate), SLOWEST), FASTEST)

    def update() -> None:
        rate = seat.picture.status.get("rate", 1.0)
        shown.set_text(f"{rate:.1f}×" if isinstance(rate, float | int) else str(rate))

    slider.on_value_change(turn)
    slider.props("lazy")
    seat.each_round(update)


def metrics(seat: Seat) -> None:
    """What the cell has done since it was reset."""
    with ui.element("section").classes("u-card u-metrics"):
        figures = {}
        for key in ("gcodes", "distance", "collisions"):
            with ui.column().classes("u-clock"):
                ui.label(seat.texts(f"metrics.{key}")).classes("u-caption")
                figures[key] = ui.label().classes("u-figure").mark(f"metric-{key}")

    def update() -> None:
        told = seat.picture.metrics
        figures["gcodes"].set_text(str(told.get("gcode_executed", 0)))
        figures["distance"].set_text(f"{told.get('total_distance_mm', 0.0):.1f} mm")
        hits = int(told.get("collisions_detected", 0))
        figures["collisions"].set_text(str(hits))
        bad = "u-alarm-mood"
        figures["collisions"].classes(add=bad if hits else "", remove="" if hits else bad)

    seat.each_round(update)
