"""The cell page: the scene with its layers, and beside it time, pins, devices, faults, set-up."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    RESET,
    Slider,
    button,
    card,
    clear,
    dialog_answers,
    fixed,
    keep_filled,
    operator_only,
    set_class,
    tab_panels,
    temporary_dialog,
)
from understudy.hmi.page import Page, show_panels_of
from understudy.hmi.pages.cell.devices import (
    analog_pins,
    device_figures,
    device_panels,
    digital_pins,
)
from understudy.hmi.scene.scene import (
    EDIT_KEYS,
    EDIT_SCRIPT,
    SCRIPT,
    edit_panel,
    layer_button,
    scene,
    view_buttons,
)

LAYERS = ("environment", "ghost", "preview", "trail", "volumes", "workspace", "reach", "frames")
KEYS = {
    "time.run_programs": "Alt+g",
    "time.play": "Alt+p",
    "time.pause": "h",
    "time.stop": "s",
    "time.reset": "z",
    "time.step": "Alt+n",
    "clear.trail_hint": "c",
    "clear.preview_hint": "v",
    "clear.contacts_hint": "x",
}
CLEARED = ("trail", "preview", "contacts")
OF_PROGRAMS = ("ghost", "preview", "trail", "workspace", "reach")
"""Layers of robots that run programs; a cell without them does not have them."""
SLOWEST, FASTEST = 0.1, 10.0
EXPONENT_STEP = 0.05
"""Step of the slider, in units of log10 of the time scale."""
STEPS_S = (0.01, 0.1, 1.0)
SNAPSHOT_FILE = "snapshot.json"
LONGEST_DELAY_MS = 60_000
SETUP_TEXTS = ("loaded", "restored", "too_large", "not_json")
"""Texts that setup.js uses."""


def build(browser: Browser) -> None:
    with ui.element("div").classes("u-cell"):
        with ui.element("div").classes("u-scene-area"):
            scene(browser)
            view_buttons(browser, edits=True)
            _layers(browser)
            edit_panel(browser)
            device_figures(browser)
            _reach_legend(browser)
            # filled by scene.js
            ui.element("div").classes("u-readout").props('id="readout" data-covers=bottom')
        with ui.element("aside").classes("u-panel"):
            _panel(browser)
    _draw_preview(browser)


def _panel(browser: Browser) -> None:
    ui.label(browser.texts("cell.simulated_only")).classes("u-only-real")
    show_panels_of(browser, "cell")
    time_control(browser)
    metrics(browser)
    texts = browser.texts
    panels = {
        "digital": (texts("io.digital"), lambda: digital_pins(browser)),
        "analog": (texts("io.analog"), lambda: analog_pins(browser)),
        "devices": (texts("device.title"), lambda: device_panels(browser)),
        "faults": (texts("faults.title"), lambda: fault_buttons(browser)),
        "setup": (texts("setup.title"), lambda: setup(browser)),
    }
    tab_panels(panels)


def _layers(browser: Browser) -> None:
    with ui.element("div").classes("u-layers").props("data-covers=left"):
        ui.label(browser.texts("layer.title")).classes("u-caption")
        of_programs = () if browser.cell.any_can("program") else OF_PROGRAMS
        for layer in (each for each in LAYERS if each not in of_programs):
            switch = layer_button(browser, layer)
            if layer == "reach":
                operator_only(browser, switch)
        ui.label(browser.texts("clear.title")).classes("u-caption")
        for mark in (each for each in CLEARED if each not in of_programs):
            made = button(
                browser.texts(f"clear.{mark}"),
                key=KEYS[f"clear.{mark}_hint"],
                kind="u-over",
                hint=browser.texts(f"clear.{mark}_hint"),
                script=f"understudy.clear({mark!r})",
            )
            made.props(f'data-clear="{mark}"')
            if mark != "preview":
                operator_only(browser, made)
            if mark == "trail":  # trails and contacts are the cell's: all browsers show them
                made.on_click(
                    lambda: browser.robot_command("clear_trail") if browser.can("trail") else None
                )
            elif mark == "contacts":
                made.on_click(lambda: browser.command("clear_collisions"))


def _reach_legend(browser: Browser) -> None:
    """Colours of the reach layer; scene.js shows it with the layer."""
    texts = browser.texts
    legend = ui.element("div").classes("u-legend").props("data-mark=reach-legend hidden")
    legend.props["data-computing"] = texts("reach.computing")
    with legend:
        ui.label(texts("reach.legend"))
        ui.element("div").classes("u-legend-bar")
        with ui.element("div").classes("u-legend-ends"):
            ui.label(texts("reach.few"))
            ui.label(texts("reach.many"))


def _draw_preview(browser: Browser) -> None:
    """Draws the path of a program when the program is loaded."""
    drawn: dict[str, int] = {}

    @browser.on_update
    def update() -> None:
        checksum = browser.part("program").get("checksum", 0)
        if drawn.get(browser.robot, 0) != checksum:
            drawn[browser.robot] = checksum
            browser.call_script("understudy.preview", browser.robot)


# ── time ──


def time_control(browser: Browser) -> None:
    """Clocks, *Run programs*; and of time: play, pause, stop, reset, single step and scale."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-simulated") as panel:
        with ui.row(wrap=False).classes("u-clocks"):
            simulated = _figure(texts("time.simulated"), "simulated-time")
            real = _figure(texts("time.real"), "real-time").classes("u-quiet")
        scale = TimeScale(browser)
        _time_buttons(browser, scale)
        scale.build()
    operator_only(browser, panel, on_real=False)

    @browser.on_update
    def update() -> None:
        figures = browser.cell.metrics
        simulated.set_text(f"{fixed(figures.get('simulation_time_s', 0.0), 2)} s")
        real.set_text(f"{fixed(figures.get('real_time_s', 0.0), 2)} s")


