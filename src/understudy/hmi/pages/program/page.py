"""The program page: editor and validation, scene with ghost, and manual operation with the MDI
panel.

Taught points of a robot are the cell's: every browser shows the same. The tool and the frame that
are computed from them are shown beside them.
"""

from collections.abc import Callable, Mapping
from json import dumps
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    button,
    card,
    dialog_answers,
    fixed,
    operator_only,
    page_element,
    set_class,
    tab_panels,
    temporary_dialog,
)
from understudy.hmi.page import Page
from understudy.hmi.pages.program.jog import JOG_KEYS, JogPanel, overrides
from understudy.hmi.scene.scene import SCRIPT, scene, view_buttons
from understudy.hmi.texts import Texts

SCRIPT_TEXTS = {"program": "", "check": "", "violation": "violation_", "library": "library_"}
"""Sections of the texts that program.js uses, and the prefix of their keys there."""
MDI_ICONS = {"running": "hourglass_top", "done": "check", "failed": "error", "refused": "block"}
MDI_SHOWN = 30
KEYS = {
    "library.open": "l",
    "program.open": "o",
    "program.run": "Alt+g",
    "program.runFrom": "Alt+f",
    "program.step": "Alt+n",
    "program.pause": "h",
    "program.stop": "s",
    "check.validate": "v",
    "program.search": "/",
    "program.breakpoint_hint": "b",
    "program.replay": " ",
}


def build(browser: Browser) -> None:
    with page_element(browser, "program", "u-program", script_texts(browser)) as page:
        page.props["data-words"] = dumps(browser.texts.translations("word"))
        page.props["data-phrases"] = dumps(browser.texts.translations("editor"))
        with ui.element("section").classes("u-source"):
            _file(browser)
            _run(browser)
            ui.element("div").classes("u-editor").props('id="editor" data-own-escape')
            _checks(browser)
        splitter = ui.element("div").classes("u-splitter").props("role=separator tabindex=0")
        splitter.props["aria-label"] = browser.texts("program.splitter")
        with ui.element("section").classes("u-scene-area"):
            scene(browser)
            view_buttons(browser, "frames")
            _preview(browser)
        with ui.element("aside").classes("u-panel u-manual"):
            _manual(browser)
    _send_program_state(browser, page)


def script_texts(browser: Browser) -> dict[str, str]:
    """Texts of program.js, in the language of the browser."""
    found = {"line": browser.texts("frame.line")}
    for section, prefix in SCRIPT_TEXTS.items():
        found |= {f"{prefix}{key}": text for key, text in browser.texts.section(section).items()}
    return found


# ── editor and validation ──


