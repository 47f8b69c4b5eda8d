"""The sensor: grey values, noise by key, pictures out of focus."""

import numpy as np
import pytest

from understudy.sight.image_sensor import (
    TABLE_SIZE,
    add_noise,
    blurred,
    digitize,
    expose,
    mixed,
    noise_key,
    noisy_depth,
    normal_table,
)

MASK = (1 << 64) - 1


def plain_mixed(key: int, index: int) -> int:
    """oracle of mixed: SplitMix64 with whole numbers of Python."""
    z = (key + index * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def plain_noise(key: int, count: int, sigma: float) -> np.ndarray:
    table = normal_table() * np.float32(sigma)
    places = [
        (plain_mixed(key, k - k % 4) >> (16 * (k % 4))) & (TABLE_SIZE - 1) for k in range(count)
    ]
    return np.asarray(table[places])


@pytest.mark.parametrize("key", [0, 1, MASK, noise_key(3, "g60.camera", 7)])
def test_bits_of_an_index(key: int) -> None:
    for index in (0, 1, 5, 10**7):
        assert int(mixed(np.uint64(key), index)) == plain_mixed(key, index)


def test_grey_values() -> None:
    """oracle of digitize: numpy, value by value."""
    light = np.linspace(0.0, 300.0, 1003, dtype=np.float32)
    key = noise_key(1, "camera", 1)
    found = expose(light, 0.7, 3.0, key)
    value = light * np.float32(0.7) + plain_noise(key, len(light), 3.0) + np.float32(0.5)
    assert (found == np.clip(value, 0.0, 255.0).astype(np.uint8)).all()
    assert digitize is not None


def test_noise_of_depth() -> None:
    """oracle of add_noise: one draw for each distance that was measured."""
    depth = np.array([0.0, 0.5, 1.0, 0.0, 2.0], dtype=np.float32)
    key = noise_key(1, "camera", 2)
    table = normal_table() * np.float32(0.01)
    noise = np.array([table[plain_mixed(key, k) & 0xFFFF] for k in range(5)], dtype=np.float32)
    assert (noisy_depth(depth, 0.01, key) == np.where(depth > 0, depth + noise, 0)).all()
    assert (noisy_depth(depth, 0.0, key) == depth).all()
    assert add_noise is not None


def test_noise_is_normal_and_independent_of_its_neighbours() -> None:
    light = np.full((200, 300, 3), 128.0, dtype=np.float32)
    noise = expose(light, 1.0, 8.0, noise_key(1, "camera", 1)).astype(float) - 128.0
    assert abs(noise.mean()) < 0.1
    assert noise.std() == pytest.approx(8.0, rel=0.01)
    assert abs((noise**4).mean() / noise.var() ** 2 - 3.0) < 0.05
    flat = noise.reshape(-1)
    for shift in (1, 2, 3, 4, 900):
        assert abs((flat[shift:] * flat[:-shift]).mean() / noise.var()) < 0.01
    other = expose(light, 1.0, 8.0, noise_key(1, "camera", 2)).astype(float) - 128.0
    assert abs((noise * other).mean() / noise.var()) < 0.01


def test_a_picture_out_of_focus_keeps_its_light() -> None:
    light = np.zeros((41, 51, 3), dtype=np.float32)
    light[20, 25] = 1000.0
    found = blurred(light, 3.0)
    assert found.sum(axis=(0, 1)) == pytest.approx(1000.0, rel=1e-4)
    assert found.max() < 40.0
    assert found[20, 25] == pytest.approx(found[20, 25, 0])
    assert (blurred(light, 0.2) == light).all()
    even = np.full((20, 30, 3), 77.0, dtype=np.float32)
    assert np.abs(blurred(even, 8.0) - 77.0).max() < 1e-3
