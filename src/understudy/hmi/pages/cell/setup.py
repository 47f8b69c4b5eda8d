"""Set-up of the cell: its environment, snapshots, and links between outputs and inputs."""

import json
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from understudy.hmi.figures import fixed
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, operator_only

SNAPSHOT_FILE = "snapshot.json"
LONGEST_DELAY_MS = 60_000
SCRIPT_TEXTS = ("loaded", "restored", "too_large", "not_json")


def setup(browser: Browser) -> None:
    with ui.element("div").classes("u-setup u-simulated") as place:
        texts = {key: browser.texts(f"setup.{key}") for key in SCRIPT_TEXTS}
        place.props["data-texts"] = json.dumps(texts)
        _folder(browser)
        _environment(browser)
        _snapshots(browser)
        _links(browser)
    operator_only(browser, place, on_real=False)


def _section(browser: Browser, name: str) -> ui.element:
    section = ui.element("section").classes("u-card u-setup-card").props(f"data-mark=setup-{name}")
    with section:
        ui.label(browser.texts(f"setup.{name}")).classes("u-card-title")
    return section


def _field(browser: Browser, text: str, value: str = "", mark: str = "") -> ui.input:
    field = ui.input(browser.texts(text), value=value).classes("u-setup-field")
    return field.props(f"dense outlined dark data-mark={mark}")


def _done(browser: Browser, answer: Any, text: str, **figures: object) -> None:
    """A notice about a command that was carried out; a refusal has a notice of its own."""
    if answer is not None:
        message = browser.texts(text).format(**figures)
        ui.notify(message, type="positive", position="top")


# ── environment and snapshots ──


def _folder(browser: Browser) -> None:
    """The folder of the files that the fields below name."""
    shown = ui.label().classes("u-caption u-setup-folder").props("data-mark=files-folder")

    def update() -> None:
        folder = browser.cell.status.get("files", "")
        shown.set_text(browser.texts("setup.folder").format(folder=folder))

    browser.on_update(update)


def _here(browser: Browser, name: str, call: str) -> None:
    """A button for a file of the browser's own machine (setup.js)."""
    made = button(browser.texts(f"setup.{name}"), mark=name.replace("_", "-"))
    made.on("click", js_handler=f"() => window.understudySetup.{call}()")


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

    def update() -> None:
        objects = browser.cell.environment.get("objects", ())
        names = ", ".join(each["name"] for each in objects)
        count.set_text(browser.texts("setup.objects").format(count=len(objects), names=names))

    browser.on_update(update)


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


# ── links ──


def _links(browser: Browser) -> None:
    """The links of the robot's pins: listed, removed and added."""
    with _section(browser, "links") as section:
        rows = ui.element("div").classes("u-links")
        with ui.element("div").classes("u-link-form"):
            output = _pin_choice(browser, "output")
            input_ = _pin_choice(browser, "input")
            delay = ui.number(
                browser.texts("setup.delay"), value=0, min=0, max=LONGEST_DELAY_MS
            ).props("dense outlined dark data-mark=link-delay")
            invert = ui.switch(browser.texts("setup.invert")).classes("u-switch")
            add = button(browser.texts("setup.add"), mark="link-add")

        async def link() -> None:
            given = {"output": output.value, "input": input_.value, "invert": invert.value}
            await browser.robot_command("link", {**given, "delay_ms": float(delay.value or 0)})

        add.on_click(link)

    shown: list[Any] = [None]

    def update() -> None:
        pins = browser.cell.pins.get(browser.robot, {}) if browser.can("io") else {}
        section.set_visibility(bool(pins))
        links = pins.get("links", [])
        if [browser.robot, links] == shown[0]:
            return
        shown[0] = [browser.robot, links]
        output.set_options([pin["name"] for pin in pins.get("digital_outputs", ())])
        input_.set_options([pin["name"] for pin in pins.get("digital_inputs", ())])
        rows.clear()
        with rows:
            for each in links:
                _link_row(browser, each)
            if not links:
                ui.label(browser.texts("setup.no_links")).classes("u-caption")

    browser.on_update(update)


def _pin_choice(browser: Browser, side: str) -> ui.select:
    choice = ui.select([], label=browser.texts(f"setup.{side}")).classes("u-setup-field")
    return choice.props(f"dense outlined dark popup-content-class=u-menu data-mark=link-{side}")


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