def _figure(caption: str, mark: str) -> ui.label:
    with ui.column().classes("u-clock"):
        ui.label(caption).classes("u-caption")
        return ui.label().classes("u-figure").props(f"data-mark={mark}")


def _time_buttons(browser: Browser, scale: "TimeScale") -> None:
    texts, key = browser.texts, KEYS["time.run_programs"]
    if browser.cell.any_can("program"):
        run = button(
            texts("time.run"),
            icon="playlist_play",
            key=key,
            kind="u-go",
            hint=texts("time.run_programs"),
            mark="run-programs",
        )
        run.on_click(scale.run_programs)
    with ui.element("div").classes("u-five"):
        play = _time_button(browser, "play", "play_arrow").on_click(scale.play)
        pause = _time_button(browser, "pause", "pause")
        pause.on_click(lambda: browser.command("pause"))
        stop = _time_button(browser, "stop", "stop")
        stop.on_click(lambda: browser.command("stop"))
        _time_button(browser, "reset", "replay").on_click(lambda: clear(browser, [RESET]))
        step = _time_button(browser, "step", "skip_next")
    with ui.element("div").classes("u-inline"):
        ui.label(texts("time.step_size")).classes("u-caption")
        size = ui.toggle({s: f"{s:g} s" for s in STEPS_S}, value=STEPS_S[1])
        size.classes("u-toggle").props("data-mark=step-size no-caps unelevated")
        size.props("toggle-color=blue-grey-2 toggle-text-color=black")
    step.on_click(lambda: browser.command("advance", {"seconds": size.value}))

    @browser.on_update
    def update() -> None:
        state = browser.cell.metrics.get("state")
        paused = browser.cell.status.get("rate") == 0.0  # also when the engine is in an error
        set_class(play, state == "RUNNING" and not paused, "u-chosen")
        set_class(pause, paused, "u-chosen")
        set_class(stop, state == "STOPPED", "u-chosen")


def _time_button(browser: Browser, name: str, icon: str) -> ui.button:
    text = f"time.{name}"
    return button("", icon=icon, key=KEYS[text], hint=browser.texts(text), mark=name)


