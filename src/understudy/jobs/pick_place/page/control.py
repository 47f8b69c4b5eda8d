"""Control and figures of the job: state, START … RESET, statistics, gripper, pallet."""

from collections.abc import Mapping
from typing import Any

from nicegui import ui

from understudy.hmi.figures import fixed
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import (
    button,
    dialog_answers,
    operator_only,
    progress_bar,
    set_class,
    temporary_dialog,
)
from understudy.hmi.pages.cell.devices import device_panel
from understudy.hmi.texts import cell_text, dictionary

SEVERITY = {"IDLE": "calm", "PAUSED": "held", "ERROR": "alarm"}
"""Colour of a state; every other one is busy."""
FIGURES = ("cycle_count", "success_count", "fail_count", "rate")
TIMES = ("last_s", "mean_s", "shortest_s", "longest_s")


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

    browser.on_update(update)


def _in_words(browser: Browser, job: Mapping[str, Any]) -> str:
    words = browser.texts(f"pick_place.states.{job['state']}")
    return words.format(state=job["paused_in"]) if job["paused_in"] else words


def _cycle(browser: Browser, job: Mapping[str, Any]) -> str:
    """Number of the cycle, cycles that follow, target, and attempts that failed."""
    texts, target = browser.texts, job["current_target"]
    parts = [texts("pick_place.cycle").format(number=job["cycle_count"])]
    if job["running"] and job["cycles_left"] >= 0:
        parts.append(texts("pick_place.left").format(count=job["cycles_left"]))
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
    texts, code, text = browser.texts, job["code"], job["last_error"]
    if code:
        advice = f"pick_place.advice.{code}"
        sent = cell_text(dictionary()[advice])
        return texts.of_cell(text.replace(f"; {sent}", "")), texts(advice)
    if job["running"] or not job["reason"]:
        return texts.of_cell(text), ""
    end = "STOPPED_HOLDING" if job["reason"] == "STOPPED" and job["holding"] else job["reason"]
    sent = cell_text(dictionary()[f"pick_place.ends.{end}"])
    problem = text.replace(f"; {sent}", "") or job["reason"]
    return texts.of_cell(problem), texts(f"pick_place.ends.{end}")


# ── control ──


def control(browser: Browser) -> None:
    """Buttons of the cycle. None is disabled by the state: the cell says why it refuses."""
    with ui.element("section").classes("u-pick-buttons") as row:
        start = _command(browser, "start", "p", "play_arrow", "start_pick_place", "u-go")
        _command(browser, "single", "n", "looks_one", "single_pick_place")
        hold = _command(browser, "pause", "h", "pause", "pause_pick_place")
        resume = _command(browser, "resume", "h", "play_circle", "resume_pick_place", "u-chosen")
        _command(browser, "stop", "s", "stop", "stop_pick_place")
        reset = _command(browser, "reset", "z", "restart_alt", "reset_pick_place")
        _command(browser, "retract", "u", "vertical_align_top", "retract_pick_place")
    operator_only(browser, row, on_real=False)

    def update() -> None:
        job = job_status(browser)
        paused = job.get("state") == "PAUSED"
        hold.set_visibility(not paused)
        resume.set_visibility(paused)
        set_class(start, bool(job.get("running")) and not paused)
        set_class(reset, job.get("state") == "ERROR", "u-wanted")

    browser.on_update(update)


def _command(
    browser: Browser, name: str, key: str, icon: str, command: str, kind: str = ""
) -> ui.button:
    texts = browser.texts
    made = button(
        texts(f"pick_place.{name}"),
        icon=icon,
        key=key,
        kind=kind,
        hint=texts(f"pick_place.{name}_hint"),
        mark=f"pick-{name}",
    )
    return made.on_click(lambda: browser.robot_command(command))


# ── figures ──


def statistics(browser: Browser) -> None:
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-statistics"):
        ui.label(texts("pick_place.statistics")).classes("u-card-title")
        with ui.element("div").classes("u-pick-figures"):
            figures = {name: _figure(browser, name) for name in FIGURES}
        # pick_place.js draws the times of the last cycles
        ui.element("div").classes("u-pick-chart").props("data-mark=cycle-chart")
        times = ui.label().classes("u-caption").props("data-mark=cycle-times")
        classes = ui.label().classes("u-caption").props("data-mark=by-class")

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

    browser.on_update(update)


def _figure(browser: Browser, name: str) -> ui.label:
    with ui.element("div").classes("u-pick-figure"):
        ui.label(browser.texts(f"pick_place.{name}")).classes("u-caption")
        figure = ui.label().classes("u-figure").props(f"data-mark=figure-{name}")
    if name == "success_count":
        figure.classes("u-calm")
    return figure


# ── gripper ──


def gripper(browser: Browser) -> None:
    """The panel of the gripper, as it declares it, with its buttons and faults."""
    card = ui.element("div").classes("u-pick-gripper").props("data-mark=gripper")
    shown: list[str] = [""]

    def update() -> None:
        name = f"{browser.robot}.gripper"
        if shown[0] == name or not any(d["name"] == name for d in browser.cell.devices):
            return
        shown[0] = name
        card.clear()
        with card:
            device_panel(browser, name, title=browser.texts("pick_place.gripper"))

    browser.on_update(update)


# ── pallet ──


def pallet(browser: Browser) -> None:
    """The map of one layer, which pick_place.js draws, and the commands of the pallet."""
    texts = browser.texts
    with ui.element("section").classes("u-card u-pick-pallet").props("data-mark=pallet") as card:
        with ui.element("div").classes("u-pick-head"):
            ui.label(texts("pick_place.pallet")).classes("u-card-title")
            count = ui.label().classes("u-figure").props("data-mark=pallet-count")
        with ui.element("div").classes("u-pick-layers"):
            below = button("▼", kind="u-small", key="k", hint=texts("pick_place.layer_below"))
            below.on("click", js_handler="() => window.pickPlace.layer(-1)")
            ui.label().classes("u-caption").props("data-mark=pallet-layer")
            above = button("▲", kind="u-small", key="l", hint=texts("pick_place.layer_above"))
            above.on("click", js_handler="() => window.pickPlace.layer(1)")
            hint = texts("pick_place.new_pallet")
            empty = button("", icon="restart_alt", kind="u-small", hint=hint, mark="reset-pallet")
            empty.on_click(lambda: _confirm_reset(browser).open())
            operator_only(browser, empty, on_real=False)
        ui.element("div").classes("u-pick-map").props("data-mark=pallet-map")

    def update() -> None:
        now = browser.part("pallet") or browser.part("source_pallet")
        card.set_visibility(bool(now))
        if now:
            count.set_text(f"{now['stacked']} / {now['total']}")

    browser.on_update(update)


def _confirm_reset(browser: Browser) -> ui.dialog:
    texts = browser.texts
    with temporary_dialog() as dialog, ui.card().classes("u-dialog"):
        ui.label(texts("pick_place.new_pallet_question")).classes("u-figure")
        source = not browser.part("pallet")
        if not source:
            ui.label(texts("pick_place.new_pallet_empty"))

        async def reset() -> None:
            dialog.close()
            await browser.robot_command("reset_pallet", {"source": source, "clear": not source})

        do = dialog_answers(browser, dialog, "pick_place.new_pallet", "do-reset-pallet")
        do.on_click(reset)
    return dialog
