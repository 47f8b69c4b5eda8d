"""The grblHAL face: lines that are answered one by one, and bytes that act at once."""

from understudy.robots.grblhal.face.face import ENDPOINTS, Config, GrblHalFace, build
from understudy.robots.grblhal.face.reports import messages, name_field

__all__ = ["ENDPOINTS", "Config", "GrblHalFace", "build", "messages", "name_field"]
