"""The pick & place page: camera, scene and diagram of the cycle; beside them control, figures,
gripper, pallet, and the modes of operation."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    button,
    card,
    confirm,
    confirm_command,
    fixed,
    keep_filled,
    no_job_notice,
    operator_only,
    page_element,
    progress_bar,
    set_class,
)
from understudy.hmi.page import Page, show_panel
from understudy.hmi.pages.cell.devices import device_panel
from understudy.hmi.scene.scene import SCRIPT, scene, view_buttons
from understudy.hmi.texts import cell_text, dictionary
from understudy.ports.modes import TargetMode
from understudy.ports.object_finder import FINDER

LAYERS = ("environment", "camera", "pallet")
PUSHED = ("state", "paused_in", "cycle_count", "success_count", "fail_count", "running")
"""Values of the job that pick_place.js draws."""
UNUSED = ("last",)
"""Values of vision that pick_place.js asks for itself."""
PICTURES = ("last", "miss", "live")
"""Of the last result, of the last result without objects, and what the camera sees now."""
SEVERITY = {"IDLE": "calm", "PAUSED": "held", "ERROR": "alarm"}
"""Colour of a state; every other one is busy."""
FIGURES = ("cycle_count", "success_count", "fail_count", "rate")
TIMES = ("last_s", "mean_s", "shortest_s", "longest_s")
KEYS = {
    "pick_place.start_hint": "Alt+g",
    "pick_place.single_hint": "Alt+n",
    "pick_place.pause_hint": "h",
    "pick_place.resume_hint": "Alt+h",
    "pick_place.finish_hint": "f",
    "pick_place.stop_hint": "s",
    "pick_place.put_back_hint": "Alt+b",
    "pick_place.reset_hint": "z",
    "pick_place.retract_hint": "Alt+u",
    "pick_place.switch": "t",
    "pick_place.layer_below": "k",
    "pick_place.layer_above": "l",
}


def build(browser: Browser) -> None:
    with page_element(browser, "pick_place", "u-pick"):
        with ui.element("div").classes("u-pick-main"):
            _views(browser)
            ui.element("div").classes("u-cycle").props("data-mark=diagram")
        with ui.element("aside").classes("u-panel u-pick-panel"):
            status(browser)
            control(browser)
            statistics(browser)
            hand(browser)
            pallet(browser)
            modes(browser)
            tools(browser)
            show_panel(browser, "camera")
        no_job_notice(browser, "pick_place", "pick_place.no_job")
    browser.on_change_of(lambda: _facts(browser), partial(browser.call_script, "pickPlace.show"))


def _views(browser: Browser) -> None:
    """Camera and scene: beside each other on a wide screen, else one of them."""
    texts = browser.texts
    with ui.element("div").classes("u-pick-views").props("data-mark=views data-pane=camera"):
        with ui.element("div").classes("u-pick-switch"):
            for pane in ("camera", "scene"):
                text, script = texts(f"pick_place.{pane}"), f"pickPlace.pane({pane!r})"
                select = button(text, kind="u-small", mark=f"pane-{pane}", script=script)
                select.props(f"data-pane-of={pane}")
            hint = texts("pick_place.switch")
            key, script = KEYS["pick_place.switch"], "pickPlace.pane()"
            other = button("⇄", key=key, kind="u-small", hint=hint, script=script)
            other.props("data-pane-switch")
            picture_buttons(browser)
        with ui.element("figure").classes("u-eye"):
            ui.element("div").classes("u-eye-picture").props("data-mark=camera")
            ui.label().classes("u-eye-line").props("data-mark=camera-line")
        with ui.element("div").classes("u-scene-area"):
            scene(browser)
            view_buttons(browser, *LAYERS)


def picture_buttons(browser: Browser) -> None:
    """Buttons over the picture; hidden for a robot without a virtual camera."""
    texts = browser.texts

    def picture(name: str, text: str, script: str) -> None:
        hint = texts(f"pick_place.{text}_hint")
        made = button(
            texts(f"pick_place.{text}"),
            kind="u-small",
            hint=hint,
            mark=f"see-{name}",
            script=script,
        )
        made.props(f"data-picture={name}")

    with ui.element("div").classes("u-eye-buttons") as row:
        for name in PICTURES:
            picture(name, f"picture_{name}", f"pickPlace.picture({name!r})")
        picture("depth", "depth", "pickPlace.depth()")
    browser.on_update(lambda: row.set_visibility(bool(browser.part("camera"))))


def _facts(browser: Browser) -> dict[str, Any]:
    """What pick_place.js draws."""
    job, finder = job_status(browser), browser.part(FINDER)
    target = job.get("current_target") or {}
    return {
        "robot": browser.robot if job else "",
        "job": {name: job[name] for name in PUSHED} if job else None,
        "source": not browser.part("pallet"),
        "target": {key: target[key] for key in ("id", "bbox")} if target else None,
        "camera": bool(browser.part("camera")),
        "pallet": browser.part("pallet") or browser.part("source_pallet") or None,
        "finder": {k: v for k, v in finder.items() if k not in UNUSED} or None,
    }


def job_status(browser: Browser) -> Mapping[str, Any]:
    """The status of the job of the chosen robot; empty if it has none."""
    return browser.part("pick_place")


# ── state ──


def status(browser: Browser) -> None:
    """State in the contract's word and in plain words, cycle, progress, and the last error with
    what to do."""
    with ui.element("section").classes("u-card u-pick-status"):
        with ui.element("div").classes("u-pick-words"):
            word = ui.label().classes("u-pick-state").props("data-mark=cycle-state")
            plain = ui.label().classes("u-quiet").props("data-mark=cycle-words")
        bar = progress_bar("cycle-progress", "light-blue-4")
        cycle = ui.label().classes("u-caption").props("data-mark=cycle-info")
        with ui.element("div").classes("u-pick-error").props("data-mark=last-error") as error:
            what = ui.label().classes("u-pick-what")
            advice = ui.label().classes("u-pick-advice").props("data-mark=advice")

    @browser.on_update
    def update() -> None:
        job = job_status(browser)
        if not job:
            return
        word.set_text(job["state"])
        word.classes(replace=f"u-pick-state u-{SEVERITY.get(job['state'], 'busy')}")
        plain.set_text(_in_words(browser, job))
        bar.set_value(round(job["progress"], 2))
        cycle.set_text(_cycle(browser, job))
        problem, remedy = last_error(browser, job)
        error.set_visibility(bool(problem))
        set_class(error, job["state"] == "ERROR")
        what.set_text(problem)
        advice.set_text(f"→ {remedy}" if remedy else "")


def _in_words(browser: Browser, job: Mapping[str, Any]) -> str:
    words = browser.texts(f"pick_place.states.{job['state']}")
    return words.format(state=job["paused_in"]) if job["paused_in"] else words


def _cycle(browser: Browser, job: Mapping[str, Any]) -> str:
    """Number of the cycle, cycles that follow, target, and attempts that failed."""
    texts, target = browser.texts, job["current_target"]
    parts = [texts("pick_place.cycle").format(number=job["cycle_count"])]
    if job["running"] and job["cycles_left"] >= 0:
        left = "pick_place.left" if job["cycles_left"] else "pick_place.last_cycle"
        parts.append(texts(left).format(count=job["cycles_left"]))
    if target:
        share = f"{target['confidence']:.0%}"
        parts.append(f"{target['class_name']} {share}")
    parts += [
        texts(f"pick_place.{name}").format(count=job[name])
        for name in ("scan_misses", "grip_misses")
        if job[name]
    ]
    return " · ".join(parts)


def last_error(browser: Browser, job: Mapping[str, Any]) -> tuple[str, str]:
    """Why the last cycle failed or the run has ended, and what to do about it."""
    texts, text = browser.texts, job["last_error"]
    end = job["code"] or ("" if job["running"] else job["reason"])
    if not end:
        return texts.of_cell(text), ""
    if end == "STOPPED" and job["holding"]:
        end = "STOPPED_HOLDING"
    key = f"advice.pick_place.{end}"
    key = key if key in dictionary() else f"pick_place.ends.{end}"
    problem = text.replace(f"; {cell_text(dictionary()[key])}", "") or end
    return texts.of_cell(problem), texts(key)


# ── control ──


def control(browser: Browser) -> None:
    """Buttons of the cycle. None is disabled by the state: the cell says why it refuses."""
    with ui.element("section").classes("u-pick-buttons") as row:
        start = _order(browser, "start", "play_arrow", "start_pick_place", "u-go")
        _order(browser, "single", "looks_one", "single_pick_place")
        hold = _command(browser, "pause", "pause", "pause_pick_place")
        resume = _order(browser, "resume", "play_circle", "resume_pick_place", "u-chosen")
        finish = _command(browser, "finish", "last_page", "finish_pick_place")
        _command(browser, "stop", "stop", "stop_pick_place")
        back = _order(browser, "put_back", "undo", "put_back_part")
        reset = _command(browser, "reset", "restart_alt", "reset_pick_place")
        _order(browser, "retract", "vertical_align_top", "retract_pick_place")
    operator_only(browser, row, on_real=False)

    @browser.on_update
    def update() -> None:
        job = job_status(browser)
        paused = job.get("state") == "PAUSED"
        hold.set_visibility(not paused)
        resume.set_visibility(paused)
        set_class(start, bool(job.get("running")) and not paused)
        set_class(finish, bool(job.get("running")) and job.get("cycles_left") == 0)
        back.set_visibility(bool(job.get("goes_on")))
        set_class(reset, job.get("state") == "ERROR", "u-wanted")


def _command(browser: Browser, name: str, icon: str, command: str) -> ui.button:
    made = _button(browser, name, icon)
    return made.on_click(lambda: browser.robot_command(command))


def _order(browser: Browser, name: str, icon: str, command: str, kind: str = "") -> ui.button:
    """A button that starts a motion."""
    return _button(browser, name, icon, kind, script=f"understudyFrame.order({command!r})")


def _button(
    browser: Browser, name: str, icon: str, kind: str = "", *, script: str = ""
) -> ui.button:
    texts, hint = browser.texts, f"pick_place.{name}_hint"
    return button(
        texts(f"pick_place.{name}"),
        icon=icon,
        key=KEYS[hint],
        kind=kind,
        hint=texts(hint),
        mark=f"pick-{name}",
        script=script,
    )


# ── figures ──


def statistics(browser: Browser) -> None:
    texts = browser.texts
    with card(texts("pick_place.statistics"), "u-pick-statistics"):
        with ui.element("div").classes("u-pick-figures"):
            figures = {name: _figure(browser, name) for name in FIGURES}
        # pick_place.js draws the times of the last cycles
        ui.element("div").classes("u-pick-chart").props("data-mark=cycle-chart")
        times = ui.label().classes("u-caption").props("data-mark=cycle-times")
        classes = ui.label().classes("u-caption").props("data-mark=by-class")

    @browser.on_update
    def update() -> None:
        job = job_status(browser)
        if not job:
            return
        ended = job["success_count"] + job["fail_count"]
        share = f"{job['success_count'] / ended:.0%}" if ended else "–"
        for name, figure in figures.items():
            figure.set_text(share if name == "rate" else str(job[name]))
        set_class(figures["fail_count"], job["fail_count"] > 0, "u-alarm")
        taken = job["statistics"]
        spans = {name: fixed(taken[name], 2) for name in TIMES}
        times.set_text(texts("pick_place.times").format(**spans) if taken["last_s"] else "")
        counts = [f"{kind} {count}" for kind, count in taken["by_class"].items()]
        classes.set_text(" · ".join(counts))


def _figure(browser: Browser, name: str) -> ui.label:
    with ui.element("div").classes("u-pick-figure"):
        ui.label(browser.texts(f"pick_place.{name}")).classes("u-caption")
        figure = ui.label().classes("u-figure").props(f"data-mark=figure-{name}")
    if name == "success_count":
        figure.classes("u-calm")
    return figure


# ── hand ──


def hand(browser: Browser) -> None:
    """The panel of the hand, as it declares it, with its buttons and faults."""
    place = ui.element("div").classes("u-pick-hand").props("data-mark=hand")
    shown = [""]

    def found() -> str:
        """The device of the robot that knows whether it has a part; that of the last robot which
        had one."""
        parts = browser.cell.status.get("parts", {})
        names = (each["name"] for each in browser.cell.devices_of(browser.robot))
        able = (name for name in names if "part_detected" in (parts.get(name) or {}))
        shown[0] = next(able, shown[0])
        return shown[0]

    def fill(name: str) -> None:
        if name:
            device_panel(browser, name, title=browser.texts("pick_place.hand"))

    keep_filled(browser, place, found, fill)


# ── pallet ──


def pallet(browser: Browser) -> None:
    """The map of one layer, which pick_place.js draws, and the commands of the pallet."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-pallet").props("data-mark=pallet") as place:
        with ui.element("div").classes("u-pick-head"):
            ui.label(texts("pick_place.pallet")).classes("u-card-title")
            count = ui.label().classes("u-figure").props("data-mark=pallet-count")
        with ui.element("div").classes("u-pick-layers"):
            hint = texts("pick_place.layer_below")
            key, script = KEYS["pick_place.layer_below"], "pickPlace.layer(-1)"
            button("▼", kind="u-small", key=key, hint=hint, script=script)
            ui.label().classes("u-caption").props("data-mark=pallet-layer")
            hint = texts("pick_place.layer_above")
            key, script = KEYS["pick_place.layer_above"], "pickPlace.layer(1)"
            button("▲", kind="u-small", key=key, hint=hint, script=script)
            hint = texts("pick_place.new_pallet")
            empty = button("", icon="restart_alt", kind="u-small", hint=hint, mark="reset-pallet")
            empty.on_click(lambda: _begin_pallet(browser))
            operator_only(browser, empty, on_real=False)
        ui.element("div").classes("u-pick-map").props("data-mark=pallet-map")

    @browser.on_update
    def update() -> None:
        now = browser.part("pallet") or browser.part("source_pallet")
        place.set_visibility(bool(now))
        if now:
            count.set_text(f"{now['stacked']} / {now['total']}")


