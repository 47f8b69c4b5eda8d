"""One browser at the cell: its language, its robot, and what it asks."""

from collections.abc import Callable
from json import dumps
from typing import Any

from nicegui import ui

from understudy.hmi.link import LinkError, Role
from understudy.hmi.pages.picture import Caller, Picture
from understudy.hmi.texts import Texts

NOTICE_MS = 6000


class Browser:
    """Made for every page that is opened; ends with it."""

    def __init__(
        self, link: Caller, picture: Picture, texts: Texts, *, robot: str, role: Role
    ) -> None:
        self.picture = picture
        self.texts = texts
        self.robot = robot
        self.role = role
        self._link = link
        self._updates: list[tuple[Callable[[], object], ui.element | None]] = []
        self._chosen: list[Callable[[], object]] = []

    @property
    def facts(self) -> Any:
        """What the cell tells of the robot in front of this browser."""
        return self.picture.robots.get(self.robot, {})

    def can(self, capability: str) -> bool:
        return capability in self.facts.get("capabilities", ())

    async def ask(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """What the cell answers to an order; None, and a notice on the page, where it will not.
        What has changed is seen at once."""
        answer = await self.look(command, parameters)
        self.picture.hurry()
        return answer

    async def look(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """The same of a question: nothing has changed by it."""
        try:
            return await self._link.call(command, parameters or {}, role=self.role)
        except LinkError as refusal:
            self.complain(refusal.message)
            return None

    def complain(self, reason: str) -> None:
        """A notice that something was not done."""
        words = self.texts("frame.not_done").format(reason=reason)
        ui.notify(words, type="negative", position="top", timeout=NOTICE_MS, multi_line=True)

    async def order(self, command: str, parameters: dict[str, Any] | None = None) -> Any:
        """The same of the robot in front of this browser."""
        return await self.ask(command, {"robot": self.robot, **(parameters or {})})

    def each_round(
        self, update: Callable[[], object], *, while_there: ui.element | None = None
    ) -> None:
        """Call `update` now and whenever the picture may have changed, while the page is open, or
        as long as an element of it is there."""
        self._updates.append((update, while_there))
        update()

    def on_choice(self, rebuild: Callable[[], object]) -> None:
        """Call `rebuild` when this browser turns to another robot."""
        self._chosen.append(rebuild)

    def choose(self, robot: str) -> None:
        self.picture.leave(self.robot)
        self.robot = robot
        self.picture.watch(robot)
        ui.run_javascript(f"window.understudyFrame.remember('robot', {dumps(robot)})")
        for rebuild in self._chosen:
            rebuild()
        self.refresh()

    def take(self) -> None:
        """The page stands: from now on it is kept fresh, until the browser goes."""
        client = ui.context.client

        def follow() -> None:
            with client:
                self.refresh()

        leave = self.picture.on_change(follow)
        self.picture.watch(self.robot)

        def go() -> None:
            leave()
            self.picture.leave(self.robot)

        client.on_delete(go)

    def refresh(self) -> None:
        """Everything on the page as it is now."""
        for update, element in list(self._updates):
            if element is None or not element.is_deleted:
                update()
        self._updates = [
            each for each in self._updates if each[1] is None or not each[1].is_deleted
        ]
