"""Random sessions for a grblHAL controller: lines from a grammar, and real-time bytes."""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

AXES = "XYZABC"
SESSION = 40
"""Steps of a session."""

Line = Callable[[Random], str]

GROUPS: Sequence[tuple[float, str]] = (
    (6, "G0 G1"),
    (3, "G2 G3"),
    (2, "G38.2 G38.3 G38.4 G38.5"),
    (2, "G5 G5.1"),
    (6, "G73 G81 G82 G83 G85 G86 G89"),
    (2, "G80"),
    (2, "G17 G18 G19"),
    (2, "G20 G21"),
    (3, "G90 G91"),
    (1, "G90.1 G91.1"),
    (2, "G93 G94 G95"),
    (1, "G96 G97"),
    (2, "G98 G99"),
    (2, "G54 G55 G56 G57 G58 G59 G59.1 G59.2 G59.3"),
    (3, "G10"),
    (2, "G28 G30 G28.1 G30.1"),
    (3, "G43 G43.1 G43.2 G49"),
    (2, "G50 G51"),
    (2, "G53"),
    (2, "G92 G92.1 G92.2 G92.3"),
    (1, "G61 G61.1 G64 G40 G41 G42"),
    (2, "G65 G66 G67"),
    (2, "G4"),
    (1, "G7 G8"),
    (1, "G33 G76 G84 G87 G88 G12 G13 G68 G69"),
)
M_WORDS: Sequence[tuple[float, str]] = (
    (4, "M3 M4 M5"),
    (3, "M7 M8 M9"),
    (2, "M2 M30"),
    (1, "M0 M1 M60"),
    (2, "M6 M61"),
    (3, "M48 M49 M50 M51 M52 M53 M56"),
    (3, "M62 M63 M64 M65 M66 M67 M68"),
    (3, "M70 M71 M72 M73"),
    (2, "M98 M99"),
    (1, "M10 M19 M100 M110 M500 M1000"),
)
FEEDS = ("G1", "G38.2", "G38.3", "G38.4", "G38.5")
DRILLS = ("G73", "G81", "G82", "G83", "G84", "G85", "G86", "G87", "G88", "G89")
SPEEDS = (100, 600, 0, -5, 12.5)
G_VALUES: Mapping[str, Sequence[str]] = {
    "G4": ("P0", "P0.1", "P2", ""),
    "G5": ("X3 Y2 I1 J1 P2 Q-1 F100", "X3 I1 J1 P2 Q-1", "X3 Y2 P2 Q-1", "X3 Y2 I1 J1"),
    "G5.1": ("X3 Y2 I1 J1 F100", "X3 Y2 I1", "X3 Y2", ""),
    "G33": ("Z-1 K1", "Z-1"),
    "G43": ("H0", "H1", "H99", ""),
    "G43.1": ("Z1.5", "X1", ""),
    "G43.2": ("H1", ""),
    "G51": ("X2", "X2 Y2", "Z0.5", "P2", ""),
    "G65": ("P100", "", "P1 Q2"),
    "G66": ("P100", ""),
    "G76": ("Z-5 P1 I-1 J0.2 K1", "Z-5"),
    "G96": ("S100 D1000", "S100", ""),
}
"""The words that are written with a G word."""
WITH_PORT = ("M50", "M51", "M52", "M53", "M56", "M62", "M63", "M64", "M65")
M_PORTS = ("", "P0", "P1", "P7", "P8", "P-1", "P50", "P200")
M_VALUES: Mapping[str, Sequence[str]] = {
    "M3": ("S1000", "S10.5", "S0", "", "S-1", "S100000"),
    "M4": ("S1000", "S0", ""),
    "M6": ("T1", "T0", "", "T99999"),
    "M61": ("Q0", "Q2", "", "Q-1"),
    "M66": ("P0 L0", "P0 L3 Q0.1", "P1 L3", "E0 L0", "P200 L0", "L9", ""),
    "M67": ("E0 Q1", "E1 Q0", "E0", "Q1", ""),
    "M68": ("E0 Q1", "E1 Q0", "E0", "Q1", ""),
    "M98": ("P100", ""),
}
"""The words that are written with an M word."""
ODD_LINES = (
    "",
    "%",
    "/G0X1",
    "(MSG,hello)",
    "(a comment)",
    ";note",
    "G",
    "X",
    "1",
    "#1=2",
    "G1X[1+2]F100",
    "o100 sub",
    "G1 X1 X2 F100",
    "N-1G0X1",
    "G1.5X1",
    "M3.5",
    "G-1",
    "(DEBUG,x)",
    "(PRINT,y)",
    "G0X1e1",
    "T-1",
)
VALUES = ("0", "1", "2", "3", "7", "10", "255", "0.5", "-1", "1.5a", "1000", "x", "")
DOLLARS: Sequence[str] = (
    "$",
    "$$",
    "$#",
    "$G",
    "$I",
    "$I+",
    "$N",
    "$N0=G54",
    "$N1=",
    "$C",
    "$X",
    "$H",
    "$HX",
    "$SLP",
    "$B",
    "$S",
    "$SED=1",
    "$SED=9999",
    "$SPINDLES",
    "$SPINDLESH",
    "$PINS",
    "$PINSTATE",
    "$PORTS",
    "$LIM",
    "$LEV",
    "$HSS",
    "$TLR",
    "$TPW",
    "$DWNGRD",
    "$EA",
    "$EE",
    "$ES",
    "$EG",
    "$EAG",
    "$EEG",
    "$ESG",
    "$ESH",
    "$E*",
    "$$=0",
    "$$=110",
    "$10",
    "$110",
    "$999",
    "$$=999",
    "$HELP",
    "$HELP COMMANDS",
    "$HELP SETTINGS",
    "$HELP SPINDLE",
    "$HELP NONE",
    "$+",
    "$$+",
    "$RST=$",
    "$RST=#",
    "$RST=&",
    "$RST=*",
    "$RST=",
    "$J=G91X1F100",
    "$J=X1",
    "$J=G90 X2 F500",
    "$J=G0X1",
    "$33",
    "$63",
    "$111=12a",
    "$#=1",
    "$#=_x",
    "$RTC",
    "$MODBUSSTATS",
    "$UPTIME",
    "$F",
    "$FS",
    "$D",
    "$RAMSTATS",
    "$POS",
    "$PROFILE",
    "$L",
    "$NVS",
    "$KINEMATICS",
    "$MD5",
    "$SDS",
    "$T",
)
BYTES = (
    b"?!~\x18\x03\x05\x19\x80\x81\x82\x83\x84\x85\x87\x88\x89\x8a\x8c\x90\x91\x92\x93\x94"
    b"\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xa1\xa2\xa3\xa4\xb0"
)
SETTINGS = (
    *range(66),
    *range(100, 106),
    *range(110, 116),
    *range(120, 126),
    *range(130, 136),
    341,
    342,
    343,
    344,
    345,
    346,
    370,
    376,
    384,
    392,
    393,
    394,
    398,
    481,
    484,
    485,
    486,
    538,
    539,
    673,
    676,
    680,
    701,
)