def _begin_pallet(browser: Browser) -> None:
    """Begins the pallet again, after a question."""
    texts, source = browser.texts, not browser.part("pallet")
    hint = "" if source else texts("pick_place.new_pallet_empty")

    async def reset() -> None:
        await browser.robot_command("reset_pallet", {"source": source, "clear": not source})

    confirm(
        browser,
        texts("pick_place.new_pallet_question"),
        reset,
        answer="pick_place.new_pallet",
        hint=hint,
        mark="do-reset-pallet",
    )


# ── modes of operation ──


def modes(browser: Browser) -> None:
    """The mode of operation; hidden for a robot without modes."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-modes").props("data-mark=modes") as place:
        with ui.element("div").classes("u-pick-head"):
            ui.label(texts("pick_place.mode")).classes("u-card-title")
            word = ui.label().classes("u-figure").props("data-mark=operation-mode")
        with ui.element("div").classes("u-pick-mode-row") as row:
            choices = {mode: _choice(browser, mode) for mode in get_args(TargetMode)}
        operator_only(browser, row, on_real=False)
        change = _changeover(browser)

    @browser.on_update
    def update() -> None:
        now = browser.part("modes")
        place.set_visibility(bool(now))
        if not now:
            return
        settled = now["step"] == "SETTLED"
        word.set_text(now["mode"] if settled else f"{now['mode']} → {now['target']}")
        row.set_visibility(settled)
        change.set_visibility(not settled)
        for mode, choice in choices.items():
            set_class(choice, mode == now["mode"], "u-chosen")


def _choice(browser: Browser, mode: str) -> ui.button:
    name = browser.texts(f"pick_place.modes.{mode}")
    title = browser.texts("pick_place.change_mode").format(mode=name)
    change = partial(_confirm_change, browser, title, "request_mode", {"mode": mode})
    return button(name, kind="u-small", mark=f"mode-{mode}").on_click(change)


async def _confirm_change(
    browser: Browser, title: str, command: str, parameters: dict[str, Any]
) -> None:
    """Asks before the robot moves to its park position and its tool is changed."""
    hint, answer = browser.texts("pick_place.change_mode_hint"), "pick_place.change"
    await confirm_command(
        browser, title, command, parameters, answer=answer, hint=hint, mark="do-change"
    )


def _changeover(browser: Browser) -> ui.element:
    """Step and progress of a changeover, its error, and the commands that it waits for."""
    texts = browser.texts
    with ui.element("div").classes("u-pick-change").props("data-mark=changeover") as change:
        step = ui.label().classes("u-pick-step").props("data-mark=change-step")
        words = ui.label().classes("u-quiet").props("data-mark=change-words")
        bar = progress_bar("change-progress", "amber-5")
        error = ui.label().classes("u-pick-what u-alarm").props("data-mark=change-error")
        with ui.element("div").classes("u-pick-mode-row") as row:
            confirm = button("", kind="u-go", mark="confirm-tool")
            confirm.on_click(lambda: browser.robot_command("confirm_tool"))
            retry = button(texts("pick_place.retry"), mark="retry-change")
            retry.on_click(lambda: browser.robot_command("retry_changeover"))
            abort = button(texts("pick_place.abort"), mark="abort-change")
            abort.on_click(lambda: browser.robot_command("abort_changeover"))
        operator_only(browser, row, on_real=False)

    @browser.on_update
    def update() -> None:
        now = browser.part("modes")
        if not now:
            return
        tool = _tool_name(browser, now["tool"])
        step.set_text(now["step"])
        words.set_text(texts(f"pick_place.steps.{now['step']}").format(tool=tool))
        bar.set_value(round(now["progress"], 2))
        error.set_text(now["error"])
        confirm.set_text(texts("pick_place.mounted").format(tool=tool))
        confirm.set_visibility(now["step"] == "CONFIRM_TOOL")
        retry.set_visibility(now["step"] == "FAILED")

    return change


# ── tools ──


def tools(browser: Browser) -> None:
    """The mounted tool and, with a tool changer, changes at the docks; hidden without tools."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-tools").props("data-mark=tools") as place:
        with ui.element("div").classes("u-pick-head"):
            ui.label(texts("pick_place.tool")).classes("u-card-title")
            word = ui.label().classes("u-figure").props("data-mark=active-tool")
        row = ui.element("div").classes("u-pick-mode-row")
        operator_only(browser, row, on_real=False)
        with ui.element("div").classes("u-pick-change") as change:
            phase = ui.label().classes("u-pick-step").props("data-mark=tool-phase")
            bar = progress_bar("tool-progress", "amber-5")
            error = ui.label().classes("u-pick-what u-alarm").props("data-mark=tool-error")
            cancel = button(texts("pick_place.cancel"), mark="cancel-tool")
            cancel.on_click(lambda: browser.robot_command("cancel_tool_change"))
            operator_only(browser, cancel, on_real=False)
    buttons: dict[int, ui.button] = {}

    def fill(numbers: list[int]) -> None:
        row.clear()
        buttons.clear()
        with row:
            buttons.update({number: _tool_choice(browser, number) for number in numbers})

    @browser.on_update
    def update() -> None:
        table, now = browser.part("tools"), browser.part("tool_change")
        place.set_visibility(bool(table))
        if not table:
            return
        word.set_text(_tool_name(browser, table["active"]))
        numbers = [each["number"] for each in table["tools"]] if now else []
        if numbers != list(buttons):
            fill(numbers)
        for number, choice in buttons.items():
            set_class(choice, number == table["active"], "u-chosen")
        _show_change(now, change, phase, bar, error, cancel)


