"""Frame around every page: mode, robot, state, alarms, emergency stop and the page tabs.

The frame is built once; a click on a tab replaces the page inside it.
"""

from collections.abc import Iterator, Sequence
from html import escape
from json import dumps
from pathlib import Path

from nicegui import ui
from nicegui.events import GenericEventArguments

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.cell_state import robot_state
from understudy.hmi.frame.widgets import button, clear, confirm_command, operator_only, set_class
from understudy.hmi.page import Page
from understudy.hmi.texts import LANGUAGES, dictionary
from understudy.ports.refusals import INHIBITED, NOT_CONNECTED, NOT_ENABLED

KEYS = {
    "frame.emergency_stop": "Escape",
    "frame.drives": "Alt+d",
    "frame.clear_alarms": "r",
    "frame.keys": "?",
}
"""Text of what each key of the frame does, and the key."""
KEY_TEXTS = ("title", "close", "escape", "alt", "held", "space")
"""Texts of the list of keys, which keys.js shows."""

REMEDIES = (
    (NOT_ENABLED.reason, "drives_on", "enable"),
    (NOT_CONNECTED.reason, "drives_on", "enable"),
    (INHIBITED.reason, "start", "start"),
)
"""Part of a refusal, the name of the texts of the remedy that is offered, and its command."""


def frame(browser: Browser, pages: Sequence[Page], first: Page) -> None:
    """Header, tab bar, and the page that is opened first."""
    ui.query("body").classes("u-body")
    with ui.header(elevated=False).classes("u-header"):
        ui.element("div").classes("u-band")
        with ui.row(wrap=False).classes("u-bar"):
            _mode(browser)
            _robots(browser)
            _state(browser)
            _drives(browser)
            _alarm(browser)
            _stop(browser)
    with ui.left_drawer(value=True, fixed=True, bordered=False).props("width=92 behavior=desktop"):
        tabs = _tabs(browser, pages)
        _languages(browser)
    _notices(browser)
    content = ui.element("main").classes("u-page")

    def show(page: Page) -> None:
        for name, tab in tabs.items():
            set_class(tab, name == page.name, "u-chosen")
        browser.leave()
        content.clear()
        with content, ui.element("div").classes("u-page-root").props(f'data-page="{page.name}"'):
            page.build(browser)

    def change(event: GenericEventArguments) -> None:
        """frame.js has loaded the scripts of the page and changed the address."""
        name, robot = event.args
        found = next((page for page in pages if page.name == name), None)
        if found is not None:
            if robot in browser.cell.robots and robot != browser.robot:
                browser.choose(robot)  # back to a page of another robot
            show(found)

    ui.on("page_change", change)
    show(first)
    browser.start_updates()


def first_paint(browser: Browser, pages: Sequence[Page]) -> str:
    """HTML of the frame, which the browser shows until its scripts have built the real one. Nothing
    in it can be pressed: the emergency stop is not there before it works."""
    texts, real = browser.texts, browser.is_real
    mode = texts("frame.real" if real else "frame.simulation")
    hint = texts("frame.real_hint" if real else "frame.simulation_hint")
    titles = (escape(texts(f"{page.name}.title")) for page in pages)
    tabs = "".join(f'<div class="u-first-tab">{title}</div>' for title in titles)
    return (
        f'<div class="u-first {"u-real" if real else "u-simulation"}" aria-hidden="true">'
        f'<div class="u-band"></div><div class="u-bar"><div class="u-mode">'
        f'<div class="u-mode-word">{escape(mode)}</div>'
        f'<div class="u-mode-hint">{escape(hint)}</div></div>'
        f'<div class="u-field"><div class="u-caption">{escape(texts("frame.robot"))}</div>'
        f'<div class="u-first-robot">{escape(browser.robot)}</div></div></div>'
        f'<div class="u-first-tabs">{tabs}</div></div>'
    )