class TimeScale:
    """Slider of the time scale; logarithmic, so that 1× is in the middle.

    It follows the cell, whose rate another browser may set. A scale that is set while time is
    paused is kept and sent when time runs again."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._pending: float | None = None

    async def play(self) -> None:
        """Lets time run."""
        await self._use_pending()
        await self._browser.command("start")

    async def run_programs(self) -> None:
        """Lets time run, and the programs."""
        await self._use_pending()
        answer = await self._browser.command("run_programs")
        if answer is not None:
            self._show_outcome(answer)

    async def _use_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            await self._browser.command("rate", {"rate": pending})

    def _show_outcome(self, answer: Mapping[str, Any]) -> None:
        """A notice if a program was refused, or if there was none to run."""
        for robot, reason in answer["refused"].items():
            self._browser.notify_refusal(f"{robot}: {reason}")
        if not (answer["under_way"] or answer["started"] or answer["refused"]):
            self._browser.notice(self._browser.texts("time.nothing_loaded"))

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
    """Counts since the last reset, and what the robot does at a collision."""
    with ui.element("section").classes("u-card u-metrics"):
        of_programs = ("gcodes", "distance") if browser.cell.any_can("program") else ()
        names = (*of_programs, "collisions")
        figures = {n: _figure(browser.texts(f"metrics.{n}"), f"metric-{n}") for n in names}
        _collision_reaction(browser)

    @browser.on_update
    def update() -> None:
        counted = browser.cell.metrics
        if of_programs:
            figures["gcodes"].set_text(str(counted.get("gcode_executed", 0)))
            travelled = fixed(counted.get("total_distance_mm", 0.0), 1)
            figures["distance"].set_text(f"{travelled} mm")
        collisions = int(counted.get("collisions_detected", 0))
        figures["collisions"].set_text(str(collisions))
        set_class(figures["collisions"], collisions > 0, "u-alarm")


def _collision_reaction(browser: Browser) -> None:
    """A switch for robots whose contacts are watched."""

    def choice(reaction: str) -> ui.button:
        hint = browser.texts(f"metrics.{reaction}_hint")
        made = button(browser.texts(f"metrics.{reaction}"), kind="u-small", hint=hint)
        made.props(f'data-reaction="{reaction}"')
        return made.on_click(lambda: browser.robot_command("on_collision", {"reaction": reaction}))

    with ui.element("div").classes("u-inline u-reaction") as row:
        ui.label(browser.texts("metrics.on_collision")).classes("u-caption")
        choices = {reaction: choice(reaction) for reaction in ("report", "stop")}
    operator_only(browser, row, on_real=False)

    @browser.on_update
    def update() -> None:
        now = browser.part("collision").get("on_collision")
        row.set_visibility(now is not None)
        for reaction, made in choices.items():
            set_class(made, reaction == now, "u-chosen")


# ── faults ──


def fault_buttons(browser: Browser) -> None:
    """A button for each fault that can be injected into the robot or its devices."""
    buttons = ui.element("div").classes("u-faults u-simulated")
    operator_only(browser, buttons, on_real=False)

    def fill(faults: list[tuple[str, str]]) -> None:
        for fault, place in sorted(faults, key=lambda each: "." not in each[1]):
            _fault_button(browser, fault, place)  # devices first, then the robot itself

    keep_filled(browser, buttons, lambda: browser.cell.faults_of(browser.robot), fill)


def _fault_button(browser: Browser, fault: str, place: str) -> None:
    facts = browser.cell.faults[fault]
    with ui.element("div").classes("u-fault"):
        inject = button(
            browser.texts.of("fault", fault),
            kind="u-wide",
            hint=browser.texts.translated("fault_doc", facts["doc"]),
        )
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


# ── set-up: environment, snapshots and links between pins ──


def setup(browser: Browser) -> None:
    with ui.element("div").classes("u-setup u-simulated") as place:
        texts = {key: browser.texts(f"setup.{key}") for key in SETUP_TEXTS}
        place.props["data-texts"] = json.dumps(texts)
        _folder(browser)
        _environment(browser)
        _snapshots(browser)
        _links(browser)
    operator_only(browser, place, on_real=False)


def _section(browser: Browser, name: str) -> ui.element:
    return card(browser.texts(f"setup.{name}"), "u-setup-card", mark=f"setup-{name}")


def _field(browser: Browser, text: str, value: str = "", mark: str = "") -> ui.input:
    field = ui.input(browser.texts(text), value=value).classes("u-setup-field")
    return field.props(f"dense outlined data-mark={mark}")


def _done(browser: Browser, answer: Any, text: str, **figures: object) -> None:
    """A notice about a command that was carried out; a refusal has a notice of its own."""
    if answer is not None:
        message = browser.texts(text).format(**figures)
        browser.notice(message, "positive")


def _folder(browser: Browser) -> None:
    """The folder of the files that the fields below name."""
    shown = ui.label().classes("u-caption u-setup-folder").props("data-mark=files-folder")

    @browser.on_update
    def update() -> None:
        folder = browser.cell.status.get("files", "")
        shown.set_text(browser.texts("setup.folder").format(folder=folder))


def _here(browser: Browser, name: str, call: str) -> None:
    """A button for a file of the browser's own machine (setup.js)."""
    mark = name.replace("_", "-")
    button(browser.texts(f"setup.{name}"), mark=mark, script=f"understudySetup.{call}()")


