"""The frame around every page: what an operator must see at any time, and the stop."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.standing import standing
from understudy.hmi.texts import LANGUAGES, dictionary


@dataclass(frozen=True, slots=True)
class Tab:
    """A page in the rail: where it is, the text that names it, its icon and its key."""

    path: str
    name: str
    icon: str
    key: str


def button(
    text: str, *, icon: str = "", key: str = "", kind: str = "", hint: str = "", mark: str = ""
) -> ui.button:
    """A button of the house; `key` is the keyboard's, and stands in the list of keys; by its
    `mark` scripts and tests find it."""
    made = ui.button(text, icon=icon or None, color=None).classes(f"u-button {kind}")
    made.props("no-caps unelevated")
    if mark:
        made.props["data-mark"] = mark
    if key:
        made.props(f'data-key="{key}"')
        made.props["data-does"] = hint or text
    if hint:
        made.props["aria-label"] = hint
        made.tooltip(f"{hint}  [{key}]" if key else hint)
    return made


def light(element: ui.element, on: bool, *, kind: str = "u-on") -> None:
    """Show it as being on, or in whatever other way `kind` says."""
    element.classes(add=kind if on else "", remove="" if on else kind)


def within_reach(browser: Browser, place: ui.element, *, on_real: bool = True) -> None:
    """Dead under the hand of who may only look; what is made up (`on_real=False`) also on REAL."""

    def update() -> None:
        dead = browser.role == "viewer" or (_is_real(browser) and not on_real)
        place.props(add="inert" if dead else "", remove="" if dead else "inert")

    browser.each_round(update, while_there=place)


def passing_dialog() -> ui.dialog:
    """One that is gone once it is closed."""
    dialog = ui.dialog()
    dialog.on("hide", dialog.delete)
    return dialog


@contextmanager
def frame(browser: Browser, tabs: Sequence[Tab], here: Tab) -> Iterator[None]:
    """Header, alarm line and rail; the page itself is built inside."""
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
        _rail(browser, tabs, here)
        _languages(browser)
    _notices(browser)
    with ui.element("main").classes("u-page"):
        yield
    browser.take()


def _mode(browser: Browser) -> None:
    """What moves; where a real robot is configured, pressing it changes over."""
    badge = ui.element("button").classes("u-mode").props("data-mark=mode")
    with badge:
        word = ui.label().classes("u-mode-word")
        hint = ui.label().classes("u-mode-hint")
    within_reach(browser, badge)
    badge.on("click", lambda: _change_over(browser).open() if browser.facts.get("real") else None)

    def update() -> None:
        real = _is_real(browser)
        word.set_text(browser.texts("frame.real" if real else "frame.simulation"))
        hint.set_text(browser.texts("frame.real_hint" if real else "frame.simulation_hint"))
        ui.query("body").classes(
            add="u-real" if real else "u-simulation", remove="u-simulation" if real else "u-real"
        )

    browser.each_round(update)


def _change_over(browser: Browser) -> ui.dialog:
    """Asks once more, since from then on something else moves."""
    to = "simulation" if _is_real(browser) else "real"
    with passing_dialog() as dialog, ui.card().classes("u-dialog"):
        ui.label(browser.texts(f"mode.to_{to}").format(robot=browser.robot)).classes("u-figure")
        ui.label(browser.texts(f"mode.{to}_warning"))

        async def change() -> None:
            dialog.close()
            await browser.order("set_mode", {"mode": to})

        with ui.row().classes("u-inline"):
            button(browser.texts("frame.close")).on_click(dialog.close)
            button(browser.texts("mode.do"), kind="u-chosen", mark="change-over").on_click(change)
    return dialog


def _is_real(browser: Browser) -> bool:
    return bool(browser.facts.get("mode") == "REAL")


def _robots(browser: Browser) -> None:
    with ui.element("div").classes("u-field"):
        ui.label(browser.texts("frame.robot")).classes("u-caption")
        choice = ui.select([browser.robot], value=browser.robot).classes("u-robot")
        choice.props("dense borderless popup-content-class=u-menu data-mark=robot")
        choice.on_value_change(lambda event: browser.choose(event.value))

    def update() -> None:
        names = list(browser.picture.robots) or [browser.robot]
        if choice.options != names:
            choice.set_options(names, value=browser.robot if browser.robot in names else names[0])

    browser.each_round(update)


def _state(browser: Browser) -> None:
    with ui.element("div").classes("u-field u-state-field"):
        word = ui.label().classes("u-state").props("data-mark=state")
        with ui.row(wrap=False).classes("u-state-line"):
            ui.element("span").classes("u-dot")
            small = ui.label().props("data-mark=connection")

    def update() -> None:
        now = standing(browser.facts, browser.picture.view(browser.robot))
        word.set_text(browser.texts.of("state", now.word))
        word.classes(replace=f"u-state u-{now.mood}")
        small.set_text(" · ".join(_connection(browser, now.line)))

    browser.each_round(update)


def _connection(browser: Browser, line: int) -> Iterator[str]:
    texts, facts = browser.texts, browser.facts
    lost = _is_real(browser) and not facts.get("connected")
    yield texts("frame.disconnected" if lost or not browser.picture.alive else "frame.connected")
    if browser.can("drives"):
        yield texts("frame.enabled" if facts["enabled"] else "frame.disabled")
    if line:
        yield texts("frame.line").format(line=line)


def _drives(browser: Browser) -> None:
    """On and off; robots whose drives are somebody else's have no such button."""
    hint = browser.texts("frame.drives")
    power = button("", icon="power_settings_new", key="d", kind="u-power", hint=hint, mark="drives")
    within_reach(browser, power)
    power.on_click(lambda: browser.order("disable" if browser.facts.get("enabled") else "enable"))

    def update() -> None:
        power.set_visibility(browser.can("drives"))
        light(power, bool(browser.facts.get("enabled")))

    browser.each_round(update)


