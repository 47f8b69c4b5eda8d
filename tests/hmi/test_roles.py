"""Every route of REST, with every method, for every role: what reaches the cell, and as whom."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.benches import Bench

from understudy.hmi.access import Access, Guard, Role
from understudy.hmi.rest import rest

OPERATOR, VIEWER = "token-of-the-operator", "token-of-the-viewer"
HEADERS: dict[str, dict[str, str]] = {
    "nobody": {},
    "viewer": {"Authorization": f"Bearer {VIEWER}"},
    "operator": {"Authorization": f"Bearer {OPERATOR}"},
}
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS")
CELLS = ("default", "pick_place", "calibration")


class RecordedLink:
    """What would go to the cell."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Role]] = []

    async def call(self, command: str, parameters: Any, *, role: Role, timeout_s: float) -> Any:
        self.calls.append((command, role))
        return {}


@pytest.fixture(scope="module")
def table() -> list[dict[str, Any]]:
    """The commands of all kinds of robots and jobs."""
    rows: dict[str, dict[str, Any]] = {}
    for name in CELLS:
        bench = Bench(name)
        rows |= {row["name"]: row for row in bench.do("commands")}
        bench.close()
    return list(rows.values())


async def ask_all(table: list[dict[str, Any]], who: str) -> dict[tuple[str, str], tuple[int, Any]]:
    """Status, and what reached the cell, for each method and command."""
    link: Any = RecordedLink()
    app = Starlette(routes=[Mount("/api", rest(link, table))])
    access = Access("127.0.0.1", token=OPERATOR, viewer_token=VIEWER)
    guarded: Any = Guard(app, access)
    transport = httpx.ASGITransport(guarded, client=("127.0.0.1", 1))
    found = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for row in table:
            for method in METHODS:
                answer = await client.request(method, f"/api/{row['name']}", headers=HEADERS[who])
                found[method, row["name"]] = answer.status_code, list(link.calls)
                link.calls.clear()
    return found


@pytest.mark.parametrize("who", list(HEADERS))
def test_a_command_reaches_the_cell_by_its_method_and_role_only(
    who: str, table: list[dict[str, Any]]
) -> None:
    roles = {row["name"]: row["role"] for row in table}
    assert len(roles) > 150
    assert {"start_pick_place", "fleet_command", "quit", "inject"} <= roles.keys()
    for (method, name), (status, calls) in asyncio.run(ask_all(table, who)).items():
        known = method == "POST" or (method == "GET" and roles[name] == "viewer")
        allowed = who == "operator" or (who == "viewer" and roles[name] == "viewer")
        if known and allowed:
            assert (status, calls) == (200, [(name, who)]), (method, name)
        else:
            assert calls == [], (method, name)
            expected = 401 if who == "nobody" else 403 if known else 405
            assert status == expected, (method, name)