def _file(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-file"):
        name = ui.element("input").classes("u-name").props('data-program="name" maxlength=256')
        name.props["placeholder"] = texts("program.unnamed")
        name.props["aria-label"] = texts("program.name")
        library = button(
            "", icon="library_books", key=KEYS["library.open"], hint=texts("library.open")
        )
        _does(library, "library")
        hint = texts("program.open")
        _does(button("", icon="folder_open", key=KEYS["program.open"], hint=hint), "open")
        _does(button("", icon="download", hint=texts("program.download")), "download")
        load = button(texts("program.load"), icon="publish", hint=texts("program.load_hint"))
        operator_only(browser, _does(load, "load"))
    with ui.element("div").classes("u-banner").props('data-program="empty" hidden'):
        ui.label(texts("program.empty"))
        _does(button(texts("program.example"), kind="u-small", mark="open-example"), "library")


def _run(browser: Browser) -> None:
    texts = browser.texts
    actions = {
        "run": ("play_arrow", "u-go"),
        "runFrom": ("start", ""),
        "step": ("skip_next", ""),
        "pause": ("pause", ""),
        "stop": ("stop", ""),
    }
    with ui.element("div").classes("u-run").props("data-mark=run") as place:
        for action, (icon, kind) in actions.items():
            text, key = texts(f"program.{action}"), KEYS[f"program.{action}"]
            _does(button(text, icon=icon, key=key, kind=f"{kind} u-action"), action).props("stack")
    operator_only(browser, place)
    with ui.element("div").classes("u-banner").props('data-program="lost" hidden') as lost:
        ui.label().props("data-program=lost-words")
        overlap = ui.element("input").classes("u-overlap").props("data-program=overlap")
        overlap.props["aria-label"] = texts("program.overlap")
        overlap.props("type=number min=0 max=1000 step=1 value=5")
        ui.label(texts("program.overlap_mm")).classes("u-caption")
        hint = texts("program.continue_hint")
        go_on = button(texts("program.continue"), kind="u-small", hint=hint).style("flex: none")
        _does(go_on, "continueWeld")
    operator_only(browser, lost)
    with ui.element("div").classes("u-state-line"):
        ui.element("div").classes("u-run-state").props("data-program=state data-mark=run-state")
        with ui.element("div").classes("u-draft").props('data-program="banner" hidden') as draft:
            draft.props["title"] = texts("program.draft_hint")
            ui.label(texts("program.draft"))
            _does(button(texts("program.revert"), kind="u-small"), "revert")


def _does(each: ui.button, action: str) -> ui.button:
    """Calls program.js on a click: the text is in the browser and need not be sent here first."""
    each.on("click", js_handler=f"() => window.program.{action}()")
    return each.props(f'data-does-program="{action}"')


def _checks(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("div").classes("u-checks").props("id=checks data-mark=checks"):
        with ui.element("div").classes("u-check-bar"):
            validate = button(texts("check.validate"), icon="verified", key=KEYS["check.validate"])
            operator_only(browser, _does(validate, "validate"))
            ui.element("div").props('data-check="verdict"').classes("u-verdict")
            cancel = button("", icon="close", hint=texts("check.cancel"))
            cancel.props('data-check="cancel"')
            operator_only(browser, cancel)
            _does(_with_icon(texts, "program.search", "search"), "search")
            stop_here = _does(_with_icon(texts, "program.breakpoint_hint", "adjust"), "breakpoint")
            operator_only(browser, stop_here)
        ui.element("div").classes("u-check-progress").props('data-check="bar"')
        ui.element("div").classes("u-check-list").props('data-check="list"')


def _with_icon(texts: Texts, does: str, icon: str) -> ui.button:
    return button("", icon=icon, key=KEYS[does], hint=texts(does))


# ── preview ──


def _preview(browser: Browser) -> None:
    """Timeline of the simulated run; preview.js moves it."""
    texts = browser.texts
    strip = ui.element("div").classes("u-preview").props("id=preview data-mark=preview")
    with strip.props("data-covers=bottom"):
        key, hint = KEYS["program.replay"], texts("program.replay")
        play = button("", icon="play_arrow", key=key, hint=hint)
        play.props('data-preview="play"')
        with ui.element("div").classes("u-strip"):
            ui.element("canvas")
            slide = ui.element("input").props("type=range min=0 step=any")
            slide.props["aria-label"] = texts("program.timeline")
        ui.element("div").classes("u-figure u-preview-readout").props('data-preview="readout"')
        close = button("", icon="visibility_off", hint=texts("program.hide_ghost"))
        close.props('data-preview="close"')
        ui.label(texts("program.no_preview")).classes("u-no-preview")


# ── manual operation ──


def _manual(browser: Browser) -> None:
    overrides(browser)
    points = TaughtPoints(browser)
    contents: dict[str, Callable[[], object]] = {
        "jog": lambda: JogPanel(browser),
        "points": lambda: PointPanel(browser, points),
        "teach": lambda: teach_panel(browser, points),
        "mdi": lambda: MdiPanel(browser),
    }
    panels = {name: (browser.texts(f"manual.{name}"), build) for name, build in contents.items()}
    for panel in tab_panels(panels, keep_alive=True).values():
        operator_only(browser, panel)


class MdiPanel:
    """A field for one line in the language of the robot, and the history, the newest on top.

    A click on a line takes it again; arrow up and down in the field go through the history."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._entries: list[Mapping[str, Any]] = []
        self._asked = False
        self._back = 0
        self._build()
        browser.on_robot_change(self._other_robot)
        browser.on_update(self._refresh)

    def _build(self) -> None:
        texts = self._browser.texts
        ui.label(texts("mdi.hint")).classes("u-caption")
        with ui.element("div").classes("u-inline"):
            self._line = ui.input(placeholder=texts("mdi.line")).classes("u-input u-mdi-line")
            self._line.props("outlined dense maxlength=256 autocomplete=off spellcheck=false")
            self._line.props('data-mark=mdi-line input-class="u-mdi-text"')
            self._line.on("keydown.enter", self._send)
            self._line.on("keydown.up.prevent", lambda: self._recall(1))
            self._line.on("keydown.down.prevent", lambda: self._recall(-1))
            send = button(texts("mdi.send"), icon="keyboard_return", kind="u-go", mark="mdi-send")
            send.on_click(self._send)
        self._rows = ui.element("div").classes("u-mdi-rows").props("data-mark=mdi-history")
        self._show()

    def _other_robot(self) -> None:
        self._entries, self._back, self._asked = [], 0, False
        self._show()

    def _refresh(self) -> None:
        """Requests the history at first, and while the last line is carried out."""
        running = bool(self._entries) and self._entries[-1]["state"] == "running"
        if self._browser.facts and (running or not self._asked):
            self._asked = True
            self._browser.ask("mdi_history", lambda answer: self._set(answer["entries"]))

    async def _send(self) -> None:
        line = (self._line.value or "").strip()
        if not line:
            return
        self._back = 0
        answer = await self._browser.robot_command("mdi", {"line": line})
        if answer is not None:
            if answer["state"] != "refused":
                self._line.set_value("")
            self._set([*self._entries, answer])

    def _recall(self, step: int) -> None:
        lines = list(dict.fromkeys(entry["line"] for entry in reversed(self._entries)))
        self._back = max(0, min(self._back + step, len(lines)))
        self._line.set_value(lines[self._back - 1] if self._back else "")

    def _set(self, entries: list[Mapping[str, Any]]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._show()

    def _show(self) -> None:
        self._rows.clear()
        with self._rows:
            for entry in reversed(self._entries[-MDI_SHOWN:]):
                self._row(entry)
            if not self._entries:
                ui.label(self._browser.texts("mdi.none")).classes("u-caption")

    def _row(self, entry: Mapping[str, Any]) -> None:
        state = entry["state"]
        with ui.element("button").classes(f"u-mdi-row u-mdi-{state}") as row:
            row.props["data-state"] = state
            ui.icon(MDI_ICONS[state])
            with ui.element("div"):
                ui.label(entry["line"]).classes("u-mdi-text")
                texts = self._browser.texts
                answer = texts.of_cell(entry["answer"]) or texts(f"mdi.{state}")
                ui.label(answer).classes("u-caption")
        row.on("click", lambda: self._line.set_value(entry["line"]))


# ── state of the program ──


def _send_program_state(browser: Browser, page: ui.element) -> None:
    """Sends the state of the robot's program to program.js when it changes, with the number of the
    last command of the browser that this state includes."""
    sent: list[Any] = [None]
    included = [0]

    def update() -> None:
        state = browser.cell.status.get("parts", {}).get(f"{browser.robot}.program")
        set_class(page, not state, "u-no-program")
        if [browser.robot, state] != sent[0]:
            sent[0] = [browser.robot, state]
            browser.call_script("program.update", state, included[0])

    def send_again() -> None:
        sent[0] = None
        update()

    async def commanded(event: GenericEventArguments) -> None:
        number = int(event.args)
        await browser.cell.refresh()
        included[0] = max(included[0], number)
        send_again()

    def change_robot() -> None:
        browser.call_script("program.setRobot", browser.robot)
        send_again()

    browser.on_event("program_command", commanded)
    browser.on_robot_change(change_robot)
    browser.on_update(update)


PAGE = Page(
    name="program",
    key="F2",
    icon="code",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "program.js", "jog.js", "splitter.js"),
    styles=("program.css",),
    keys=KEYS | JOG_KEYS,
    skill="program",
)


POSE, JOINTS = "pose_mm_deg", "joints_deg"
POSE_FIELDS = ("X [mm]", "Y [mm]", "Z [mm]", "RX [°]", "RY [°]", "RZ [°]")
POSE_NAMES = ("x", "y", "z", "rx", "ry", "rz")
TCP_POINTS = 4
FRAME_POINTS = ("origin", "on_x", "on_y")
WORK_SYSTEMS = ("G54", "G55", "G56", "G57", "G58", "G59")

Point = Mapping[str, Any]


class TaughtPoints:
    """The points of the chosen robot; calls its listeners when they change."""

    def __init__(self, browser: Browser) -> None:
        self.all: list[Point] = []
        self.undo: Mapping[str, str] | None = None
        """Command and point of the change that can be undone."""
        self._browser = browser
        self._listeners: list[Callable[[list[Point]], None]] = []
        self._requested: object = None
        browser.on_robot_change(lambda: self._set([]))
        browser.on_update(self._request_if_changed)

    def on_change(self, listener: Callable[[list[Point]], None]) -> None:
        """Calls ``listener`` now and after every change."""
        self._listeners.append(listener)
        listener(self.all)

    def find(self, name: str | None) -> Point | None:
        return next((point for point in self.all if point["name"] == name), None)

    def free_name(self) -> str:
        taken = {point["name"] for point in self.all}
        return next(f"P{n}" for n in range(1, len(taken) + 2) if f"P{n}" not in taken)

    def _request_if_changed(self) -> None:
        """The status has a version of the points; another version means that they changed."""
        robot = self._browser.robot
        version = self._browser.cell.status.get("parts", {}).get(f"{robot}.points")
        if version is not None and [robot, version] != self._requested:
            self._requested = [robot, version]
            self._browser.ask("points", self.set)

    def set(self, answer: Any) -> None:
        """The answer to a command about points; None if the command was refused."""
        if answer is not None:
            self._set(answer["points"], answer["undo"])

    def _set(self, points: list[Point], undo: Mapping[str, str] | None = None) -> None:
        if (points, undo) != (self.all, self.undo):
            self.all, self.undo = points, undo
            for listener in self._listeners:
                listener(points)


class PointPanel:
    """Table of the points, and buttons that act on the chosen one."""

    def __init__(self, browser: Browser, points: TaughtPoints) -> None:
        self._browser = browser
        self._points = points
        self._chosen: str | None = None
        self._build()
        points.on_change(lambda all_: self._show())

    def _build(self) -> None:
        texts = self._browser.texts
        with ui.element("div").classes("u-inline"):
            self._name = ui.input(placeholder=texts("points.name")).classes("u-input")
            self._name.props("outlined dense maxlength=64 data-mark=point-name")
            teach = button(texts("points.teach"), icon="add_location", kind="u-go", mark="teach")
            teach.on_click(self._teach)
        self._rows = ui.element("div").classes("u-point-rows").props("data-mark=points")
        with ui.element("div").classes("u-point-buttons"):
            self._buttons = [
                self._button("go_joint", "route", self._go),
                self._button("go_line", "trending_flat", lambda: self._go(line=True)),
                self._button("insert", "post_add", self._insert),
                self._button("touch_up", "my_location", self._touch_up),
                self._button("edit", "tune", self._edit),
                self._button("rename", "edit", self._rename),
                self._button("delete", "delete", self._delete),
            ]
            self._undo = self._button("undo", "undo", self._take_back)

    def _button(self, name: str, icon: str, action: Callable[[], Any]) -> ui.button:
        made = button(self._browser.texts(f"points.{name}"), icon=icon, kind="u-action")
        made.props(f"stack data-mark=point-{name}").on_click(action)
        return made

    def _show(self) -> None:
        if self._points.find(self._chosen) is None:
            self._chosen = self._points.all[-1]["name"] if self._points.all else None
        self._rows.clear()
        with self._rows:
            for point in self._points.all:
                self._row(point)
            if not self._points.all:
                ui.label(self._browser.texts("points.none")).classes("u-caption")
        for each in self._buttons:
            each.set_enabled(self._chosen is not None)
        self._undo.set_enabled(self._points.undo is not None)

    def _row(self, point: Point) -> None:
        chosen = "u-chosen" if point["name"] == self._chosen else ""
        with ui.element("button").classes(f"u-point {chosen}") as row:
            row.props["data-point"] = point["name"]
            ui.label(point["name"]).classes("u-point-name")
            ui.label(figures(point["pose_mm_deg"])).classes("u-point-figures")
        row.on("click", lambda: self._choose(point["name"]))

    def _choose(self, name: str) -> None:
        self._chosen = name
        self._show()

    async def _teach(self) -> None:
        typed = self._take_name()
        name = typed or self._points.free_name()
        answer = await self._browser.robot_command("teach_point", {"name": name})
        if answer is None:
            self._put_back(typed)
        else:
            self._chosen = name
            self._points.set(answer)
            self._show()

    def _take_name(self) -> str:
        """Empties the name field and returns its text."""
        typed = (self._name.value or "").strip()
        self._name.set_value("")
        return typed

    def _put_back(self, typed: str) -> None:
        """Restores the name after a refusal, unless another was typed meanwhile."""
        if not self._name.value:
            self._name.set_value(typed)

    async def _touch_up(self) -> None:
        self._changed(await self._browser.robot_command("touch_up", {"name": self._chosen}))

    def _changed(self, answer: Any) -> None:
        """Shows the points after a change that loses something, with a notice that can undo it."""
        self._points.set(answer)
        if answer is None or answer["undo"] is None:
            return
        text = self._browser.texts(f"points.did_{answer['undo']['command']}")
        text = text.format(name=answer["undo"]["name"])
        label = self._browser.texts("points.undo")
        self._browser.call_script("program.offerUndo", text, label)

    async def _take_back(self) -> None:
        self._points.set(await self._browser.robot_command("undo_point"))

    def _edit(self) -> None:
        point = self._points.find(self._chosen)
        if point is not None:
            CoordinateDialog(self._browser, point, self._changed)

    async def _rename(self) -> None:
        to = self._take_name()
        if not to:
            self._browser.notice(self._browser.texts("points.name_missing"))
            return
        before, self._chosen = self._chosen, to
        answer = await self._browser.robot_command("rename_point", {"name": before, "to": to})
        if answer is None:
            self._chosen = before
            self._put_back(to)
        self._points.set(answer)

    async def _delete(self) -> None:
        self._changed(await self._browser.robot_command("delete_point", {"name": self._chosen}))

    async def _go(self, line: bool = False) -> None:
        await self._browser.robot_command("go_to_point", {"name": self._chosen, "line": line})

    def _insert(self) -> None:
        point = self._points.find(self._chosen)
        if point is None:
            return
        move = straight_to(point, self._browser.facts.get("target_line", ""))
        self._browser.call_script("program.insert", move, point["name"])


class CoordinateDialog:
    """The coordinates of a point: the pose of the tool, or the joints. Opens at once; calls
    ``changed`` with the answer of the cell when the point was changed."""

    def __init__(self, browser: Browser, point: Point, changed: Callable[[Any], None]) -> None:
        self._browser = browser
        self._point = point
        self._changed = changed
        self._fields: list[ui.number] = []
        with temporary_dialog() as self._dialog, ui.card().classes("u-dialog u-coordinates"):
            self._build()
        self._dialog.open()

    def _build(self) -> None:
        texts = self._browser.texts
        has_joints = self._browser.facts.get("joints") and self._point[JOINTS]
        kinds = [POSE, JOINTS] if has_joints else [POSE]
        ui.label(texts("points.edit_title").format(name=self._point["name"])).classes("u-figure")
        self._kind = ui.toggle({kind: texts(f"points.{kind}") for kind in kinds}, value=POSE)
        self._kind.classes("u-toggle").props("no-caps unelevated data-mark=coordinate-kind")
        self._kind.set_visibility(len(kinds) > 1)
        self._kind.on_value_change(self._show)
        self._grid = ui.element("div").classes("u-coordinate-fields")
        self._show()
        apply = dialog_answers(self._browser, self._dialog, "points.apply", "coordinates-apply")
        apply.on_click(self._apply)

    def _show(self) -> None:
        """The fields of the chosen kind, with the point's own values."""
        joints = [f"{joint['name']} [°]" for joint in self._browser.facts.get("joints", ())]
        names = POSE_FIELDS if self._kind.value == POSE else joints
        values = self._point[self._kind.value]
        self._grid.clear()
        with self._grid:
            self._fields = [
                ui.number(name, value=round(value, 3) + 0.0).classes("u-input")
                for name, value in zip(names, values, strict=True)
            ]
        for place, each in enumerate(self._fields):
            each.props(f"outlined dense data-mark=coordinate-{place}")

    async def _apply(self) -> None:
        values = [each.value for each in self._fields]
        if None in values:
            self._browser.notice(self._browser.texts("points.number_missing"))
            return
        given = {"name": self._point["name"], self._kind.value: values}
        answer = await self._browser.robot_command("set_point", given)
        if answer is not None:
            self._dialog.close()
            self._changed(answer)


def figures(pose_mm_deg: list[float]) -> str:
    """A pose as text: `450.0 -100.0 350.0 | 180.0 0.0 0.0`."""
    position, angles = pose_mm_deg[:3], pose_mm_deg[3:]
    return f"{_joined(position)}  |  {_joined(angles)}"


def straight_to(point: Point, target_line: str) -> str:
    """A straight line to the point, in the language of the robot's programs."""
    pose = dict(zip(POSE_NAMES, point["pose_mm_deg"], strict=True))
    joints = {f"j{n}": value for n, value in enumerate(point["joints_deg"], 1)}
    return target_line.format(**{name: _figure(v) for name, v in (pose | joints).items()})


def _joined(values: list[float]) -> str:
    return " ".join(fixed(value, 1) for value in values)


def _figure(value: float) -> str:
    return fixed(value, 3).rstrip("0").rstrip(".")


# ── tool and work frame ──


def teach_panel(browser: Browser, points: TaughtPoints) -> None:
    """Computes a TCP from four points and a work frame from three."""
    _tcp_card(browser, points)
    _frame_card(browser, points)


def _tcp_card(browser: Browser, points: TaughtPoints) -> None:
    """TCP from points with the tip on one spot and different orientations."""
    with _card(browser, "tip"):
        with ui.element("div").classes("u-pairs"):
            wanted = [_point_choice(points, f"{n}", f"tip-{n}") for n in range(1, TCP_POINTS + 1)]
        with ui.element("div").classes("u-actions"):
            compute = _compute_button(browser, "tip")
            use = button(browser.texts("teach.use_tip"), icon="done", mark="use-tip")
        result = ui.label().classes("u-result").props("data-mark=tip-result")
        _measured_note(browser)
    found: list[list[float]] = []
    _show_with_result(browser, use, "set_tcp", found)

    async def run() -> None:
        chosen = _chosen(browser, wanted)
        answer = chosen and await browser.robot_command("tcp_by_four_points", {"points": chosen})
        if answer:
            found[:] = [answer["tcp_mm_deg"][:3]]
            fit = browser.texts("teach.residual").format(mm=answer["residual_mm"])
            result.set_text(f"TCP {figures(answer['tcp_mm_deg'])}\n{fit}")
            browser.refresh()

    async def apply() -> None:
        answer = await browser.robot_command("set_tcp", {"tcp_mm": found[0]})
        if answer:
            result.set_text(f"{browser.texts('teach.in_use')}\n{answer['cell_file']}")

    compute.on_click(run)
    use.on_click(apply)


def _measured_note(browser: Browser) -> None:
    """Note that the current tool uses measured values; a button restores those of the file."""
    with ui.element("div").classes("u-measured").props("data-mark=measured") as place:
        note = ui.label().classes("u-caption")
        back = button(browser.texts("teach.restore_file"), icon="undo", mark="restore-file")
    back.on_click(lambda: browser.robot_command("set_tcp"))

    @browser.on_update
    def update() -> None:
        tool = browser.facts.get("tool", 0)
        place.set_visibility(
            bool(browser.facts.get("tools", {}).get(str(tool), {}).get("measured"))
        )
        note.set_text(browser.texts("teach.measured").format(tool=tool))


def _frame_card(browser: Browser, points: TaughtPoints) -> None:
    """Work frame from its origin, a point on +x and a point on the +y side."""
    with _card(browser, "frame"):
        with ui.element("div").classes("u-triple"):
            wanted = [
                _point_choice(points, browser.texts(f"teach.{name}"), name) for name in FRAME_POINTS
            ]
        with ui.element("div").classes("u-actions"):
            compute = _compute_button(browser, "frame")
        result = ui.label().classes("u-result").props("data-mark=frame-result")
        found: list[list[float]] = []
        _use_frame(browser, found)

    async def run() -> None:
        chosen = _chosen(browser, wanted)
        answer = chosen and await browser.robot_command("frame_by_three_points", {"points": chosen})
        if answer:
            found[:] = [answer["frame_mm_deg"]]
            result.set_text(figures(answer["frame_mm_deg"]))
            browser.refresh()

    compute.on_click(run)


def _use_frame(browser: Browser, found: list[list[float]]) -> None:
    """Stores the frame as one of G54 … G59, and shows the current offset of that one."""
    with ui.element("div").classes("u-actions") as place:
        system = ui.select(list(WORK_SYSTEMS), value=WORK_SYSTEMS[0]).classes("u-input u-system")
        system.props("outlined dense popup-content-class=u-menu data-mark=work-system")
        use = button(browser.texts("teach.use_frame"), icon="done", mark="use-frame")
        origin_only = ui.switch(browser.texts("teach.origin_only")).classes("u-switch")
        origin_only.props("data-mark=origin-only")
    now = ui.label().classes("u-caption").props("data-mark=work-offset")

    async def apply() -> None:
        given = {"system": system.value, "origin_only": origin_only.value}
        await browser.robot_command("set_work_frame", {"frame_mm_deg": found[0], **given})

    def update() -> None:
        place.set_visibility(bool(found) and "base" in browser.facts.get("frames", ()))
        offset = browser.facts.get("work_offsets_mm_deg", {}).get(system.value)
        text = figures(offset) if offset else browser.texts("teach.no_offset")
        now.set_text(f"{system.value}: {text}")

    use.on_click(apply)
    system.on_value_change(update)
    browser.on_robot_change(found.clear)
    browser.on_update(update)


def _show_with_result(
    browser: Browser, action: ui.button, capability: str, found: list[list[float]]
) -> None:
    """Shows a button while there is a result, and for robots that have the capability."""
    browser.on_robot_change(found.clear)
    browser.on_update(lambda: action.set_visibility(bool(found) and browser.can(capability)))


def _compute_button(browser: Browser, mark: str) -> ui.button:
    return button(browser.texts("teach.compute"), icon="calculate", kind="u-go", mark=mark)


def _card(browser: Browser, name: str) -> ui.element:
    made = card(browser.texts(f"teach.{name}"), "u-teach")
    with made:
        ui.label(browser.texts(f"teach.{name}_hint")).classes("u-caption")
    return made


def _point_choice(points: TaughtPoints, label: str, mark: str) -> ui.select:
    choice = ui.select([], label=label).classes("u-input").props(f"data-mark=teach-{mark}")
    choice.props("outlined dense options-dense=false popup-content-class=u-menu")

    def update(all_: list[Point]) -> None:
        names = [point["name"] for point in all_]
        choice.set_options(names, value=choice.value if choice.value in names else None)

    points.on_change(update)
    return choice


def _chosen(browser: Browser, wanted: list[ui.select]) -> list[str] | None:
    """The names of the points; None, and a notice, if some are missing."""
    names = [each.value for each in wanted if each.value]
    if len(names) == len(wanted):
        return names
    browser.notice(browser.texts("teach.missing").format(count=len(wanted)))
    return None
