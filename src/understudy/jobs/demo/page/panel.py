"""The demo panel: break something, send a robot a line, copy a client."""

from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, card, operator_only, set_class
from understudy.hmi.link import LinkError
from understudy.hmi.page import Panel

LOOK_SECONDS = 1.0
LANGUAGES = ("py", "mjs", "cs", "sh")
PARTS = ("break", "talk", "copy")
CHOICE = "dense outlined options-dense popup-content-class=u-menu"


def demo_panel(browser: Browser) -> None:
    DemoPanel(browser)


class DemoPanel:
    """Three buttons; each opens its part below, one at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._state: Mapping[str, Any] = {}
        self._open = ""
        self._commands = 0
        """Grows when a command begins and ends: an answer asked for before it is old."""
        texts = browser.texts
        with card(texts("demo.title"), "u-demo u-simulated", mark="demo") as place:
            with ui.element("div").classes("u-demo-line"):
                self._line = ui.label().classes("u-caption").props("data-mark=demo-state")
                self._loop = button(
                    texts("demo.loop"),
                    icon="loop",
                    kind="u-small",
                    hint=texts("demo.loop_hint"),
                    mark="demo-loop",
                )
                self._loop.on_click(self._switch)
            with ui.element("div").classes("u-demo-buttons"):
                self._buttons = {name: self._part_button(name) for name in PARTS}
            self._parts = {name: ui.element("div").classes("u-demo-part") for name in PARTS}
            with self._parts["break"]:
                self._build_break()
            with self._parts["talk"]:
                self._build_talk()
            with self._parts["copy"]:
                self._build_copy()
            ui.timer(LOOK_SECONDS, self._look)
        operator_only(browser, place, on_real=False)
        self._show_open()

    def _part_button(self, name: str) -> ui.button:
        made = button(self._browser.texts(f"demo.{name}"), mark=f"demo-{name}")
        return made.on_click(lambda: self._choose(name))

    async def _choose(self, name: str) -> None:
        """Opens a part, or closes it; *Break something* acts at once."""
        broken = self._state.get("broken")
        if name == "break" and not broken:
            await self._command("break_something")
            if not self._state.get("broken"):  # refused: another page has broken something
                await self._look()
            self._open = name if self._state.get("broken") else ""
        else:
            self._open = "" if self._open == name else name
        self._show_open()
        if self._open == "copy":
            await self._show_client()

    def _show_open(self) -> None:
        for name, part in self._parts.items():
            part.set_visibility(name == self._open)
            set_class(self._buttons[name], name == self._open, "u-chosen")

    async def _switch(self) -> None:
        await self._command("run_demo", {"on": not self._state.get("runs")})

    async def _command(self, name: str, given: dict[str, Any] | None = None) -> None:
        self._commands += 1
        answer = await self._browser.command(name, given)
        self._commands += 1
        if answer is not None:
            self._show(answer)

    # ── state ──

    async def _look(self) -> None:
        if not self._browser.cell.alive:
            return
        begun = self._commands
        answer = await self._browser.query("demo")
        if answer is not None and begun == self._commands:  # or it may be older than the command
            self._show(answer)

    def _show(self, state: Mapping[str, Any]) -> None:
        first = not self._state
        self._state = state
        texts = self._browser.texts
        held = ", ".join(state["held_s"])
        words = texts("demo.runs" if state["runs"] else "demo.stands")
        if held and state["runs"]:
            words = texts("demo.held").format(robots=held)
        self._line.set_text(words)
        set_class(self._loop, state["runs"], "u-chosen")
        self._show_broken(state["broken"])
        if first:
            robots = [wire["robot"] for wire in state["wires"]]
            for choice in (self._robot, self._client_robot):
                choice.set_options(robots, value=robots[0] if robots else None)

    # ── break something ──

    def _build_break(self) -> None:
        texts = self._browser.texts
        self._what = ui.label().classes("u-demo-what").props("data-mark=demo-what role=status")
        self._seen = ui.label().props("data-mark=demo-seen")
        self._now = ui.label().classes("u-caption").props("data-mark=demo-now")
        self._mend = button(texts("demo.mend"), icon="build", kind="u-go", mark="demo-mend")
        self._mend.on_click(self._mend_it)

    async def _mend_it(self) -> None:
        await self._command("mend")
        self._browser.notice(self._browser.texts("demo.mended"), "positive")

    def _show_broken(self, broken: Mapping[str, Any] | None) -> None:
        texts = self._browser.texts
        if broken is None:
            if self._open == "break":
                self._open = ""
                self._show_open()
            return
        name = broken["name"]
        self._what.set_text(texts.of("demo_break", name))
        self._seen.set_text(texts.of("demo_seen", name))
        word = broken["state"].partition(":")[0]  # grblHAL adds a number: Hold:0
        state = texts.of("state", word)
        now = texts("demo.seen").format(robot=broken["robot"], state=state)
        error = texts.of_cell(broken["error"])
        self._now.set_text(f"{now}: {error}" if error else now)

    # ── send it a line ──

    def _build_talk(self) -> None:
        texts = self._browser.texts
        with ui.element("div").classes("u-demo-choice"):
            self._robot = ui.select([], label=texts("demo.robot")).props(CHOICE)
            self._robot.props("data-mark=demo-robot").on_value_change(self._show_wire)
            self._example = ui.select([], label=texts("demo.example")).props(CHOICE)
            self._example.props("data-mark=demo-example").on_value_change(self._use_example)
        self._place = ui.label().classes("u-caption").props("data-mark=demo-place")
        self._typed = ui.input(texts("demo.line")).props("dense outlined data-mark=demo-typed")
        self._typed.classes("u-demo-wide").on("keydown.enter", self._send)
        send = button(texts("demo.send"), icon="send", mark="demo-send")
        send.on_click(self._send)
        self._answer = ui.element("pre").classes("u-demo-text").props("data-mark=demo-answer")
        self._answer.set_visibility(False)

    def _wire(self) -> Mapping[str, Any]:
        wires = self._state.get("wires", ())
        return next((each for each in wires if each["robot"] == self._robot.value), {})

    def _show_wire(self) -> None:
        wire, texts = self._wire(), self._browser.texts
        if not wire:
            return
        lines, meanings = wire["lines"], wire["meaning"]
        named = {line: (meanings[n] if n < len(meanings) else line) for n, line in enumerate(lines)}
        self._example.set_options(named, value=lines[0] if lines else None)
        self._place.set_text(
            texts("demo.at").format(**wire) if wire["open"] else texts("demo.closed")
        )

    def _use_example(self) -> None:
        self._typed.value = self._example.value or ""

    async def _send(self) -> None:
        if not self._typed.value:
            return
        given = {"robot": self._robot.value, "line": self._typed.value}
        answer = await self._browser.attempt("send_line", given)
        texts = self._browser.texts
        if isinstance(answer, LinkError):
            rows = [texts.of_cell(answer.message)]
        else:
            rows = [f"> {line}" for line in answer["sent"]]
            rows += [f"< {line}" for line in answer["answer"]] or [texts("demo.silent")]
            for fields in answer["meaning"]:
                words = ", ".join(f"{key} {value}" for key, value in fields.items())
                rows.append(f"{texts('demo.means')}: {words}")
        self._answer.clear()
        with self._answer:
            ui.label("\n".join(rows))
        self._answer.set_visibility(True)

    # ── copy the client ──

    def _build_copy(self) -> None:
        texts = self._browser.texts
        names = {name: texts(f"demo.language_{name}") for name in LANGUAGES}
        with ui.element("div").classes("u-demo-choice"):
            self._client_robot = ui.select([], label=texts("demo.robot")).props(CHOICE)
            self._client_robot.props("data-mark=demo-client-robot")
            self._client_robot.on_value_change(self._show_client)
            self._copy = button(texts("demo.to_clipboard"), icon="content_copy", mark="demo-take")
            self._copy.on_click(self._take)
        self._language = ui.toggle(names, value=LANGUAGES[0]).classes("u-toggle")
        self._language.props("data-mark=demo-language no-caps unelevated")
        self._language.props("toggle-color=blue-grey-2 toggle-text-color=black")
        self._language.on_value_change(self._show_client)
        self._client = ui.element("pre").classes("u-demo-text").props("data-mark=demo-client")
        self._text = ""

    async def _show_client(self) -> None:
        if not self._client_robot.value or self._open != "copy":
            return
        given = {"robot": self._client_robot.value, "language": self._language.value}
        answer = await self._browser.query("demo_client", given)
        self._text = "" if answer is None else answer["text"]
        self._client.clear()
        with self._client:
            ui.label(self._text)

    async def _take(self) -> None:
        texts = self._browser.texts
        text, done, failed = (
            dumps(each) for each in (self._text, texts("demo.copied"), texts("demo.not_copied"))
        )
        ui.run_javascript(
            f"navigator.clipboard.writeText({text}).then("
            f"() => window.understudyFrame.notice({done}, 'positive'),"
            f"() => window.understudyFrame.notice({failed}, 'info'))"
        )


PANEL = Panel(
    name="demo",
    build=demo_panel,
    folder=Path(__file__).parent,
    styles=("demo.css",),
    page="cell",
    needs="demo",
)
