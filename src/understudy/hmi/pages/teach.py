"""What taught points show: a tool's tip from four of them, a work frame from three."""

from typing import Any

from nicegui import ui

from understudy.hmi.pages.frame import button
from understudy.hmi.pages.points import Point, Points, figures
from understudy.hmi.pages.seat import Seat

TIP_POINTS = 4
FRAME_POINTS = ("origin", "on_x", "on_y")
SYSTEMS = ("G54", "G55", "G56", "G57", "G58", "G59")


def teach_panel(seat: Seat, points: Points) -> None:
    _tip(seat, points)
    _frame(seat, points)


def _tip(seat: Seat, points: Points) -> None:
    """The tip stands on one spot, the hand turned differently each time."""
    with _card(seat, "tip"):
        with ui.element("div").classes("u-pairs"):
            wanted = [_point(points, f"{n}", f"tip-{n}") for n in range(1, TIP_POINTS + 1)]
        with ui.element("div").classes("u-deeds"):
            reckon = button(seat.texts("teach.reckon"), icon="calculate", kind="u-go", mark="tip")
            use = button(seat.texts("teach.use_tip"), icon="done", mark="use-tip")
        told = ui.label().classes("u-told").props("data-mark=tip-told")
        _measured(seat)
    found: list[list[float]] = []
    _shown_with(seat, use, "set_tcp", found)

    async def find() -> None:
        chosen = _chosen(seat, wanted)
        answer = chosen and await seat.order("tcp_by_four_points", {"points": chosen})
        if answer:
            found[:] = [answer["tcp_mm_deg"][:3]]
            fit = seat.texts("teach.residual").format(mm=answer["residual_mm"])
            told.set_text(f"TCP {figures(answer['tcp_mm_deg'])}\n{fit}")
            seat.refresh()

    async def put_to_use() -> None:
        answer = await seat.order("set_tcp", {"tcp_mm": found[0]})
        if answer:
            told.set_text(f"{seat.texts('teach.in_use')}\n{answer['cell_file']}")

    reckon.on_click(find)
    use.on_click(put_to_use)


def _measured(seat: Seat) -> None:
    """Says that the tool in hand is not the file's, and takes it back."""
    with ui.element("div").classes("u-measured").props("data-mark=measured") as place:
        words = ui.label().classes("u-caption")
        back = button(seat.texts("teach.as_in_file"), icon="undo", mark="tip-as-in-file")
    back.on_click(lambda: seat.order("set_tcp"))

    def update() -> None:
        tool = seat.facts.get("tool", 0)
        place.set_visibility(bool(seat.facts.get("tools", {}).get(str(tool), {}).get("measured")))
        words.set_text(seat.texts("teach.measured").format(tool=tool))

    seat.each_round(update)


def _frame(seat: Seat, points: Points) -> None:
    """Its origin, a point on +x, a point on the side of +y."""
    with _card(seat, "frame"):
        with ui.element("div").classes("u-triple"):
            wanted = [_point(points, seat.texts(f"teach.{name}"), name) for name in FRAME_POINTS]
        with ui.element("div").classes("u-deeds"):
            reckon = button(seat.texts("teach.reckon"), icon="calculate", kind="u-go", mark="frame")
        told = ui.label().classes("u-told").props("data-mark=frame-told")
        found: list[list[float]] = []
        _use_frame(seat, found)

    async def find() -> None:
        chosen = _chosen(seat, wanted)
        answer = chosen and await seat.order("frame_by_three_points", {"points": chosen})
        if answer:
            found[:] = [answer["frame_mm_deg"]]
            told.set_text(figures(answer["frame_mm_deg"]))
            seat.refresh()

    reckon.on_click(find)


def _use_frame(seat: Seat, found: list[list[float]]) -> None:
    """As which of G54 … G59; and what that one is now."""
    with ui.element("div").classes("u-deeds") as place:
        system = ui.select(list(SYSTEMS), value=SYSTEMS[0]).classes("u-input u-system")
        system.props("outlined dense popup-content-class=u-menu data-mark=work-system")
        use = button(seat.texts("teach.use_frame"), icon="done", mark="use-frame")
        origin_only = ui.switch(seat.texts("teach.origin_only")).classes("u-switch")
        origin_only.props("data-mark=origin-only")
    now = ui.label().classes("u-caption").props("data-mark=work-offset")

    async def put_to_use() -> None:
        given = {"system": system.value, "origin_only": origin_only.value}
        await seat.order("set_work_frame", {"frame_mm_deg": found[0], **given})

    def update() -> None:
        place.set_visibility(bool(found) and "base" in seat.facts.get("frames", ()))
        offset = seat.facts.get("work_offsets_mm_deg", {}).get(system.value)
        words = figures(offset) if offset else seat.texts("teach.no_offset")
        now.set_text(f"{system.value}: {words}")

    use.on_click(put_to_use)
    system.on_value_change(update)
    seat.on_choice(found.clear)
    seat.each_round(update)


def _shown_with(seat: Seat, deed: ui.button, capability: str, found: list[list[float]]) -> None:
    """Where there is something to put to use, and a robot that can."""
    seat.on_choice(found.clear)
    seat.each_round(lambda: deed.set_visibility(bool(found) and seat.can(capability)))


def _card(seat: Seat, name: str) -> Any:
    card = ui.element("section").classes("u-card u-teach")
    with card:
        ui.label(seat.texts(f"teach.{name}")).classes("u-card-title")
        ui.label(seat.texts(f"teach.{name}_hint")).classes("u-caption")
    return card


def _point(points: Points, label: str, mark: str) -> ui.select:
    choice = ui.select([], label=label).classes("u-input").props(f"data-mark=teach-{mark}")
    choice.props("outlined dense options-dense=false popup-content-class=u-menu")

    def offer(all_: list[Point]) -> None:
        names = [point["name"] for point in all_]
        choice.set_options(names, value=choice.value if choice.value in names else None)

    points.follow(offer)
    return choice


def _chosen(seat: Seat, wanted: list[ui.select]) -> list[str] | None:
    names = [each.value for each in wanted if each.value]
    if len(names) == len(wanted):
        return names
    ui.notify(seat.texts("teach.missing").format(count=len(wanted)), position="top")
    return None