def _mode(browser: Browser) -> None:
    """Badge SIMULATION or REAL; a click changes over if a real robot is configured."""
    badge = ui.element("button").classes("u-mode").props("data-mark=mode")
    with badge:
        word = ui.label().classes("u-mode-word")
        hint = ui.label().classes("u-mode-hint")
    operator_only(browser, badge)

    async def change_over() -> None:
        if browser.facts.get("real"):
            await _change_over(browser)

    badge.on("click", change_over)

    @browser.on_update
    def update() -> None:
        real = browser.is_real
        word.set_text(browser.texts("frame.real" if real else "frame.simulation"))
        hint.set_text(browser.texts("frame.real_hint" if real else "frame.simulation_hint"))
        ui.query("body").classes(
            add="u-real" if real else "u-simulation", remove="u-simulation" if real else "u-real"
        )


async def _change_over(browser: Browser) -> None:
    """Changes the mode after a question, since another robot moves afterwards."""
    to = "simulation" if browser.is_real else "real"
    question = browser.texts(f"mode.to_{to}").format(robot=browser.robot)
    hint = browser.texts(f"mode.{to}_warning")
    given = {"mode": to}
    await confirm_command(
        browser, question, "set_mode", given, answer="mode.do", hint=hint, mark="change-over"
    )


def _robots(browser: Browser) -> None:
    with ui.element("div").classes("u-field"):
        ui.label(browser.texts("frame.robot")).classes("u-caption")
        choice = ui.select([browser.robot], value=browser.robot).classes("u-robot")
        choice.props("dense borderless popup-content-class=u-menu data-mark=robot")
        blur = "() => setTimeout(() => document.activeElement.blur())"  # keys are the page's again
        choice.on("popup-hide", js_handler=blur)
        choice.on_value_change(
            lambda event: browser.choose(event.value) if event.value != browser.robot else None
        )

    @browser.on_update
    def update() -> None:
        names = list(browser.cell.robots) or [browser.robot]
        if choice.options != names:
            choice.set_options(names, value=browser.robot if browser.robot in names else names[0])
        elif choice.value != browser.robot:  # a page has chosen it
            choice.set_value(browser.robot)


def _state(browser: Browser) -> None:
    with ui.element("div").classes("u-field u-state-field"):
        word = ui.label().classes("u-state").props("data-mark=state")
        with ui.row(wrap=False).classes("u-state-line"):
            dot = ui.element("span").classes("u-dot")
            small = ui.label().classes("u-connection").props("data-mark=connection")
            ui.label(browser.texts("frame.no_data")).classes("u-no-data")

    @browser.on_update
    def update() -> None:
        now = robot_state(browser.facts, browser.cell.view(browser.robot))
        word.set_text(browser.texts.of("state", now.word))
        word.classes(replace=f"u-state u-{now.severity}")
        small.set_text(" · ".join(_connection(browser, now.line)))
        set_class(dot, not _is_connected(browser), "u-dot-off")


def _connection(browser: Browser, line: int) -> Iterator[str]:
    """Whether the cell reports the robot's controller as connected; its drives and its line."""
    texts, facts = browser.texts, browser.facts
    yield texts("frame.connected" if _is_connected(browser) else "frame.disconnected")
    if browser.can("drives"):
        yield texts("frame.enabled" if facts["enabled"] else "frame.disabled")
    if line:
        yield texts("frame.line").format(line=line)


def _is_connected(browser: Browser) -> bool:
    return browser.cell.alive and bool(browser.facts.get("connected"))


def _drives(browser: Browser) -> None:
    """Switches the drives; hidden for robots whose drives are not switched from here."""
    hint, key = browser.texts("frame.drives"), KEYS["frame.drives"]
    power = button("", icon="power_settings_new", key=key, kind="u-power", hint=hint, mark="drives")
    operator_only(browser, power)
    power.on_click(
        lambda: browser.robot_command("disable" if browser.facts.get("enabled") else "enable")
    )

    @browser.on_update
    def update() -> None:
        power.set_visibility(browser.can("drives"))
        set_class(power, bool(browser.facts.get("enabled")))