def _environment(browser: Browser) -> None:
    """The objects of the cell; a file replaces them, *Reload* reads the cell's own files again."""
    with _section(browser, "environment"):
        count = ui.label().classes("u-caption").props("data-mark=environment-count")
        file = _field(browser, "setup.file", mark="environment-file")

        async def send(command: str, parameters: dict[str, Any]) -> None:
            answer = await browser.command(command, parameters)
            objects = len(answer["objects"]) if answer else 0
            _done(browser, answer, "setup.loaded", count=objects)

        with ui.element("div").classes("u-inline"):
            load = button(browser.texts("setup.load"), mark="environment-load")
            load.on_click(lambda: send("load_environment", {"file": file.value}))
            again = button(browser.texts("setup.reload"), mark="environment-reload")
            again.on_click(lambda: send("reload_environment", {}))
            _here(browser, "environment_upload", "environment")

    @browser.on_update
    def update() -> None:
        objects = browser.cell.environment.get("objects", ())
        names = ", ".join(each["name"] for each in objects)
        count.set_text(browser.texts("setup.objects").format(count=len(objects), names=names))


def _snapshots(browser: Browser) -> None:
    """Saves and restores the state of the cell: in a file of the cell's folder, or of the machine
    of the browser."""
    with _section(browser, "snapshot"):
        ui.label(browser.texts("setup.snapshot_hint")).classes("u-caption")
        file = _field(browser, "setup.file", SNAPSHOT_FILE, mark="snapshot-file")

        async def save() -> None:
            answer = await browser.command("snapshot", {"file": file.value})
            _done(browser, answer, "setup.saved", file=(answer or {}).get("file", ""))

        async def restore() -> None:
            answer = await browser.command("restore", {"file": file.value})
            seconds = fixed(answer["now_s"], 2) if answer else ""
            _done(browser, answer, "setup.restored", seconds=seconds)

        with ui.element("div").classes("u-inline"):
            button(browser.texts("setup.save"), mark="snapshot-save").on_click(save)
            button(browser.texts("setup.restore"), mark="snapshot-restore").on_click(restore)
        with ui.element("div").classes("u-inline"):
            _here(browser, "snapshot_download", "download")
            _here(browser, "snapshot_upload", "upload")


def _links(browser: Browser) -> None:
    """The links of the robot's pins: listed, removed and added."""
    with _section(browser, "links") as section:
        rows = ui.element("div").classes("u-links")
        with ui.element("div").classes("u-link-form"):
            output = _pin_choice(browser, "output")
            input_ = _pin_choice(browser, "input")
            delay = ui.number(
                browser.texts("setup.delay"), value=0, min=0, max=LONGEST_DELAY_MS
            ).props("dense outlined data-mark=link-delay")
            invert = ui.switch(browser.texts("setup.invert")).classes("u-switch")
            add = button(browser.texts("setup.add"), mark="link-add")

        async def link() -> None:
            given = {"output": output.value, "input": input_.value, "invert": invert.value}
            await browser.robot_command("link", {**given, "delay_ms": float(delay.value or 0)})

        add.on_click(link)

    def pins() -> Mapping[str, Any]:
        return browser.cell.pins.get(browser.robot, {}) if browser.can("io") else {}

    def fill(found: tuple[str, list[Any]]) -> None:
        _, links = found
        output.set_options([pin["name"] for pin in pins().get("digital_outputs", ())])
        input_.set_options([pin["name"] for pin in pins().get("digital_inputs", ())])
        for each in links:
            _link_row(browser, each)
        if not links:
            ui.label(browser.texts("setup.no_links")).classes("u-caption")

    keep_filled(browser, rows, lambda: (browser.robot, pins().get("links", [])), fill)
    browser.on_update(lambda: section.set_visibility(bool(pins())))


def _pin_choice(browser: Browser, side: str) -> ui.select:
    choice = ui.select([], label=browser.texts(f"setup.{side}")).classes("u-setup-field")
    return choice.props(f"dense outlined popup-content-class=u-menu data-mark=link-{side}")


def _link_row(browser: Browser, link: Mapping[str, Any]) -> None:
    row = ui.element("div").classes("u-link")
    row.props["data-link"] = link["output"]
    with row:
        inverted = browser.texts("setup.inverted") if link["invert"] else ""
        delay = f"{link['delay_ms']:g} ms" if link["delay_ms"] else ""
        ui.label(f"{link['output']} → {link['input']}").classes("u-link-pins")
        ui.label(" · ".join(each for each in (delay, inverted) if each)).classes("u-caption")
        gone = button("", icon="delete", hint=browser.texts("setup.unlink"), kind="u-small")
        gone.on_click(lambda: browser.robot_command("unlink", {"output": link["output"]}))


PAGE = Page(
    name="cell",
    key="F1",
    icon="precision_manufacturing",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, EDIT_SCRIPT, "setup.js"),
    styles=("cell.css",),
    keys=KEYS | EDIT_KEYS,
)
