"""Panels of devices and robots, messages of robots in the log, links in the query `io`."""

from tests.benches import Bench

from understudy.robots.kuka.records import LINEAR, Record


def panel(bench: Bench, name: str) -> dict[str, object]:
    found = next(each for each in bench.do("devices") if each["name"] == name)
    return {row.label: row.value for row in found["panel"]}


def server(bench: Bench) -> object:
    return bench.live.operator.robots.find("kuka").simulated.controller  # type: ignore[union-attr]


def test_the_panel_of_a_kuka_shows_its_outputs(bench: Bench) -> None:
    assert panel(bench, "kuka")["Outputs on"] == "–"
    server(bench).submit(Record(3, LINEAR, {"X": 0.05, "E": 5}), 0)  # type: ignore[attr-defined]
    bench.forward(0.1)
    shown = panel(bench, "kuka")
    assert (shown["Arc"], shown["Gas"], shown["Weld job"]) == (True, True, 5)
    assert shown["Outputs on"] == "$OUT[1], $OUT[9], $OUT[65], $OUT[67]"


def test_a_refused_record_of_a_kuka_is_in_its_panel_and_in_the_log(bench: Bench) -> None:
    far = Record(7, LINEAR, {"X": 50.0})
    server(bench).submit(far, 0)  # type: ignore[attr-defined]
    last = str(panel(bench, "kuka")["Last message"])
    assert last.startswith("record 7: ")
    noted = [each for each in bench.do("events")["events"] if each.kind == "message"]
    assert [(each.robot, each.text) for each in noted] == [("kuka", last)]


def test_the_query_io_lists_the_links(arm: Bench) -> None:
    before = arm.do("io", robot="g60")["links"]
    arm.do("link", robot="g60", output="GRIPPER_CLOSE", input=20, delay_ms=50, invert=True)
    row = {"output": "GRIPPER_CLOSE", "input": "DI20", "delay_ms": 50.0, "invert": True}
    assert arm.do("io", robot="g60")["links"] == [*before, row]
    arm.do("unlink", robot="g60", output="GRIPPER_CLOSE")
    assert arm.do("io", robot="g60")["links"] == before