def _alarm(browser: Browser) -> None:
    """Active alarms with reset; a stopped cell with Start; paused time that something waits for,
    with Play."""
    texts = browser.texts
    with ui.element("div").classes("u-alarm-field").props("data-mark=alarm") as field:
        with ui.column().classes("u-alarm-words"):
            word = ui.label().classes("u-alarm-word")
            what_to_do = ui.label().classes("u-alarm-why")
        play = button(texts("frame.play"), icon="play_arrow", kind="u-ghost", mark="play-paused")
        play.on_click(lambda: browser.command("resume"))
        hint = texts("frame.clear_alarms")
        reset = button(
            texts("frame.reset"),
            icon="restart_alt",
            key=KEYS["frame.clear_alarms"],
            kind="u-ghost",
            hint=hint,
            mark="alarm-reset",
        )
        reset.on_click(lambda: _clear_alarms(browser))
        start = button(
            texts("frame.start"), icon="play_arrow", kind="u-ghost", mark="start-stopped"
        )
        start.on_click(lambda: browser.command("start"))
        for each in (play, reset, start):
            operator_only(browser, each)

    @browser.on_update
    def update() -> None:
        active, (waiting, line) = browser.cell.alarms(), browser.cell.waiting_for_time()
        stopped = browser.cell.metrics.get("state") == "STOPPED"
        set_class(field, bool(active))
        set_class(field, bool(waiting) or stopped, "u-paused")
        reset.set_visibility(bool(active))
        play.set_visibility(bool(waiting))
        start.set_visibility(stopped)
        place = f"{waiting}, {texts('frame.line').format(line=line)}" if line else waiting
        shown = [texts("frame.stopped")] if stopped else []
        shown += [texts("frame.paused").format(what=place)] if waiting else []
        shown += [f"{each.robot}: {texts.of_cell(each.text)}" for each in active]
        shown += [] if shown else [texts.of_cell(each) for each in browser.cell.notices()]
        word.set_text(" · ".join(shown) or texts("frame.no_alarm"))
        advice = next((alarm.what_to_do for alarm in active if alarm.what_to_do), "")
        hint = texts("frame.paused_hint") if waiting and not active else ""
        what_to_do.set_text(hint or texts.translated("advice", advice))
        field.props["title"] = " · ".join(shown)


async def _clear_alarms(browser: Browser) -> None:
    """Sends each command that ends one of the active alarms."""
    active = browser.cell.alarms()
    await clear(browser, list(dict.fromkeys(each.clears for each in active if not each.of_job)))
    for each in active:
        if each.of_job:
            await browser.command(each.clears, {"robot": each.robot})


def _languages(browser: Browser) -> None:
    with ui.element("div").classes("u-tabs-end"):
        for language in LANGUAGES:
            chosen = "u-chosen" if language == browser.texts.language else ""
            name = dictionary()["language"][language]
            button(
                language.upper(),
                kind=f"u-small {chosen}",
                hint=name,
                mark=f"language-{language}",
                script=f"understudyFrame.language({language!r})",
            )
        hint, script = browser.texts("frame.theme"), "understudyFrame.theme()"
        button("", icon="contrast", kind="u-small", hint=hint, mark="theme", script=script)
        if browser.role == "viewer":
            ui.label(browser.texts("frame.viewer")).classes("u-viewer")
        hint, script = browser.texts("frame.keys"), "understudyFrame.keys()"
        keys = button(
            "?", kind="u-small", key=KEYS["frame.keys"], hint=hint, mark="keys", script=script
        )
        for name in KEY_TEXTS:
            keys.props[f"data-{name}"] = browser.texts(f"keys.{name}")


