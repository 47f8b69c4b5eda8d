"""`/metrics` of a cell that does not answer, or whose time cannot go on."""

from typing import Any

from understudy.hmi.rest import QUERIES, metrics_text


def answers(**given: Any) -> dict[str, Any]:
    return {**dict.fromkeys(QUERIES), **given}


def test_a_cell_that_does_not_answer_is_down() -> None:
    text = metrics_text(answers(), pages=2)
    assert "understudy_up 0\n" in text
    assert "understudy_pages 2\n" in text
    assert "understudy_rate" not in text


def test_what_a_cell_does_not_know_is_left_out_and_labels_are_escaped() -> None:
    status = {"rate": "max", "now_s": 1.5, "real_s": 2.0, "problem": "bug", "parts": {}}
    devices = [{"name": 'a"\\\n', "faults": ["one", "two"]}]
    text = metrics_text(answers(status=status, devices=devices), pages=0)
    assert "understudy_time_can_run 0\n" in text
    assert "understudy_simulation_seconds_total 1.5\n" in text
    assert "understudy_rate " not in text
    assert "understudy_lateness" not in text
    assert 'understudy_device_faults{device="a\\"\\\\\\n"} 2\n' in text
