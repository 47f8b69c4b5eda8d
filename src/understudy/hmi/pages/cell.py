"""The cell page: the scene with its switches, and the simulation panel beside it."""

from json import dumps

from nicegui import ui

from understudy.hmi.pages.frame import button, within_reach
from understudy.hmi.pages.injection import injection
from understudy.hmi.pages.pins import analog_pins, digital_pins
from understudy.hmi.pages.reach import compute_reach
from understudy.hmi.pages.seat import Seat
from understudy.hmi.pages.timing import metrics, time_control

VIEWS = {"iso": "1", "front": "2", "side": "3", "top": "4", "follow": "5"}
LAYERS = (
    "environment", "ghost", "preview", "trail", "volumes", "workspace", "reach", "frames",
)  # fmt: skip
CLEARED = {"trail": "c", "preview": "v", "contacts": "x"}


def build(seat: Seat) -> None:
    ui.add_head_html('<script type="module" src="/static/scene.js"></script>')
    with ui.element("div").classes("u-cell"):
        with ui.element("div").classes("u-stage"):
            scene = ui.element("div").classes("u-scene").props("id=scene")
            scene.props["data-robot"] = seat.robot
            _views(seat)
            _layers(seat)
            _readout()
        with ui.element("aside").classes("u-panel"):
            _panel(seat)
    _preview(seat)
    _surroundings(seat)

    def turn_to() -> None:
        ui.run_javascript(f"window.understudy.choose({dumps(seat.robot)})")

    seat.on_choice(turn_to)


def _panel(seat: Seat) -> None:
    ui.label(seat.texts("mode.simulated_only")).classes("u-only-real")
    time_control(seat)
    metrics(seat)
    with ui.tabs().classes("u-tabs").props("no-caps dense inline-label align=justify") as tabs:
        names = {key: ui.tab(key, seat.texts(f"io.{key}")) for key in ("digital", "analog")}
        names["inject"] = ui.tab("inject", seat.texts("inject.title"))
    with ui.tab_panels(tabs, value="digital", animated=False).classes("u-tab-panels"):
        with ui.tab_panel(names["digital"]):
            digital_pins(seat)
        with ui.tab_panel(names["analog"]):
            analog_pins(seat)
        with ui.tab_panel(names["inject"]):
            injection(seat)


def _views(seat: Seat) -> None:
    with ui.element("div").classes("u-views"):
        for view, key in VIEWS.items():
            look = button(seat.texts(f"view.{view}"), key=key, kind="u-over")
            look.props(f'data-view="{view}"')
            look.on("click", js_handler=f"() => window.understudy.view({view!r})")


def _layers(seat: Seat) -> None:
    with ui.element("div").classes("u-layers"):
        ui.label(seat.texts("layer.title")).classes("u-caption")
        for layer in LAYERS:
            switch = button(seat.texts(f"layer.{layer}"), kind="u-over u-layer")
            switch.props(f'data-layer="{layer}"')
            switch.on("click", js_handler=f"() => window.understudy.layer({layer!r})")
            if layer == "reach":
                within_reach(seat, switch)
                ui.on("reach_wanted", lambda: compute_reach(seat))
        ui.label(seat.texts("clear.title")).classes("u-caption")
        for mark, key in CLEARED.items():
            wipe = button(seat.texts(f"clear.{mark}"), key=key, kind="u-over")
            wipe.props(f'data-clear="{mark}"')
            wipe.on("click", js_handler=f"() => window.understudy.clear({mark!r})")
            if mark != "preview":
                within_reach(seat, wipe)
            if mark == "trail":  # trails and contacts are the cell's, for every browser
                wipe.on_click(lambda: seat.order("clear_trail") if seat.can("welder") else None)
            elif mark == "contacts":
                wipe.on_click(lambda: seat.ask("clear_collisions"))


def _readout() -> None:
    """Filled by scene.js with every frame: joints and tip of the chosen robot."""
    ui.element("div").classes("u-readout").props('id="readout"')


def _preview(seat: Seat) -> None:
    """The way of a program is drawn when it is loaded."""
    drawn: dict[str, int] = {}

    def update() -> None:
        reading = seat.picture.status.get("parts", {}).get(f"{seat.robot}.program", {})
        checksum = reading.get("checksum", 0)
        if drawn.get(seat.robot, 0) != checksum:
            drawn[seat.robot] = checksum
            ui.run_javascript(f"window.understudy.preview({dumps(seat.robot)})")

    seat.each_round(update)


def _surroundings(seat: Seat) -> None:
    """The scene is loaded again when other things stand around, or a robot holds something else."""
    drawn = [seat.picture.surroundings()]

    def update() -> None:
        now = seat.picture.surroundings()
        if now != drawn[0]:
            drawn[0] = now
            ui.run_javascript("window.understudy.load()")

    seat.each_round(update)
