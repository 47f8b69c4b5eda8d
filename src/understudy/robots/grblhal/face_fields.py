"""The parts of grblHAL's answers by name, for people who compare transcripts."""

AXES = ("X", "Y", "Z", "A", "B", "C")
PARTS = {
    "MPos": AXES,
    "WPos": AXES,
    "WCO": AXES,
    "DTG": AXES,
    "Bf": ("blocks", "bytes"),
    "FS": ("feed", "speed"),
    "Ov": ("feed", "rapid", "spindle"),
}


def messages(stream: bytes) -> list[bytes]:
    """Cut a stream of answers into lines."""
    return stream.splitlines(keepends=True)


def name_field(answer: bytes, byte: int) -> str:
    """Which field of an answer a byte belongs to: State, MPos.X, Bf.blocks, GC, verdict …"""
    text = answer.decode("latin-1")
    if text[:1] == "<":
        return _in_report(text[1:], byte - 1)
    if text[:1] == "[":
        return text[1:].partition(":")[0]
    if text[:1] == "$":
        return text.partition("=")[0].strip()
    if text.startswith(("ok", "error:")):
        return "verdict"
    return "ALARM" if text.startswith("ALARM:") else "text"


def _in_report(text: str, byte: int) -> str:
    before = text[: max(byte, 0)]
    field = text.split("|")[before.count("|")]
    if "|" not in before:
        return "State"
    name, _, _ = field.partition(":")
    within = before.rpartition("|")[2]
    parts = PARTS.get(name, ())
    index = within.count(",")
    return f"{name}.{parts[index]}" if ":" in within and index < len(parts) else name