STOPS = re.compile(
    rb"(?i)[!\x84\x85\x19]|M0?[016]\b|M60|G38|\$(SLP|C|H|2[0-2]|4[0-9]|5|1[0-4]|21|62|384)"
)
"""Steps after which the controller may wait or refuse lines."""
RECOVERY = 0.35
"""The share of steps that end such a wait, while it may last."""
RECOVERIES = (b"~", b"~", b"\x18", b"$X\n", b"$C\n")


def session(rng: Random, length: int = SESSION) -> list[bytes]:
    """The steps: lines with their end, or single real-time bytes."""
    share = rng.choice((0.0, 0.05, 0.3))
    dollar = rng.choice((0.0, 0.1, 0.5))
    steps = [b"$C\n"] if rng.random() < 0.15 else []
    stopped = False
    while len(steps) < length:
        if stopped and rng.random() < RECOVERY:
            steps.append(rng.choice(RECOVERIES))
            stopped = False
        elif rng.random() < share:
            steps.append(bytes([rng.choice(BYTES)]))
        elif rng.random() < dollar:
            steps.append(dollar_line(rng).encode("latin-1") + b"\n")
        else:
            steps.append(decorated(rng, gcode_line(rng)).encode("latin-1") + b"\n")
        stopped = stopped or STOPS.search(steps[-1]) is not None
    return steps


