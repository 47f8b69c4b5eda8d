"""What to do about an alarm, in words for the operator."""

from collections.abc import Iterable, Mapping

from understudy.ports.device import Device, ReportsEvents

BY_CODE: Mapping[int, str] = {
    1: "A limit switch was hit: jog away from it, then reset and home.",
    2: "The target lies outside an axis's limits: correct the line, or jog back, then reset.",
    3: "The controller was reset while it moved: its position may be lost; reset and home.",
    5: "The probe met nothing: look at probe and part, then reset.",
    9: "The controller is locked: reset it, then enable the drives.",
    10: "Release the emergency stop when the cell is safe, then reset and enable the drives.",
    17: "A drive has tripped: look at motor and cable, then reset and enable the drives.",
    33: "The tool cannot get there: correct the target, the tool or the configuration of the arm.",
    38: "There is no such tool: correct the T word, or add the tool to the cell.",
}
BY_WORD: Mapping[str, str] = {
    "emergency stop": BY_CODE[10],
    "connect": "The line to the controller is down: look at cable and address.",
    "not enabled": "Enable the drives first.",
}
OTHERWISE = "Read the message, correct the cause, then reset."


def advice_on(code: int, text: str, devices: Iterable[Device] = ()) -> str:
    """The advice of the device whose alarm it is; else by the error code, else by a word of the
    message."""
    for device in devices:
        if isinstance(device, ReportsEvents) and (advice := device.advice(text)):
            return advice
    if code in BY_CODE:
        return BY_CODE[code]
    words = text.lower()
    return next((advice for word, advice in BY_WORD.items() if word in words), OTHERWISE)
