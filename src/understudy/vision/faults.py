"""Faults of vision: of a camera with its detectors."""

from understudy.ports.faults import Fault, Faults, Figure

FAULTS: Faults = {
    "vision_no_object": Fault("asked", "a picture shows no object"),
    "vision_low_confidence": Fault(
        "asked",
        "all objects of a picture have a low confidence",
        {"confidence": Figure(0.3, 0.0, 1.0)},
    ),
    "vision_noise": Fault(
        "asked",
        "the poses of a picture are wrong by at most so much along and about each axis",
        {"mm": Figure(1.0, 0.0, 1000.0), "deg": Figure(0.5, 0.0, 180.0)},
    ),
    "vision_silent": Fault("asked", "a request is not answered"),
    "vision_old_picture": Fault(
        "asked",
        "an answer comes late, for a picture that was taken before the question",
        {"late_s": Figure(1.0, 0.0, 3600.0), "age_s": Figure(5.0, 0.0, 3600.0)},
    ),
    "vision_wrong_class": Fault("asked", "all objects of a picture have the class `unknown`"),
}
"""The faults of a camera with its detectors, asked once per request."""