def dollar_line(rng: Random) -> str:
    if rng.random() < 0.4:
        return f"${rng.choice(SETTINGS)}={rng.choice(VALUES)}"
    line = rng.choice(DOLLARS)
    return line.lower() if rng.random() < 0.1 else line


def gcode_line(rng: Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(ODD_LINES)
    words = []
    if rng.random() < 0.7:
        words += g_words(rng, _chosen(rng, GROUPS))
    if rng.random() < 0.3 or not words:
        words += m_words(rng, _chosen(rng, M_WORDS))
    if rng.random() < 0.1:
        words.insert(0, f"N{rng.choice((1, 10, 99999, 10000000, 10000001))}")
    if rng.random() < 0.08:
        words.append(_any_word(rng))
    if rng.random() < 0.05 and len(words) > 1:
        words.pop(rng.randrange(len(words)))
    if rng.random() < 0.1:
        rng.shuffle(words)
    return " ".join(words)


def g_words(rng: Random, word: str) -> list[str]:
    """A G word with the words that it usually needs, sometimes without one of them."""
    if word in G_VALUES:
        return [word, rng.choice(G_VALUES[word])]
    makers: dict[str, Line] = {
        "G0": lambda rng: _axes(rng, 3),
        "G2": _arc,
        "G3": _arc,
        "G10": _offsets,
        "G53": lambda rng: f"{rng.choice(('G0', 'G1 F200', ''))} {_axes(rng, 3)}",
        **dict.fromkeys(("G28", "G30"), lambda rng: rng.choice(("", _axes(rng, 2)))),
        "G92": lambda rng: _axes(rng, 3),
        **dict.fromkeys(FEEDS, lambda rng: f"{_axes(rng, 3)} F{rng.choice(SPEEDS)}"),
        **dict.fromkeys(DRILLS, _drill),
    }
    return [word, makers[word](rng)] if word in makers else [word]


def m_words(rng: Random, word: str) -> list[str]:
    texts = M_VALUES.get(word, M_PORTS if word in WITH_PORT else ("",))
    return [word, rng.choice(texts)]


def decorated(rng: Random, line: str) -> str:
    """Spaces, comments and small letters, as programs of other people have them."""
    if rng.random() < 0.3:
        line = line.replace(" ", "")
    if rng.random() < 0.1:
        line = line.lower()
    if rng.random() < 0.05:
        line += rng.choice((" (comment)", " ; comment", "(MSG,x)"))
    return line


def words_session(rng: Random, length: int = SESSION) -> list[bytes]:
    """G-code only: after an error an empty line, so that the next line is read again."""
    steps: list[bytes] = []
    while len(steps) < length:
        line = words_line(rng) if rng.random() < 0.5 else gcode_line(rng)
        if not (STOPS.search(line.encode()) or line[:1] == "$" or "S10.5" in line or "G4" in line):
            after = (b"\n", b"$G\n", b"$#\n") if rng.random() < 0.3 else (b"\n",)
            steps += [decorated(rng, line).encode("latin-1") + b"\n", rng.choice(after)]
    return steps[:length]


def words_line(rng: Random) -> str:
    """Words without much meaning: small numbers, many letters, several codes in one line."""
    words = [f"{letter}{rng.choice(WORD_NUMBERS)}" for letter in rng.sample(WORD_LETTERS, 4)]
    codes = rng.choices(WORD_CODES, k=rng.choice((0, 1, 1, 1, 2, 2, 3)))
    words = [*codes, *words[: rng.randint(0, 4)], *(["F100"] if rng.random() < 0.5 else [])]
    if rng.random() < 0.3:
        rng.shuffle(words)
    return " ".join(words)


WORD_LETTERS = "XXXYYZZABIJKPPQRRLLSTHDENO$UVW"
WORD_NUMBERS = ("0", "1", "2", "3", "-1", "-2.5", "5.5", ".25", "7", "12", "100", "257", "1.0")
FREQUENT_CODES = "G5 G5.1 G51 G50 G65 G66 G66.1 G67 M70 M72 M98 G81 G82 G83 G73 G85 G2 G3 G1 G0 G54"
WORD_CODES = " ".join([*(words for _, words in (*GROUPS, *M_WORDS)), FREQUENT_CODES]).split()
SUBJECTS: Mapping[int, Callable[[Random, int], list[bytes]]] = {1: words_session}
"""Grammars of the sessions from 10,000 times this number on."""


def numbered_session(number: int, length: int = SESSION) -> list[bytes]:
    """The steps of the session with this number."""
    return SUBJECTS.get(number // 10_000, session)(Random(number), length)


def _axes(rng: Random, most: int) -> str:
    count = rng.randint(0 if rng.random() < 0.1 else 1, most)
    chosen = rng.sample(AXES if rng.random() < 0.3 else AXES[:3], min(count, 3))
    return " ".join(f"{axis}{_number(rng)}" for axis in chosen)


def _number(rng: Random) -> str:
    return rng.choice(("0", "1", "-1", "10", "5.5", "-2.25", "0.001", "-0", ".5", "20", "+3"))


def _arc(rng: Random) -> str:
    ends = rng.choice(("X10 Y0", "X2 Z1", "Y5 Z5", "X0", "X5 Y5 Z1", ""))
    centre = rng.choice(("I5", "I5 J0", "R5", "R-8", "J5", "K2", "R0", "", "I5 R3", "I0 J0"))
    turns = rng.choice(("", "", "", "P2", "P0", "P1.5"))
    return f"{ends} {centre} {turns} F{rng.choice((300, 600))}"


def _drill(rng: Random) -> str:
    words = [_axes(rng, 2)]
    words += [f"Z{rng.choice((-2, -5.5, 1, 8))}"] if rng.random() < 0.85 else []
    words += [f"R{rng.choice((1, 2, 5, -3))}"] if rng.random() < 0.85 else []
    words += [f"Q{rng.choice((1, 0.5, 0, -1, 20))}"] if rng.random() < 0.5 else []
    words += [f"P{rng.choice((0, 0.1, 1))}"] if rng.random() < 0.4 else []
    words += [f"L{rng.choice((0, 1, 2, 3))}"] if rng.random() < 0.3 else []
    words += [f"F{rng.choice((100, 300))}"] if rng.random() < 0.8 else []
    return " ".join(words)


def _offsets(rng: Random) -> str:
    what = rng.choice(("L2", "L20", "L1", "L10", "L11", "L3", ""))
    which = rng.choice(("P0", "P1", "P2", "P9", "P10", "P12", "", "P1.5", "P-1"))
    more = rng.choice(("", "", "", "R1", "Q1"))
    return f"{what} {which} {_axes(rng, 3)} {more}"


def _any_word(rng: Random) -> str:
    letter = rng.choice("ABCDEFGHIJKLMNPQRSTUVWXYZ$#!")
    return f"{letter}{rng.choice(('', '1', '-1', '0.5', '1000', '99999999', '1.2.3', 'x'))}"


def _chosen(rng: Random, groups: Sequence[tuple[float, str]]) -> str:
    weights = [weight for weight, _ in groups]
    return rng.choice(rng.choices([words for _, words in groups], weights)[0].split())
