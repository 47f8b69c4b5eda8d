"""Dialog with the coordinates of a taught point: the pose of the tool, or the joints."""

from collections.abc import Callable, Mapping
from typing import Any

from nicegui import ui

from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import button, temporary_dialog

POSE, JOINTS = "pose_mm_deg", "joints_deg"
POSE_NAMES = ("X [mm]", "Y [mm]", "Z [mm]", "RX [°]", "RY [°]", "RZ [°]")


class CoordinateDialog:
    """Opens at once. Calls ``changed`` with the answer of the cell when the point was changed."""

    def __init__(
        self, browser: Browser, point: Mapping[str, Any], changed: Callable[[Any], None]
    ) -> None:
        self._browser = browser
        self._point = point
        self._changed = changed
        self._fields: list[ui.number] = []
        with temporary_dialog() as self._dialog, ui.card().classes("u-dialog u-coordinates"):
            self._build()
        self._dialog.open()

    def _build(self) -> None:
        texts = self._browser.texts
        kinds = [POSE, JOINTS] if self._browser.facts.get("joints") and self._joints() else [POSE]
        ui.label(texts("points.edit_title").format(name=self._point["name"])).classes("u-figure")
        self._kind = ui.toggle({kind: texts(f"points.{kind}") for kind in kinds}, value=POSE)
        self._kind.classes("u-toggle").props("no-caps unelevated data-mark=coordinate-kind")
        self._kind.set_visibility(len(kinds) > 1)
        self._kind.on_value_change(self._show)
        self._grid = ui.element("div").classes("u-coordinate-fields")
        self._show()
        with ui.row().classes("u-inline"):
            button(texts("frame.close")).on_click(self._dialog.close)
            apply = button(texts("points.apply"), kind="u-chosen", mark="coordinates-apply")
            apply.on_click(self._apply)

    def _joints(self) -> list[float]:
        found: list[float] = self._point[JOINTS]
        return found

    def _show(self) -> None:
        """The fields of the chosen kind, with the point's own values."""
        joints = [f"{joint['name']} [°]" for joint in self._browser.facts.get("joints", ())]
        names = POSE_NAMES if self._kind.value == POSE else joints
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
            ui.notify(self._browser.texts("points.number_missing"), position="top")
            return
        given = {"name": self._point["name"], self._kind.value: values}
        answer = await self._browser.robot_command("set_point", given)
        if answer is not None:
            self._dialog.close()
            self._changed(answer)
