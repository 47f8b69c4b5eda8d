"""Which camera the vision process of a cell looks through."""

import pytest

from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.vision.child import camera_address

LISTENS = {"g60.camera": "tcp://127.0.0.1:40123"}


@pytest.mark.parametrize(
    ("given", "looks_through"),
    [
        ("", "understudy://127.0.0.1:40123/g60"),
        ("understudy://127.0.0.1:5571/g60", "understudy://127.0.0.1:40123/g60"),
        ("understudy://localhost:5571/g60", "understudy://127.0.0.1:40123/g60"),
        ("understudy://127.0.0.1:42677/g60", "understudy://127.0.0.1:42677/g60"),
        ("understudy://192.168.1.50:5571/g60", "understudy://192.168.1.50:5571/g60"),
        ("understudy://127.0.0.1:5571/other", "understudy://127.0.0.1:5571/other"),
        ("opencv:0", "opencv:0"),
    ],
)
def test_the_camera_of_another_cell_is_not_replaced(given: str, looks_through: str) -> None:
    config = load_config("calibration")
    assert camera_address(config, LISTENS, "g60", given) == looks_through


def test_a_robot_whose_camera_has_no_face_needs_another_camera() -> None:
    with pytest.raises(ConfigError, match="faces"):
        camera_address(load_config("calibration"), {}, "g60", "")