def _show_change(
    now: Mapping[str, Any],
    change: ui.element,
    phase: ui.label,
    bar: ui.linear_progress,
    error: ui.label,
    cancel: ui.button,
) -> None:
    under_way = bool(now) and now["phase"] != "IDLE"
    change.set_visibility(under_way or bool(now and now["error"]))
    cancel.set_visibility(under_way)
    if now:
        phase.set_text(now["phase"])
        bar.set_value(round(now["progress"], 2))
        error.set_text(now["error"])


def _tool_choice(browser: Browser, number: int) -> ui.button:
    name = _tool_name(browser, number)
    title = browser.texts("pick_place.change_tool").format(tool=name)
    change = partial(_confirm_change, browser, title, "change_tool", {"tool": number})
    return button(name, kind="u-small", mark=f"tool-{number}").on_click(change)


def _tool_name(browser: Browser, number: int) -> str:
    """Number and name of a tool, e.g. `T2 gripper`."""
    rows = browser.part("tools").get("tools", ())
    name = next((each["name"] for each in rows if each["number"] == number), "")
    return f"T{number} {name}".strip()


PAGE = Page(
    name="pick_place",
    key="F5",
    icon="back_hand",
    build=build,
    folder=Path(__file__).parent,
    scripts=(SCRIPT, "pick_place.js"),
    styles=("pick_place.css",),
    needs="pick_place",
    opens_for="pick_place",
    keys=KEYS,
)
