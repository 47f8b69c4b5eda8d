"""What taught points show: a tool's tip from four of them, a work frame from three."""

from typing import Any

from nicegui import ui

from understudy.hmi.pages.frame import button
from understudy.hmi.pages.points import Point, Points, figures
from understudy.hmi.pages.seat import Seat

TIP_POINTS = 4
FRAME_POINTS = ("origin", "on_x", "on_y")


def teach_panel(seat: Seat, points: Points) -> None:
    _tip(seat, points)
    _frame(seat, points)


def _tip(seat: Seat, points: Points) -> None:
    """The tip stands on one spot, the hand turned differently each time."""
    with _card(seat, "tip"):
        with ui.element("div").classes("u-pairs"):
            wanted = [_point(points, f"{n}", f"tip-{n}") for n in range(1, TIP_POINTS + 1)]
        reckon = button(seat.texts("teach.reckon"), icon="calculate", kind="u-go").props(
            "data-mark=tip"
        )
        told = ui.label().classes("u-told").props("data-mark=tip-told")

    async def find() -> None:
        chosen = _chosen(seat, wanted)
        answer = chosen and await seat.order("tcp_by_four_points", {"points": chosen})
        if answer:
            fit = seat.texts("teach.residual").format(mm=answer["residual_mm"])
            told.set_text(f"TCP {figures(answer['tcp_mm_deg'])}\n{fit}")

    reckon.on_click(find)


def _frame(seat: Seat, points: Points) -> None:
    """Its origin, a point on +x, a point on the side of +y."""
    with _card(seat, "frame"):
        with ui.element("div").classes("u-triple"):
            wanted = [_point(points, seat.texts(f"teach.{name}"), name) for name in FRAME_POINTS]
        reckon = button(seat.texts("teach.reckon"), icon="calculate", kind="u-go").props(
            "data-mark=frame"
        )
        told = ui.label().classes("u-told").props("data-mark=frame-told")

    async def find() -> None:
        chosen = _chosen(seat, wanted)
        answer = chosen and await seat.order("frame_by_three_points", {"points": chosen})
        if answer:
            told.set_text(figures(answer["frame_mm_deg"]))

    reckon.on_click(find)


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