def _stop(browser: Browser) -> None:
    """frame.js sends the stop directly by REST, and shows a notice if no answer comes: it works
    even if this process hangs."""
    with ui.element("div").classes("u-stop-place"):
        stop = ui.button(browser.texts("frame.emergency_stop"), color=None).classes("u-stop")
        stop.props("unelevated no-caps data-key=Escape data-mark=emergency-stop")
        stop.props["data-does"] = browser.texts("frame.emergency_stop")
        stop.on("click", js_handler="() => window.understudyFrame.stop()")
        operator_only(browser, stop)
        label = ui.label().classes("u-stop-label").props("data-mark=stop-label")
        twice = ui.label(browser.texts("frame.escape_twice")).classes("u-stop-label u-stop-twice")
        twice.props("data-mark=escape-twice")

    @browser.on_update
    def update() -> None:
        real = any(robot.get("mode") == "REAL" for robot in browser.cell.robots.values())
        hint = "software_stop" if real else "emergency_hint"
        label.set_text(browser.texts(f"frame.{hint if browser.role == 'operator' else 'viewer'}"))


def _tabs(browser: Browser, pages: Sequence[Page]) -> dict[str, ui.button]:
    """A tab for each page, with what frame.js needs to open it."""
    tabs = {}
    for page in pages:
        title = browser.texts(f"{page.name}.title")
        script = f"understudyFrame.open({page.name!r})"
        tab = button(title, icon=page.icon, key=page.key, kind="u-tab", script=script)
        tabs[page.name] = tab
        tab.props(f"stack data-tab={page.name}")
        tab.props["data-route"] = page.route
        tab.props["data-scripts"] = dumps(page.script_addresses)
    return tabs


def _notices(browser: Browser) -> None:
    """Notices that frame.js shows even if this process is gone: stale data, unconfirmed stop."""
    for name, icon in (("stale", "cloud_off"), ("unstopped", "front_hand")):
        with ui.element("div").classes(f"u-notice u-{name}").props(f"data-mark={name}"):
            ui.icon(icon)
            ui.label(browser.texts(f"frame.{name}")).classes("u-notice-word")
            ui.label(browser.texts(f"frame.{name}_hint")).classes("u-notice-hint")
    _work(browser)
    _refusals(browser)


def _work(browser: Browser) -> None:
    """Long work of commands (a mesh, an environment, a program) with its progress."""
    texts = browser.texts
    with ui.element("div").classes("u-work").props("data-mark=work role=status") as field:
        ui.spinner(size="22px")
        word = ui.label().classes("u-work-word")
        bar = ui.linear_progress(show_value=False).classes("u-work-bar")

    @browser.on_update
    def update() -> None:
        running = [run for run in browser.cell.work if run["state"] == "running"]
        field.set_visibility(bool(running))
        if not running:
            return
        share, waiting = running[0]["progress"], len(browser.cell.work) - 1
        parts = [texts.of("work", running[0]["kind"])]
        parts += [f"{share:.0%}"] if share else []
        parts += [texts("work.more").format(count=waiting)] if waiting else []
        word.set_text(" · ".join(parts))
        bar.set_visibility(bool(share))
        bar.set_value(share)


def _refusals(browser: Browser) -> None:
    """What api.js needs to show a refusal: the texts, and the remedies of those that have one."""
    texts = browser.texts
    data = ui.element("div").props("hidden data-mark=refusals")
    data.props["data-not-done"] = texts("frame.not_done")
    data.props["data-words"] = dumps(texts.translations("refusal"))
    data.props["data-cancel"] = texts("frame.cancel")
    data.props["data-close"] = texts("frame.close")
    data.props["data-real-hint"] = texts("mode.real_warning")
    remedies = [
        {
            "reason": reason,
            "command": command,
            "label": texts(f"frame.{name}"),
            "question": texts(f"frame.{name}_question"),
            "answer": texts(f"frame.{name}_and_run"),
        }
        for reason, name, command in REMEDIES
    ]
    data.props["data-remedies"] = dumps(remedies)

    @browser.on_update
    def update() -> None:
        data.props["data-robot"] = browser.robot


# ── an address that no page has ──


def _missing(browser: Browser) -> None:
    with ui.element("div").classes("u-missing").props("data-mark=missing"):
        ui.icon("wrong_location")
        ui.label(browser.texts("frame.missing")).classes("u-notice-word")
        ui.label(browser.texts("frame.missing_hint")).classes("u-quiet")


MISSING = Page("missing", "", "", _missing, folder=Path(__file__).parent)
"""What the frame shows at such an address."""
