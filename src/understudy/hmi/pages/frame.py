"""The frame around every page: what an operator must see at any time, and the stop."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nicegui import ui

from understudy.hmi.pages.seat import Seat
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


def within_reach(seat: Seat, place: ui.element, *, on_real: bool = True) -> None:
    """Dead under the hand of who may only look; what is made up (`on_real=False`) also on REAL."""

    def update() -> None:
        dead = seat.role == "viewer" or (_is_real(seat) and not on_real)
        place.props(add="inert" if dead else "", remove="" if dead else "inert")

    seat.each_round(update, while_there=place)


def passing_dialog() -> ui.dialog:
    """One that is gone once it is closed."""
    dialog = ui.dialog()
    dialog.on("hide", dialog.delete)
    return dialog


@contextmanager
def frame(seat: Seat, tabs: Sequence[Tab], here: Tab) -> Iterator[None]:
    """Header, alarm line and rail; the page itself is built inside."""
    ui.query("body").classes("u-body")
    with ui.header(elevated=False).classes("u-header"):
        ui.element("div").classes("u-band")
        with ui.row(wrap=False).classes("u-bar"):
            _mode(seat)
            _robots(seat)
            _state(seat)
            _drives(seat)
            _alarm(seat)
            _stop(seat)
    with ui.left_drawer(value=True, fixed=True, bordered=False).props("width=92 behavior=desktop"):
        _rail(seat, tabs, here)
        _languages(seat)
    _notices(seat)
    with ui.element("main").classes("u-page"):
        yield
    seat.take()


def _mode(seat: Seat) -> None:
    """What moves; where a real robot is configured, pressing it changes over."""
    badge = ui.element("button").classes("u-mode").props("data-mark=mode")
    with badge:
        word = ui.label().classes("u-mode-word")
        hint = ui.label().classes("u-mode-hint")
    within_reach(seat, badge)
    badge.on("click", lambda: _change_over(seat).open() if seat.facts.get("real") else None)

    def update() -> None:
        real = _is_real(seat)
        word.set_text(seat.texts("frame.real" if real else "frame.simulation"))
        hint.set_text(seat.texts("frame.real_hint" if real else "frame.simulation_hint"))
        ui.query("body").classes(
            add="u-real" if real else "u-simulation", remove="u-simulation" if real else "u-real"
        )

    seat.each_round(update)


def _change_over(seat: Seat) -> ui.dialog:
    """Asks once more, since from then on something else moves."""
    to = "simulation" if _is_real(seat) else "real"
    with passing_dialog() as dialog, ui.card().classes("u-dialog"):
        ui.label(seat.texts(f"mode.to_{to}").format(robot=seat.robot)).classes("u-figure")
        ui.label(seat.texts(f"mode.{to}_warning"))

        async def change() -> None:
            dialog.close()
            await seat.order("set_mode", {"mode": to})

        with ui.row().classes("u-inline"):
            button(seat.texts("frame.close")).on_click(dialog.close)
            button(seat.texts("mode.do"), kind="u-chosen", mark="change-over").on_click(change)
    return dialog


def _is_real(seat: Seat) -> bool:
    return bool(seat.facts.get("mode") == "REAL")


def _robots(seat: Seat) -> None:
    with ui.element("div").classes("u-field"):
        ui.label(seat.texts("frame.robot")).classes("u-caption")
        choice = ui.select([seat.robot], value=seat.robot).classes("u-robot")
        choice.props("dense borderless popup-content-class=u-menu data-mark=robot")
        choice.on_value_change(lambda event: seat.choose(event.value))

    def update() -> None:
        names = list(seat.picture.robots) or [seat.robot]
        if choice.options != names:
            choice.set_options(names, value=seat.robot if seat.robot in names else names[0])

    seat.each_round(update)


def _state(seat: Seat) -> None:
    with ui.element("div").classes("u-field u-state-field"):
        word = ui.label().classes("u-state").props("data-mark=state")
        with ui.row(wrap=False).classes("u-state-line"):
            ui.element("span").classes("u-dot")
            small = ui.label().props("data-mark=connection")

    def update() -> None:
        now = standing(seat.facts, seat.picture.view(seat.robot))
        word.set_text(seat.texts.of("state", now.word))
        word.classes(replace=f"u-state u-{now.mood}")
        small.set_text(" · ".join(_connection(seat, now.line)))

    seat.each_round(update)


def _connection(seat: Seat, line: int) -> Iterator[str]:
    texts, facts = seat.texts, seat.facts
    lost = _is_real(seat) and not facts.get("connected")
    yield texts("frame.disconnected" if lost or not seat.picture.alive else "frame.connected")
    if seat.can("drives"):
        yield texts("frame.enabled" if facts["enabled"] else "frame.disabled")
    if line:
        yield texts("frame.line").format(line=line)


def _drives(seat: Seat) -> None:
    """On and off; robots whose drives are somebody else's have no such button."""
    hint = seat.texts("frame.drives")
    power = button("", icon="power_settings_new", key="d", kind="u-power", hint=hint, mark="drives")
    within_reach(seat, power)
    power.on_click(lambda: seat.order("disable" if seat.facts.get("enabled") else "enable"))

    def update() -> None:
        power.set_visibility(seat.can("drives"))
        light(power, bool(seat.facts.get("enabled")))

    seat.each_round(update)


