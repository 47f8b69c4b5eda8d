"""Points taught by going there: a table that every browser shares, for it is the cell's."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from nicegui import background_tasks, ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button

TOOL_WORDS = "XYZABC"
JOINT_WORDS = {"grblhal": "XYZABC"}

Point = Mapping[str, Any]
Follow = Callable[[list[Point]], None]


class Points:
    """The robot's points as they are now; whoever follows is told when they change."""

    def __init__(self, browser: Browser) -> None:
        self.all: list[Point] = []
        self._seat = browser
        self._followers: list[Follow] = []
        self._seen: object = None
        self._page = ui.context.client
        browser.on_choice(lambda: self._take([]))
        browser.each_round(self._look)

    def follow(self, follow: Follow) -> None:
        self._followers.append(follow)
        follow(self.all)

    def find(self, name: str | None) -> Point | None:
        return next((point for point in self.all if point["name"] == name), None)

    def free_name(self) -> str:
        taken = {point["name"] for point in self.all}
        return next(f"P{n}" for n in range(1, len(taken) + 2) if f"P{n}" not in taken)

    def _look(self) -> None:
        """Asks when the cell tells of others than before."""
        robot = self._seat.robot
        there = self._seat.picture.status.get("parts", {}).get(f"{robot}.points")
        if there is not None and [robot, there] != self._seen:
            self._seen = [robot, there]
            background_tasks.create(self._ask(robot))

    async def _ask(self, robot: str) -> None:
        with self._page:
            answer = await self._seat.look("points", {"robot": robot})
            if robot == self._seat.robot:
                self.take(answer)

    def take(self, answer: Any) -> None:
        """What a command about points has answered, if it was carried out."""
        if answer is not None:
            self._take(answer["points"])

    def _take(self, points: list[Point]) -> None:
        if points != self.all:
            self.all = points
            for follow in self._followers:
                follow(points)


class PointPanel:
    """The table, and what can be done with the chosen row."""

    def __init__(self, browser: Browser, points: Points) -> None:
        self._seat = browser
        self._points = points
        self._chosen: str | None = None
        self._build()
        points.follow(lambda all_: self._show())

    def _build(self) -> None:
        texts = self._seat.texts
        with ui.element("div").classes("u-inline"):
            self._name = ui.input(placeholder=texts("points.name")).classes("u-input")
            self._name.props("outlined dense maxlength=64 data-mark=point-name")
            teach = button(texts("points.teach"), icon="add_location", kind="u-go").props(
                "data-mark=teach"
            )
            teach.on_click(self._teach)
        self._rows = ui.element("div").classes("u-point-rows").props("data-mark=points")
        with ui.element("div").classes("u-point-verbs"):
            self._verbs = [
                self._verb("go_joint", "route", self._go),
                self._verb("go_line", "trending_flat", lambda: self._go(line=True)),
                self._verb("insert", "post_add", self._insert),
                self._verb("touch_up", "my_location", self._touch_up),
                self._verb("rename", "edit", self._rename),
                self._verb("delete", "delete", self._delete),
            ]

    def _verb(self, name: str, icon: str, deed: Callable[[], Any]) -> ui.button:
        made = button(self._seat.texts(f"points.{name}"), icon=icon, kind="u-verb")
        made.props(f"stack data-mark=point-{name}").on_click(deed)
        return made

    # ── what is seen ──

    def _show(self) -> None:
        if self._points.find(self._chosen) is None:
            self._chosen = self._points.all[-1]["name"] if self._points.all else None
        self._rows.clear()
        with self._rows:
            for point in self._points.all:
                self._row(point)
            if not self._points.all:
                ui.label(self._seat.texts("points.none")).classes("u-caption")
        for verb in self._verbs:
            verb.set_enabled(self._chosen is not None)

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

    # ── what is done ──

    async def _teach(self) -> None:
        said = self._taken_name()
        name = said or self._points.free_name()
        answer = await self._seat.order("teach_point", {"name": name})
        if answer is None:
            self._give_back(said)
        else:
            self._chosen = name
            self._points.take(answer)
            self._show()

    def _taken_name(self) -> str:
        """What stands in the field, which is empty from now on: what is typed meanwhile stays."""
        said = (self._name.value or "").strip()
        self._name.set_value("")
        return said

    def _give_back(self, said: str) -> None:
        if not self._name.value:
            self._name.set_value(said)

    async def _touch_up(self) -> None:
        self._points.take(await self._seat.order("touch_up", {"name": self._chosen}))

    async def _rename(self) -> None:
        to = self._taken_name()
        if not to:
            ui.notify(self._seat.texts("points.new_name"), position="top")
            return
        before, self._chosen = self._chosen, to
        answer = await self._seat.order("rename_point", {"name": before, "to": to})
        if answer is None:
            self._chosen = before
            self._give_back(to)
        self._points.take(answer)

    async def _delete(self) -> None:
        self._points.take(await self._seat.order("delete_point", {"name": self._chosen}))

    async def _go(self, line: bool = False) -> None:
        await self._seat.order("go_to_point", {"name": self._chosen, "line": line})

    def _insert(self) -> None:
        point = self._points.find(self._chosen)
        if point is None:
            return
        move = json.dumps(straight_to(point, self._seat.facts.get("dialect", "")))
        ui.run_javascript(f"window.program.insert({move}, {json.dumps(point['name'])})")


def figures(pose_mm_deg: list[float]) -> str:
    """`450.0 -100.0 350.0 | 180.0 0.0 0.0`."""
    place, turn = pose_mm_deg[:3], pose_mm_deg[3:]
    return f"{_row_of(place)}  |  {_row_of(turn)}"


def straight_to(point: Point, dialect: str) -> str:
    """A G1 there: in the tool's pose, or in joints where the dialect has nothing else."""
    letters = JOINT_WORDS.get(dialect)
    values = point["joints_deg"] if letters else point["pose_mm_deg"]
    pairs = zip(letters or TOOL_WORDS, values, strict=False)
    return "G1 " + " ".join(f"{letter}{_figure(value)}" for letter, value in pairs)


def _row_of(values: list[float]) -> str:
    return " ".join(f"{round(value, 1) + 0.0:.1f}" for value in values)


def _figure(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".rstrip("0").rstrip(".")
