"""Names for the bytes of an answer."""

import pytest

from understudy.robots.grblhal.face import messages, name_field

REPORT = b"<Run|MPos:1.000,2.000,3.000,4.000,5.000,6.000|Bf:99,1023|FS:1500,0|Ov:100,50,25|A:S>\r\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"Run", "State"),
        (b"1.000", "MPos.X"),
        (b"6.000", "MPos.C"),
        (b"MPos", "MPos"),
        (b"99", "Bf.blocks"),
        (b"1023", "Bf.bytes"),
        (b"1500", "FS.feed"),
        (b"50,", "Ov.rapid"),
        (b"25|", "Ov.spindle"),
        (b"A:S", "A"),
    ],
)
def test_fields_of_a_report(text: bytes, name: str) -> None:
    at = REPORT.index(b",50,") + 1 if text == b"50," else REPORT.index(text)
    assert name_field(REPORT, at) == name


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (b"ok\r\n", "verdict"),
        (b"error:22\r\n", "verdict"),
        (b"ALARM:3\r\n", "ALARM"),
        (b"[GC:G0 G54]\r\n", "GC"),
        (b"$110=500.000\r\n", "$110"),
        (b"\r\n", "text"),
        (b"GrblHAL 1.1f\r\n", "text"),
    ],
)
def test_other_answers(answer: bytes, name: str) -> None:
    assert name_field(answer, len(answer) - 1) == name


def test_messages_are_lines() -> None:
    assert messages(REPORT + b"ok\r\nhalf") == [REPORT, b"ok\r\n", b"half"]
