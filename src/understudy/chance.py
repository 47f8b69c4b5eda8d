"""Random numbers without state: every draw is a function of (seed, name, index).

Adding a rule, a robot or a shard does not change the draws of the others, and a snapshot stores
only the next index.
"""

from hashlib import blake2b

_SCALE = 2.0**-53


def draw(seed: int, name: str, index: int) -> float:
    """Random number in [0, 1), uniform over seeds, names and indices."""
    digest = blake2b(f"{seed}/{name}/{index}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * _SCALE


def symmetric_draws(
    seed: int, name: str, index: int, *, count: int, amplitude: float
) -> tuple[float, ...]:
    """``count`` random numbers within ±amplitude, all for one index."""
    return tuple(
        (2.0 * draw(seed, f"{name}.{axis}", index) - 1.0) * amplitude for axis in range(count)
    )
