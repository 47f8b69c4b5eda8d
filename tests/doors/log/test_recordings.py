"""Recordings of a live cell: made, listed, wound back, downloaded, deleted; room on the disk."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.doors.log import commands as recordings
from understudy.doors.log.file import LogFile
from understudy.errors import Refused
from understudy.ports.hmi import Later

DEADLINE_SECONDS = 120.0


async def asked(live: Live, command: str, **parameters: Any) -> Any:
    answer = live.commands.call(command, parameters, "operator")
    if isinstance(answer, Later):
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.then(ended.set_result)
        answer = await asyncio.wait_for(ended, DEADLINE_SECONDS)
    return answer


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def with_live(work: Callable[[Live], Any], folder: Path) -> None:
    async def run() -> None:
        options = Options(rate=1.0, ephemeral=True, files=folder)
        live = Live(load_config("text_robot").without_rules(), options)
        await live.start()
        try:
            await work(live)
        finally:
            await live.stop()

    asyncio.run(run())


async def moved(live: Live, x: int) -> None:
    host, _, port = live.endpoints["bench.text_tcp"].rpartition("://")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"MOVE_ABS %d,0,150,0,0,0\n" % x)
    await asyncio.wait_for(reader.readline(), DEADLINE_SECONDS)
    writer.close()


def test_a_recording_from_start_to_end(tmp_path: Path) -> None:
    async def work(live: Live) -> None:
        assert (await asked(live, "record_start", name="one"))["name"] == "one.mcap"
        assert isinstance(await asked(live, "record_start"), Refused)
        await moved(live, 100)
        now_s = live.now
        await moved(live, 200)
        await until(lambda: bool(_rows(live)[0]["to_s"] > now_s))
        row = _rows(live)[0]
        assert row["running"]
        assert row["dropped"] == 0
        assert isinstance(await asked(live, "delete_recording", name="one.mcap"), Refused)
        assert (await asked(live, "record_stop"))["name"] == "one.mcap"
        assert isinstance(await asked(live, "record_stop"), Refused)

        line = await asked(live, "timeline", name="one.mcap")
        assert line["whole"]
        assert line["robots"] == ["bench"]
        assert line["marks"][0].kind == "snapshot"
        then = await asked(live, "timeline_at", name="one.mcap", at_s=now_s)
        texts = [each["text"] for each in then["journal"]]
        assert any("MOVE_ABS 100" in text for text in texts)
        assert not any("MOVE_ABS 200" in text for text in texts)
        assert then["view"]["robots"]["bench"]["tcp"][0] == pytest.approx(0.1, abs=0.01)
        assert "bench" in then["scene"]["robots"]
        curves = await asked(live, "timeline_curves", name="one.mcap", robot="bench")
        assert curves["names"] == ["x", "y", "z"]
        assert curves["rows"][-1][1][0] == pytest.approx(0.2, abs=0.01)

        part = await asked(live, "recording_part", name="one.mcap")
        path = tmp_path / "recordings/one.mcap"
        assert base64.b64decode(part["data"]) == path.read_bytes()
        assert isinstance(await asked(live, "timeline", name="two.mcap"), Refused)
        assert (await asked(live, "delete_recording", name="one.mcap"))["recordings"] == []
        assert not path.exists()

    with_live(work, tmp_path)


def test_the_oldest_recordings_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(live: Live) -> None:
        for name in ("a", "b"):
            await asked(live, "record_start", name=name)
            await asked(live, "record_stop")
        assert [row["name"] for row in _rows(live)] == ["b.mcap", "a.mcap"]
        newest = (tmp_path / "recordings/b.mcap").stat().st_size
        monkeypatch.setattr(recordings, "MOST_BYTES", newest + 100)
        await asked(live, "record_start", name="c")
        names = {row["name"] for row in _rows(live)}
        assert "a.mcap" not in names
        assert "c.mcap" in names
        monkeypatch.setattr(recordings, "MOST_BYTES", 10)
        await until(lambda: not _listed(live)["recording"])
        await until(lambda: LogFile(tmp_path / "recordings/c.mcap").whole)

    with_live(work, tmp_path)


def _rows(live: Live) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _listed(live)["recordings"]
    return rows


def _listed(live: Live) -> Any:
    return live.commands.call("recordings", {}, "viewer")
