"""Session of one browser: its language, its robot, and its commands to the cell."""

from collections.abc import Callable, Mapping
from json import dumps
from typing import Any, Literal, TypeVar

from nicegui import background_tasks, ui

from understudy.hmi.access import Role
from understudy.hmi.frame.cell_state import CellState
from understudy.hmi.link import CellLink, LinkError
from understudy.hmi.texts import Texts

QUESTION_SECONDS = 600.0
"""The longest time that a user takes for an answer."""
_Update = TypeVar("_Update", bound=Callable[[], object])
_Listener = tuple[Callable[[], object], ui.element]
"""A function, and the element with which it ends."""


class Browser:
    """Made when a browser loads the frame; stays while its user changes pages.

    What a page registers here ends with the elements of that page."""

    def __init__(
        self, link: CellLink, cell: CellState, texts: Texts, *, robot: str, role: Role
    ) -> None:
        self.cell = cell
        self.texts = texts
        self.robot = robot
        self.role = role
        self._link = link
        self._updates: list[_Listener] = []
        self._robot_listeners: list[_Listener] = []
        self._events: dict[str, Callable[..., object]] = {}
        self._leaving: list[Callable[[], object]] = []

    @property
    def facts(self) -> Any:
        """The row of the chosen robot in the query `robots`."""
        return self.cell.robots.get(self.robot, {})

    @property
    def is_real(self) -> bool:
        """Whether the chosen robot is the REAL one now."""
        return bool(self.facts.get("mode") == "REAL")

    def part(self, kind: str) -> Mapping[str, Any]:
        """The status of a part of the chosen robot, as `camera`; empty if it has none."""
        found: Mapping[str, Any] | None = self.cell.status.get("parts", {}).get(
            f"{self.robot}.{kind}"
        )
        return found or {}

    def can(self, capability: str) -> bool:
        return capability in self.facts.get("capabilities", ())

    # ── commands and queries ──

    async def query(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """The cell's answer to a query; None, and a notice on the page, if it is refused."""
        try:
            return await self._link.call(command, parameters or {}, role=self.role)
        except LinkError as refusal:
            self.notify_refusal(refusal.message)
            return None

    def ask(self, query: str, show: Callable[[Any], object]) -> None:
        """Asks a query about the chosen robot in the background; calls ``show`` with the answer,
        unless it is refused or the user has chosen another robot meanwhile."""
        robot, client = self.robot, ui.context.client

        async def request() -> None:
            with client:
                answer = await self.query(query, {"robot": robot})
                if answer is not None and robot == self.robot:
                    show(answer)

        background_tasks.create(request())

    async def command(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """As `query`, for a command that changes something; the cell state is refreshed at once."""
        answer = await self.query(command, parameters)
        self.cell.refresh_soon()
        return answer

    async def attempt(self, command: str, parameters: dict[str, Any]) -> Any | LinkError:
        """As `command`, for pages that show a refusal themselves: it is returned."""
        try:
            answer = await self._link.call(command, parameters, role=self.role)
        except LinkError as refusal:
            return refusal
        self.cell.refresh_soon()
        return answer

    async def robot_command(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """A command to the chosen robot."""
        return await self.command(command, {"robot": self.robot, **(parameters or {})})

    async def order(self, command: str, parameters: dict[str, Any] | None = None) -> bool:
        """A command to the chosen robot that starts a motion. The browser sends it, and asks the
        user whether drives that are off are switched on first. → whether it was done."""
        given = dumps({"robot": self.robot, **(parameters or {})})
        script = f"return await window.understudyFrame.order({dumps(command)}, {given}) !== null"
        return bool(await ui.run_javascript(script, timeout=QUESTION_SECONDS))

    def notify_refusal(self, reason: str) -> None:
        """Shows a refusal; frame.js adds a button where there is a remedy."""
        self.call_script("understudyFrame.refused", reason)

    def notice(self, text: str, kind: Literal["info", "positive"] = "info") -> None:
        """Shows a short notice in the corner (api.js)."""
        self.call_script("understudyFrame.notice", text, kind)

    # ── updates of the page ──

    def on_update(self, update: _Update, *, element: ui.element | None = None) -> _Update:
        """Calls ``update`` now and after every change of the cell state, until ``element`` is
        deleted (if none is given: the element that is being built). Also a decorator."""
        self._updates.append((update, element or ui.context.slot.parent))
        update()
        return update

    def on_change_of(self, facts: Callable[[], Any], show: Callable[[Any], object]) -> None:
        """Calls ``show`` with these facts now, and again when they have changed, until the element
        that is being built is deleted."""
        shown: list[Any] = []

        def update() -> None:
            found = facts()
            if [found] != shown:
                shown[:] = [found]
                show(found)

        self.on_update(update)

    def call_script(self, function: str, *given: Any) -> None:
        """Calls a function of a script in the browser, as `plots.setRobot`."""
        ui.run_javascript(f"window.{function}({', '.join(dumps(each) for each in given)})")

    def on_robot_change(self, listener: Callable[[], object]) -> None:
        """Calls ``listener`` when the user chooses another robot, as long as its page is open."""
        self._robot_listeners.append((listener, ui.context.slot.parent))

    def on_event(self, name: str, handler: Callable[..., object]) -> None:
        """Calls ``handler`` when a script emits the event. A page that is built again replaces the
        handler of its last visit."""
        if name not in self._events:
            ui.on(name, lambda event: self._events[name](event))
        self._events[name] = handler

    def on_leave(self, ending: Callable[[], object]) -> None:
        """Calls ``ending`` when the user leaves the page that is being built."""
        self._leaving.append(ending)

    def leave(self) -> None:
        """Ends the page that is shown."""
        leaving, self._leaving = self._leaving, []
        for ending in leaving:
            ending()

    def choose(self, robot: str) -> None:
        """Shows another robot on this page."""
        self.cell.unwatch(self.robot)
        self.robot = robot
        self.cell.watch(robot)
        self.call_script("understudyFrame.remember", "robot", robot)
        self.call_script("understudyFrame.address", {"robot": robot})
        self._robot_listeners = [each for each in self._robot_listeners if not each[1].is_deleted]
        for listener, _ in self._robot_listeners:
            listener()
        self.refresh()

    def start_updates(self) -> None:
        """Keeps the page up to date from now on, until the browser leaves it."""
        client = ui.context.client

        def update() -> None:
            with client:
                self.refresh()

        unsubscribe = self.cell.on_change(update)
        self.cell.watch(self.robot)

        def stop() -> None:
            unsubscribe()
            self.cell.unwatch(self.robot)
            self.leave()

        client.on_delete(stop)

    def refresh(self) -> None:
        """Calls all updates, and drops those whose element is deleted."""
        for update, element in list(self._updates):
            if not element.is_deleted:
                update()
        self._updates = [each for each in self._updates if not each[1].is_deleted]
