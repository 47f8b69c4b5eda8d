"""Numbers and words as JSON text, written into a buffer by compiled loops.

A number gets the shortest text from which it can be read back, in the notation of msgspec: the
bytes are the same as those of `msgspec.json`. The digits are found with the Schubfach algorithm
(R. Giulietti, "The Schubfach way to render doubles", 2021): the interval of numbers that are
rounded to a double is scaled by a power of ten so that it contains one integer, or ten of which one
ends with a zero.
"""

import numpy as np
from numpy.typing import NDArray

from understudy.robots.mobile.runtime.ids import FACTORS, STEPS
from understudy.space.compiled import compiled

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

LONGEST_NUMBER = 25
"""Bytes of the longest number: -2.2250738585072014e-308 and one more."""
LEAST_POWER, MOST_POWER = -292, 324
"""Powers of ten by which a double is scaled."""
TEN = np.uint64(10)
LOW = np.uint64(0xFFFFFFFF)
_POINT, _ZERO, _MINUS, _E = (ord(each) for each in ".0-e")
_LETTERS = ord("a") - 10


def _powers() -> Words:
    """The powers of ten as 128 bits, rounded up to the next number below the exact ones: high and
    low half."""
    found = np.zeros((MOST_POWER - LEAST_POWER + 1, 2), dtype=np.uint64)
    for row, power in enumerate(range(LEAST_POWER, MOST_POWER + 1)):
        shift = 127 - ((power * 1741647) >> 19)
        above, below = 10 ** max(power, 0), 10 ** max(-power, 0)
        scaled = above << shift if shift >= 0 else above >> -shift
        exact = below == 1 and (shift >= 0 or above % (1 << -shift) == 0)
        value = scaled // below + (0 if exact else 1)
        found[row] = value >> 64, value & ((1 << 64) - 1)
    return found


POWERS = _powers()
"""Argument of `put_number`."""


@compiled
def signed(value: np.uint64) -> int:
    """Kernels keep the type of an unsigned number in `int(…)`."""
    return int(np.int64(value))


