"""A frame on the wire: what is sent comes back, and wrong bytes get a clear error."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from understudy.sight.frame import Frame, FrameError, decode, encode
from understudy.sight.lens import Lens
from understudy.space.transform import translation

LENS = Lens(4, 3, 5.0, 6.0, 2.0, 1.5, (0.1, 0.0, 0.0, 0.0, 0.0))
PICTURE = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
DEPTH = np.full((3, 4), 0.4, dtype=np.float32)
FRAME = Frame(7, 12.5, PICTURE, LENS, DEPTH, translation(0.1, 0.2, 0.3), 10.0, 3.0, "g60")


def changed(**header: object) -> list[bytes]:
    """The frame with other values in its header."""
    first, *others = encode(FRAME)
    return [msgspec.json.encode(msgspec.json.decode(first) | header), *others]


def test_a_frame_comes_back_as_it_was_sent() -> None:
    back = decode(encode(FRAME, request_id=3))
    assert (back.picture == PICTURE).all()
    assert back.depth is not None
    assert back.flange is not None
    assert np.allclose(back.depth, 0.4)
    assert np.allclose(back.flange, translation(0.1, 0.2, 0.3))
    assert (back.lens, back.frame_id, back.exposed_at, back.camera) == (LENS, 7, 12.5, "g60")


def test_the_header_has_the_names_of_the_contract() -> None:
    header = msgspec.json.decode(encode(FRAME, request_id=3)[0])
    assert header["request_id"] == 3
    assert {"frame_id", "t_exposure", "T_base_flange", "K", "distortion"} <= header.keys()
    assert header["shape"] == [3, 4, 3]
    assert header["dtype"] == "uint8"
    assert header["T_base_flange"][0][3] == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], "empty"),
        ([b"{"], "header"),
        ([b"\xff"], "header"),
        (encode(FRAME)[:2], "3"),
        ([encode(FRAME)[0], b"", b""], "0 bytes"),
        ([b'{"frame_id":1,"t_exposure":0,"shape":[0,1,3]}', b""], "shape"),
        ([b'{"frame_id":1,"t_exposure":0,"shape":[1,1,3],"dtype":"f4"}', b""], "dtype"),
        ([b'{"frame_id":1,"t_exposure":0,"shape":[1,1,3],"K":[[1]]}', b"abc"], "K"),
        ([b'{"frame_id":1,"t_exposure":0,"shape":[1,3,1]}', b"abc"], "3 colours"),
        ([b'{"request_id":' + b"[" * 50_000, b""], "header"),
        (changed(frame_id=10**30), "frame_id"),
        (changed(t_exposure=1e308), "t_exposure"),
        (changed(depth_shape=[4, 3]), r"depth_shape \[4, 3\]"),
        (changed(K=[[0, 0, 0], [0, 0, 0], [0, 0, 1]]), r"\$\.K\[0\]"),
        (changed(K=[[-5, 0, 2], [0, 6, 1], [0, 0, 1]]), r"\$\.K\[0\]"),
        (changed(K=[[5, 2, 2], [0, 6, 1], [0, 0, 1]]), "K is not"),
        (changed(K=[[1e300, 0, 2], [0, 6, 1], [0, 0, 1]]), "K"),
        (changed(distortion=[0.1] * 8), "distortion"),
        (changed(distortion=[1e300]), "distortion"),
        (changed(T_base_flange=np.diag([-1, 1, 1, 1]).tolist()), "T_base_flange is not"),
        (changed(T_base_flange=np.zeros((4, 4)).tolist()), "T_base_flange is not"),
        (changed(T_base_flange=np.full((4, 4), 1e308).tolist()), "T_base_flange"),
    ],
)
def test_wrong_bytes_get_a_clear_error(parts: Sequence[bytes], expected: str) -> None:
    with pytest.raises(FrameError, match=expected):
        decode(parts)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, -5.0, 1e30])
def test_a_depth_that_is_no_distance_was_not_measured(number: float) -> None:
    first, picture, _ = encode(FRAME)
    depth = np.full((3, 4), 400.0, dtype=np.float32)
    depth[1, 2] = number
    back = decode([first, picture, depth.tobytes()]).depth
    assert back is not None
    assert back[1, 2] == 0.0
    assert np.count_nonzero(np.isclose(back, 0.4)) == 11
