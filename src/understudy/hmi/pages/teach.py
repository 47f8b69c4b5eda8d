"""What taught points show: a tool's tip from four of them, a work frame from three."""

from typing import Any

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button
from understudy.hmi.pages.points import Point, Points, figures

TIP_POINTS = 4
FRAME_POINTS = ("origin", "on_x", "on_y")
SYSTEMS = ("G54", "G55", "G56", "G57", "G58", "G59")


def teach_panel(browser: Browser, points: Points) -> None:
    _tip(browser, points)
    _frame(browser, points)


def _tip(browser: Browser, points: Points) -> None:
    """The tip stands on one spot, the hand turned differently each time."""
    with _card(browser, "tip"):
        with ui.element("div").classes("u-pairs"):
            wanted = [_point(points, f"{n}", f"tip-{n}") for n in range(1, TIP_POINTS + 1)]
        with ui.element("div").classes("u-deeds"):
            reckon = button(
                browser.texts("teach.reckon"), icon="calculate", kind="u-go", mark="tip"
            )
            use = button(browser.texts("teach.use_tip"), icon="done", mark="use-tip")
        told = ui.label().classes("u-told").props("data-mark=tip-told")
        _measured(browser)
    found: list[list[float]] = []
    _shown_with(browser, use, "set_tcp", found)

    async def find() -> None:
        chosen = _chosen(browser, wanted)
        answer = chosen and await browser.order("tcp_by_four_points", {"points": chosen})
        if answer:
            found[:] = [answer["tcp_mm_deg"][:3]]
            fit = browser.texts("teach.residual").format(mm=answer["residual_mm"])
            told.set_text(f"TCP {figures(answer['tcp_mm_deg'])}\n{fit}")
            browser.refresh()

    async def put_to_use() -> None:
        answer = await browser.order("set_tcp", {"tcp_mm": found[0]})
        if answer:
            told.set_text(f"{browser.texts('teach.in_use')}\n{answer['cell_file']}")

    reckon.on_click(find)
    use.on_click(put_to_use)


def _measured(browser: Browser) -> None:
    """Says that the tool in hand is not the file's, and takes it back."""
    with ui.element("div").classes("u-measured").props("data-mark=measured") as place:
        words = ui.label().classes("u-caption")
        back = button(browser.texts("teach.as_in_file"), icon="undo", mark="tip-as-in-file")
    back.on_click(lambda: browser.order("set_tcp"))

    def update() -> None:
        tool = browser.facts.get("tool", 0)
        place.set_visibility(
            bool(browser.facts.get("tools", {}).get(str(tool), {}).get("measured"))
        )
        words.set_text(browser.texts("teach.measured").format(tool=tool))

    browser.each_round(update)


def _frame(browser: Browser, points: Points) -> None:
    """Its origin, a point on +x, a point on the side of +y."""
    with _card(browser, "frame"):
        with ui.element("div").classes("u-triple"):
            wanted = [_point(points, browser.texts(f"teach.{name}"), name) for name in FRAME_POINTS]
        with ui.element("div").classes("u-deeds"):
            reckon = button(
                browser.texts("teach.reckon"), icon="calculate", kind="u-go", mark="frame"
            )
        told = ui.label().classes("u-told").props("data-mark=frame-told")
        found: list[list[float]] = []
        _use_frame(browser, found)

    async def find() -> None:
        chosen = _chosen(browser, wanted)
        answer = chosen and await browser.order("frame_by_three_points", {"points": chosen})
        if answer:
            found[:] = [answer["frame_mm_deg"]]
            told.set_text(figures(answer["frame_mm_deg"]))
            browser.refresh()

    reckon.on_click(find)


def _use_frame(browser: Browser, found: list[list[float]]) -> None:
    """As which of G54 … G59; and what that one is now."""
    with ui.element("div").classes("u-deeds") as place:
        system = ui.select(list(SYSTEMS), value=SYSTEMS[0]).classes("u-input u-system")
        system.props("outlined dense popup-content-class=u-menu data-mark=work-system")
        use = button(browser.texts("teach.use_frame"), icon="done", mark="use-frame")
        origin_only = ui.switch(browser.texts("teach.origin_only")).classes("u-switch")
        origin_only.props("data-mark=origin-only")
    now = ui.label().classes("u-caption").props("data-mark=work-offset")

    async def put_to_use() -> None:
        given = {"system": system.value, "origin_only": origin_only.value}
        await browser.order("set_work_frame", {"frame_mm_deg": found[0], **given})

    def update() -> None:
        place.set_visibility(bool(found) and "base" in browser.facts.get("frames", ()))
        offset = browser.facts.get("work_offsets_mm_deg", {}).get(system.value)
        words = figures(offset) if offset else browser.texts("teach.no_offset")
        now.set_text(f"{system.value}: {words}")

    use.on_click(put_to_use)
    system.on_value_change(update)
    browser.on_choice(found.clear)
    browser.each_round(update)


def _shown_with(
    browser: Browser, deed: ui.button, capability: str, found: list[list[float]]
) -> None:
    """Where there is something to put to use, and a robot that can."""
    browser.on_choice(found.clear)
    browser.each_round(lambda: deed.set_visibility(bool(found) and browser.can(capability)))


def _card(browser: Browser, name: str) -> Any:
    card = ui.element("section").classes("u-card u-teach")
    with card:
        ui.label(browser.texts(f"teach.{name}")).classes("u-card-title")
        ui.label(browser.texts(f"teach.{name}_hint")).classes("u-caption")
    return card


def _point(points: Points, label: str, mark: str) -> ui.select:
    choice = ui.select([], label=label).classes("u-input").props(f"data-mark=teach-{mark}")
    choice.props("outlined dense options-dense=false popup-content-class=u-menu")

    def offer(all_: list[Point]) -> None:
        names = [point["name"] for point in all_]
        choice.set_options(names, value=choice.value if choice.value in names else None)

    points.follow(offer)
    return choice


def _chosen(browser: Browser, wanted: list[ui.select]) -> list[str] | None:
    names = [each.value for each in wanted if each.value]
    if len(names) == len(wanted):
        return names
    ui.notify(browser.texts("teach.missing").format(count=len(wanted)), position="top")
    return None
