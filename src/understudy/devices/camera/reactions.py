"""Expected reactions to the faults of a camera: what a client sees in its frames."""

import math
from typing import Any

import numpy as np

from understudy.ports import WireMessage
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Talk,
    Trial,
    do,
    enable,
    robot_stands,
)
from understudy.ports.operation import Target

FACE = "camera"
LOOKING = tuple(math.radians(each) for each in (0.0, -30.0, 60.0, 0.0, 60.0, 0.0))
"""Joints of an arm of six axes whose tool points down."""
COLUMNS = 16
STRUCTURE = 3.0
"""Standard deviation of the grey values of a picture that shows something."""


def grab(trial: Trial) -> None:
    """a client asks for a frame"""
    trial.client(FACE).say(WireMessage("", b'{"grab":"%s"}' % trial.robot.encode()))
    trial.advance(0.1)


def looking(trial: Trial) -> None:
    """the arm looks at its table, a client has got a frame"""
    enable(trial)
    do(trial, "move_to", Target(LOOKING, None, line=False, speed=0.5))
    trial.run_until(lambda: robot_stands(trial), 30.0, "the arm does not arrive")
    grab(trial)
    if float(_pictures(trial)[0].std()) < STRUCTURE:
        raise NotPossibleError("nothing is in front of the camera")


def grab_twice(trial: Trial) -> None:
    """the client asks for two more frames"""
    grab(trial)
    grab(trial)


def _frames(trial: Trial) -> list[WireMessage]:
    return [
        data
        for _, data in trial.client(FACE).heard
        if isinstance(data, WireMessage) and len(data.more) > 0
    ]


def _pictures(trial: Trial) -> list[Any]:
    """Grey values of all frames so far, the one before the fault first."""
    from understudy.sight.frame import decode

    return [
        decode((data.payload, *data.more)).picture.astype(float).mean(axis=2)
        for data in _frames(trial)
    ]


def _sharpness(picture: Any) -> float:
    """How much neighbouring pixels differ on average."""
    return float(np.abs(np.diff(picture, axis=0)).mean() + np.abs(np.diff(picture, axis=1)).mean())


def _edges(picture: Any) -> float:
    """The strongest edges between rows; means of some columns are above the noise."""
    width = picture.shape[1] // COLUMNS * COLUMNS
    means = picture[:, :width].reshape(picture.shape[0], -1, COLUMNS).mean(axis=2)
    return float(np.percentile(np.abs(np.diff(means, axis=0)), 99.9))


def _is_darker(trial: Trial, which: int) -> bool:
    before, *after = _pictures(trial)
    return len(after) == 2 and bool(after[which].mean() < 0.5 * before.mean())


def _is_blurred(trial: Trial, which: int) -> bool:
    before, *after = _pictures(trial)
    return len(after) == 2 and _edges(after[which]) < 0.8 * _edges(before)


def _is_noisy(trial: Trial, which: int) -> bool:
    before, *after = _pictures(trial)
    return len(after) == 2 and _sharpness(after[which]) > 2.0 * _sharpness(before)


def _as_before(trial: Trial) -> bool:
    before, *after = _pictures(trial)
    ratio = _sharpness(after[-1]) / _sharpness(before)
    return abs(float(after[-1].mean() / before.mean()) - 1.0) < 0.1 and 0.8 < ratio < 1.25


NEXT = Seen("the frame after it is as before", _as_before)
REACTIONS: Reactions = {
    "camera_dark": Reaction(
        looking,
        (ENGINE_FAILED, Seen("frames are dark", lambda t: _is_darker(t, 1))),
        then=grab_twice,
    ),
    "camera_blur": Reaction(
        looking,
        (ENGINE_FAILED, Seen("frames are blurred", lambda t: _is_blurred(t, 1))),
        then=grab_twice,
    ),
    "camera_noise": Reaction(
        looking,
        (ENGINE_FAILED, Seen("frames are noisy", lambda t: _is_noisy(t, 1))),
        then=grab_twice,
    ),
    "camera_frozen": Reaction(
        looking,
        (
            ENGINE_FAILED,
            Seen("one frame is sent twice", lambda t: _frames(t)[-1] == _frames(t)[-2]),
        ),
        then=grab_twice,
    ),
    "camera_silent": Reaction(
        looking,
        (ENGINE_FAILED, Seen("no frame comes", lambda t: len(_frames(t)) == 1)),
        then=grab_twice,
    ),
    "frame_dark": Reaction(
        looking,
        (Seen("one frame is dark", lambda t: _is_darker(t, 0)), NEXT),
        then=grab_twice,
    ),
    "frame_blur": Reaction(
        looking,
        (Seen("one frame is blurred", lambda t: _is_blurred(t, 0)), NEXT),
        then=grab_twice,
    ),
    "frame_noise": Reaction(
        looking,
        (Seen("one frame is noisy", lambda t: _is_noisy(t, 0)), NEXT),
        then=grab_twice,
    ),
    "frame_lost": Reaction(
        looking,
        (Seen("one of two frames comes", lambda t: len(_frames(t)) == 2), NEXT),
        then=grab_twice,
    ),
}
TALKS = {"": Talk(lambda trial, number: WireMessage("", b'{"grab":"unknown"}'))}
"""For faults between wire and face: a question that is refused, so that answers are short."""
