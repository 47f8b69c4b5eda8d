"""The image sensor: brightness, gain, noise and rounding, and pictures out of focus.

Noise is a function of a key and of the index of the value, so that the same frame has the same
noise on every machine, however often it is taken.
"""

from functools import cache
from hashlib import blake2b
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled

Floats32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]
TABLE_SIZE = 1 << 16
FULL = 255.0


def noise_key(seed: int, camera: str, frame: int) -> int:
    """The key of a frame's noise, 64 bits."""
    digest = blake2b(f"{seed}/{camera}/{frame}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@cache
def normal_table() -> Floats32:
    """Quantiles of the normal distribution, in the middles of TABLE_SIZE equal shares."""
    half = NormalDist()
    upper = [half.inv_cdf((i + 0.5) / TABLE_SIZE) for i in range(TABLE_SIZE // 2, TABLE_SIZE)]
    return np.array([-value for value in reversed(upper)] + upper, dtype=np.float32)


def expose(light: Floats32, factor: float, sigma: float, key: int) -> Bytes:
    """Grey values of a sensor: brightness times ``factor``, plus noise of ``sigma``."""
    out = np.empty(light.shape, dtype=np.uint8)
    table = normal_table() * np.float32(sigma)
    digitize(light.reshape(-1), np.float32(factor), table, np.uint64(key), out.reshape(-1))
    return out


def noisy_depth(depth: Floats32, sigma: float, key: int) -> Floats32:
    """Distances with noise of ``sigma`` metres; what was not measured (0) stays so."""
    out = depth.copy()
    if sigma > 0.0:
        table = normal_table() * np.float32(sigma)
        add_noise(out.reshape(-1), table, np.uint64(key))
    return out


@compiled
def mixed(key: np.uint64, index: int) -> np.uint64:  # kernel
    """Random bits of an index: SplitMix64."""
    z = key + np.uint64(index) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def digitize(  # kernel
    light: Floats32, factor: np.float32, table: Floats32, key: np.uint64, out: Bytes
) -> None:
    """One value after the other: four draws of 16 bits from each random number."""
    low, high, half = np.float32(0.0), np.float32(255.0), np.float32(0.5)
    for first in range(0, light.size, 4):
        bits = mixed(key, first)
        for k in range(first, min(first + 4, light.size)):
            value = light[k] * factor + table[np.int64(bits & np.uint64(0xFFFF))] + half
            out[k] = np.uint8(min(max(value, low), high))
            bits >>= np.uint64(16)


@compiled
def add_noise(values: Floats32, table: Floats32, key: np.uint64) -> None:  # kernel
    for k in range(values.size):
        if values[k] > np.float32(0.0):
            noise = table[np.int64(mixed(key, k) & np.uint64(0xFFFF))]
            values[k] = max(values[k] + noise, np.float32(0.0))


def blurred(light: Floats32, radius: float) -> Floats32:
    """A picture out of focus: the mean over a square of ± ``radius`` pixels, twice."""
    reach = round(radius)
    if reach == 0:
        return light
    for axis in (0, 1, 0, 1):
        light = _means(light, reach, axis)
    return light


def _means(light: Floats32, reach: int, axis: int) -> Floats32:
    """Means of 2·reach + 1 neighbours along an axis; beyond the edge its pixels go on."""
    pad = [(0, 0)] * light.ndim
    pad[axis] = (reach + 1, reach)
    sums = np.cumsum(np.pad(light.astype(np.float64), pad, mode="edge"), axis=axis)
    size, width = light.shape[axis], 2 * reach + 1
    upper = np.take(sums, np.arange(width, width + size), axis=axis)
    lower = np.take(sums, np.arange(size), axis=axis)
    return ((upper - lower) / width).astype(np.float32)