def _alarm(seat: Seat) -> None:
    with ui.element("div").classes("u-alarm-field").props("data-mark=alarm") as field:
        with ui.column().classes("u-alarm-words"):
            word = ui.label().classes("u-alarm-word")
            what_to_do = ui.label().classes("u-alarm-why")
        reset = button(
            seat.texts("frame.reset"),
            icon="restart_alt",
            key="r",
            kind="u-ghost",
            mark="alarm-reset",
        )
        within_reach(seat, reset)
        reset.on_click(lambda: seat.ask("reset"))

    def update() -> None:
        wrong = seat.picture.alarms()
        light(field, bool(wrong))
        reset.set_visibility(bool(wrong))
        told = " · ".join(f"{alarm.robot}: {alarm.text}" for alarm in wrong)
        word.set_text(told or seat.texts("frame.no_alarm"))
        advice = next((alarm.what_to_do for alarm in wrong if alarm.what_to_do), "")
        what_to_do.set_text(seat.texts.translated("advice", advice))
        field.props["title"] = told

    seat.each_round(update)


def _languages(seat: Seat) -> None:
    with ui.element("div").classes("u-rail-end"):
        for language in LANGUAGES:
            chosen = "u-chosen" if language == seat.texts.language else ""
            name = dictionary()["language"][language]
            pick = button(
                language.upper(), kind=f"u-small {chosen}", hint=name, mark=f"language-{language}"
            )
            pick.on("click", js_handler=f"() => window.understudyFrame.language({language!r})")
        if seat.role == "viewer":
            ui.label(seat.texts("frame.viewer")).classes("u-viewer")
        keys = button("?", kind="u-small", key="?", hint=seat.texts("frame.keys"))
        keys.on("click", js_handler="() => window.understudyFrame.keys()")


def _stop(seat: Seat) -> None:
    """Goes to the cell by the shortest way, and says so where no answer comes: a page that has lost
    its own process must not swallow it."""
    with ui.element("div").classes("u-stop-place"):
        stop = ui.button(seat.texts("frame.emergency_stop"), color=None).classes("u-stop")
        stop.props("unelevated no-caps data-key=Escape data-mark=emergency-stop")
        stop.props["data-does"] = seat.texts("frame.emergency_stop")
        stop.on("click", js_handler="() => window.understudyFrame.stop()")
        within_reach(seat, stop)
        label = ui.label().classes("u-stop-label").props("data-mark=stop-label")

    def update() -> None:
        real = any(robot.get("mode") == "REAL" for robot in seat.picture.robots.values())
        hint = "software_stop" if real else "emergency_hint"
        label.set_text(seat.texts(f"frame.{hint if seat.role == 'operator' else 'viewer'}"))

    seat.each_round(update)


def _rail(seat: Seat, tabs: Sequence[Tab], here: Tab) -> None:
    for tab in tabs:
        chosen = "u-chosen" if tab is here else ""
        place = button(
            seat.texts(f"page.{tab.name}"), icon=tab.icon, key=tab.key, kind=f"u-tab {chosen}"
        )
        place.props("stack").on("click", js_handler=f"() => window.location.assign({tab.path!r})")


def _notices(seat: Seat) -> None:
    """Shown by frame.js, even if this process is gone: nothing fresh comes; nothing was stopped."""
    for name, icon in (("stale", "cloud_off"), ("unstopped", "front_hand")):
        with ui.element("div").classes(f"u-notice u-{name}").props(f"data-mark={name}"):
            ui.icon(icon)
            ui.label(seat.texts(f"frame.{name}")).classes("u-notice-word")
            ui.label(seat.texts(f"frame.{name}_hint")).classes("u-notice-hint")