def _alarm(browser: Browser) -> None:
    with ui.element("div").classes("u-alarm-field").props("data-mark=alarm") as field:
        with ui.column().classes("u-alarm-words"):
            word = ui.label().classes("u-alarm-word")
            what_to_do = ui.label().classes("u-alarm-why")
        reset = button(
            browser.texts("frame.reset"),
            icon="restart_alt",
            key="r",
            kind="u-ghost",
            mark="alarm-reset",
        )
        within_reach(browser, reset)
        reset.on_click(lambda: browser.ask("reset"))

    def update() -> None:
        wrong = browser.picture.alarms()
        light(field, bool(wrong))
        reset.set_visibility(bool(wrong))
        told = " · ".join(f"{alarm.robot}: {alarm.text}" for alarm in wrong)
        word.set_text(told or browser.texts("frame.no_alarm"))
        advice = next((alarm.what_to_do for alarm in wrong if alarm.what_to_do), "")
        what_to_do.set_text(browser.texts.translated("advice", advice))
        field.props["title"] = told

    browser.each_round(update)


def _languages(browser: Browser) -> None:
    with ui.element("div").classes("u-rail-end"):
        for language in LANGUAGES:
            chosen = "u-chosen" if language == browser.texts.language else ""
            name = dictionary()["language"][language]
            pick = button(
                language.upper(), kind=f"u-small {chosen}", hint=name, mark=f"language-{language}"
            )
            pick.on("click", js_handler=f"() => window.understudyFrame.language({language!r})")
        if browser.role == "viewer":
            ui.label(browser.texts("frame.viewer")).classes("u-viewer")
        keys = button("?", kind="u-small", key="?", hint=browser.texts("frame.keys"))
        keys.on("click", js_handler="() => window.understudyFrame.keys()")


def _stop(browser: Browser) -> None:
    """Goes to the cell by the shortest way, and says so where no answer comes: a page that has lost
    its own process must not swallow it."""
    with ui.element("div").classes("u-stop-place"):
        stop = ui.button(browser.texts("frame.emergency_stop"), color=None).classes("u-stop")
        stop.props("unelevated no-caps data-key=Escape data-mark=emergency-stop")
        stop.props["data-does"] = browser.texts("frame.emergency_stop")
        stop.on("click", js_handler="() => window.understudyFrame.stop()")
        within_reach(browser, stop)
        label = ui.label().classes("u-stop-label").props("data-mark=stop-label")

    def update() -> None:
        real = any(robot.get("mode") == "REAL" for robot in browser.picture.robots.values())
        hint = "software_stop" if real else "emergency_hint"
        label.set_text(browser.texts(f"frame.{hint if browser.role == 'operator' else 'viewer'}"))

    browser.each_round(update)


def _rail(browser: Browser, tabs: Sequence[Tab], here: Tab) -> None:
    for tab in tabs:
        chosen = "u-chosen" if tab is here else ""
        place = button(
            browser.texts(f"page.{tab.name}"), icon=tab.icon, key=tab.key, kind=f"u-tab {chosen}"
        )
        place.props("stack").on("click", js_handler=f"() => window.location.assign({tab.path!r})")


def _notices(browser: Browser) -> None:
    """Shown by frame.js, even if this process is gone: nothing fresh comes; nothing was stopped."""
    for name, icon in (("stale", "cloud_off"), ("unstopped", "front_hand")):
        with ui.element("div").classes(f"u-notice u-{name}").props(f"data-mark={name}"):
            ui.icon(icon)
            ui.label(browser.texts(f"frame.{name}")).classes("u-notice-word")
            ui.label(browser.texts(f"frame.{name}_hint")).classes("u-notice-hint")
