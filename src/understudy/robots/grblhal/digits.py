"""Numbers of settings as the firmware reads and writes them."""

import numpy as np

_WORD = 0xFFFFFFFF
_MOST_DIGITS, _LARGEST_TO_EXTEND = 9, _WORD // 10


def read_whole(text: str) -> int | None:
    """The whole number at the begin of a text; None if there is none.

    Decimals must be 0, and each of them multiplies the number by ten: `1.0` is 10. Digits beyond
    the ninth are dropped if they are greater than 4.
    """
    value = digits = 0
    point = found = False
    for character in text.removeprefix("+"):
        if character == "." and not point:
            point = True
            continue
        if not "0" <= character <= "9":
            break
        digit, found = int(character), True
        digits += not point and (digit > 0 or value > 0)
        if point and digit:
            return None
        if (digits <= _MOST_DIGITS or digit <= 4) and value <= _LARGEST_TO_EXTEND:
            value = (value * 10 + digit) & _WORD
    return value if found else None


def fixed(value: float, places: int) -> str:
    """A number with this many decimals, rounded in single precision.

    The part before the point and the decimals are counted in 32 bits: a larger number is wrong.
    """
    one = np.float32
    n = abs(one(value)) + one(0.5 * 10.0**-places)
    whole = int(n) & _WORD
    n = n - one(whole)
    for _ in range(places // 2):
        n = n * one(100.0)
    if places % 2:
        n = n * one(10.0)
    decimals = f"{int(n) & _WORD:0{places}d}"[-places:]
    return f"{'-' if value < 0.0 else ''}{whole}.{decimals}"