@compiled
def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 bits of the product of two numbers."""
    a_low, a_high = a & LOW, a >> np.uint64(32)
    b_low, b_high = b & LOW, b >> np.uint64(32)
    low = a_low * b_low
    middle = a_high * b_low + (low >> np.uint64(32))
    other = a_low * b_high + (middle & LOW)
    return a_high * b_high + (middle >> np.uint64(32)) + (other >> np.uint64(32))


@compiled
def _scaled(high: np.uint64, low: np.uint64, value: np.uint64) -> np.uint64:
    """``value`` times a power of ten, shifted by 128 bits; the last bit is set if the product has
    more bits (rounded to odd)."""
    carry = _high_product(low, value)
    lower = high * value
    upper = _high_product(high, value)
    total = lower + carry
    if total < lower:
        upper += np.uint64(1)
    return upper | np.uint64(1 if total > np.uint64(1) else 0)


@compiled
def _shortest(bits: np.uint64, powers: Words) -> tuple[int, int]:
    """The shortest decimal of a positive double, given as its bits: digits and exponent."""
    fraction = bits & np.uint64((1 << 52) - 1)
    biased = signed(bits >> np.uint64(52))
    significand, exponent = fraction, -1074
    if biased != 0:
        significand, exponent = fraction | np.uint64(1 << 52), biased - 1075
        if -52 <= exponent <= 0 and significand & np.uint64((1 << -exponent) - 1) == 0:
            return signed(significand >> np.uint64(-exponent)), 0
    is_odd = significand & np.uint64(1)
    lower_is_closer = fraction == 0 and biased > 1
    k = (exponent * 1262611 - (524031 if lower_is_closer else 0)) >> 22
    shift = np.uint64(exponent + ((-k * 1741647) >> 19) + 1)
    high, low = powers[-k - LEAST_POWER, 0], powers[-k - LEAST_POWER, 1]
    four = significand << np.uint64(2)
    below = four - np.uint64(1 if lower_is_closer else 2)
    lower = _scaled(high, low, below << shift) + is_odd
    middle = _scaled(high, low, four << shift)
    upper = _scaled(high, low, (four + np.uint64(2)) << shift) - is_odd
    digits = middle >> np.uint64(2)
    if digits >= np.uint64(10):
        tens = digits // np.uint64(10)
        forty = np.uint64(40) * tens
        under, over = lower <= forty, forty + np.uint64(40) <= upper
        if under != over:
            return signed(tens) + (1 if over else 0), k + 1
    quadruple = digits << np.uint64(2)
    under, over = lower <= quadruple, quadruple + np.uint64(4) <= upper
    if under != over:
        return signed(digits) + (1 if over else 0), k
    half = quadruple + np.uint64(2)
    up = middle > half or (middle == half and digits & np.uint64(1) != 0)
    return signed(digits) + (1 if up else 0), k


@compiled
def put_integer(out: Bytes, at: int, value: int) -> int:
    """Writes an integer that is not negative; returns the place after it."""
    rest = np.uint64(value)
    width, limit = 1, TEN
    while rest >= limit and width < 19:
        width, limit = width + 1, limit * TEN
    for place in range(at + width - 1, at - 1, -1):
        tens = rest // TEN
        out[place] = np.uint64(_ZERO) + rest - tens * TEN
        rest = tens
    return at + width


@compiled
def put_number(out: Bytes, at: int, bits: np.uint64, powers: Words) -> int:
    """Writes a finite double, given as its bits. Returns the place after it."""
    if bits >> np.uint64(63) != 0:
        out[at] = _MINUS
        at += 1
    size = bits & np.uint64((1 << 63) - 1)
    if size == 0:
        out[at], out[at + 1], out[at + 2] = _ZERO, _POINT, _ZERO
        return at + 3
    digits, exponent = _shortest(size, powers)
    while True:
        tens = np.uint64(digits) // TEN
        if tens * TEN != np.uint64(digits):
            break
        digits, exponent = signed(tens), exponent + 1
    end = put_integer(out, at, digits)
    width = end - at
    point = width + exponent
    """Digits before the decimal point."""
    if point > 16 or point < -4:
        return _put_power(out, at, width, point - 1)
    if point <= 0:
        return _put_fraction(out, at, width, -point)
    if exponent >= 0:
        for place in range(end, end + exponent):
            out[place] = _ZERO
        end += exponent
        out[end], out[end + 1] = _POINT, _ZERO
        return end + 2
    for place in range(end, at + point, -1):
        out[place] = out[place - 1]
    out[at + point] = _POINT
    return end + 1


@compiled
def _put_fraction(out: Bytes, at: int, width: int, zeros: int) -> int:
    """Digits that stand at ``at`` become those behind 0. and some zeros."""
    moved = zeros + 2
    for place in range(at + width - 1, at - 1, -1):
        out[place + moved] = out[place]
    for place in range(at, at + moved):
        out[place] = _ZERO
    out[at + 1] = _POINT
    return at + moved + width


@compiled
def _put_power(out: Bytes, at: int, width: int, power: int) -> int:
    """Digits that stand at ``at`` get a point after the first one, and a power of ten."""
    end = at + width
    if width > 1:
        for place in range(end, at + 1, -1):
            out[place] = out[place - 1]
        out[at + 1] = _POINT
        end += 1
    out[end] = _E
    end += 1
    if power < 0:
        out[end] = _MINUS
        end += 1
    return put_integer(out, end, abs(power))


@compiled
def put_bytes(out: Bytes, at: int, source: Bytes, begin: int, end: int) -> int:
    """Copies bytes; returns the place after them."""
    for place in range(begin, end):
        out[at] = source[place]
        at += 1
    return at


@compiled
def _mixed(value: np.uint64) -> np.uint64:
    """The finalizer of splitmix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(FACTORS[0])
    value = (value ^ (value >> np.uint64(27))) * np.uint64(FACTORS[1])
    return value ^ (value >> np.uint64(31))


@compiled
def put_uuid(out: Bytes, at: int, high: np.uint64, low: np.uint64, number: int) -> int:
    """Writes the id of a message, as `ids.uuid_text`; returns the place after it."""
    first = _mixed(high + np.uint64(STEPS[0]) * np.uint64(number))
    second = _mixed(low + np.uint64(STEPS[1]) * np.uint64(number))
    first = first & ~np.uint64(0xF000) | np.uint64(0x8000)
    second = second & np.uint64((1 << 62) - 1) | np.uint64(1 << 63)
    for digit in range(32):
        if digit == 8 or digit == 12 or digit == 16 or digit == 20:
            out[at] = _MINUS
            at += 1
        half = first if digit < 16 else second
        value = half >> np.uint64(60 - 4 * (digit % 16)) & np.uint64(15)
        out[at] = value + np.uint64(_ZERO if value < np.uint64(10) else _LETTERS)
        at += 1
    return at
