"""Names for the bytes of an answer."""

import pytest

from understudy.ports.decoder import Decoded
from understudy.robots.grblhal.face import DECODER
from understudy.robots.grblhal.face.reports import name_field

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


def test_answers_are_lines() -> None:
    assert DECODER.cut_answers(REPORT + b"ok\r\nhalf") == ([REPORT, b"ok\r\n"], b"half")


@pytest.mark.parametrize(
    ("data", "requests", "rest"),
    [
        (b"G1 X1\r\nG1 X2\n", [b"G1 X1\r\n", b"G1 X2\n"], b""),
        (b"G1 X1?0 F\x91100\n", [b"?", b"\x91", b"G1 X10 F100\n"], b""),
        (b"(why?)!\n?", [b"!", b"(why?)\n", b"?"], b""),
        (b"$I=a?b\n", [b"$I=a?b\n"], b""),
        (b"G1 X5\x18G0 X1", [b"G1 X5", b"\x18"], b"G0 X1"),
        (b"\n", [b"\n"], b""),
        (b"", [], b""),
    ],
)
def test_requests_are_lines_and_real_time_bytes(
    data: bytes, requests: list[bytes], rest: bytes
) -> None:
    assert DECODER.cut_requests(data) == (requests, rest)


@pytest.mark.parametrize(
    ("request_", "names", "fields"),
    [
        (b"G1 X10 F500 (to M3)\n", ("G1",), {"X": 10.0, "F": 500.0}),
        (b"g38.2z-5f10m3\n", ("G38.2", "M3"), {"Z": -5.0, "F": 10.0}),
        (b"$J=G91 X5 F100\n", ("$J",), {"value": "G91 X5 F100"}),
        (b"$h\n", ("$H",), {}),
        (b"?", ("?",), {}),
        (b"\x91", ("0x91",), {}),
        (b"\n", (), {}),
    ],
)
def test_requests_are_decoded(
    request_: bytes, names: tuple[str, ...], fields: dict[str, object]
) -> None:
    assert DECODER.read_request(request_, "") == Decoded(names, fields)


@pytest.mark.parametrize(
    ("answer", "decoded"),
    [
        (b"ok\r\n", Decoded(("ok",))),
        (b"error:20\r\n", Decoded(("error:20",), {}, refused=True)),
        (b"ALARM:2\r\n", Decoded(("ALARM:2",), {}, refused=True)),
        (b"ALARM:3\r\n", Decoded(("ALARM:3",))),
        (b"<Idle|Bf:99,1023>\r\n", Decoded(("status",), {"State": "Idle", "Bf": "99,1023"})),
        (b"[GC:G0 G54]\r\n", Decoded(("GC",), {"value": "G0 G54"})),
        (b"$110=500.000\r\n", Decoded(("$110",), {"value": "500.000"})),
        (b"\r\n", Decoded()),
    ],
)
def test_answers_are_decoded(answer: bytes, decoded: Decoded) -> None:
    assert DECODER.read_answer(answer, "") == decoded
