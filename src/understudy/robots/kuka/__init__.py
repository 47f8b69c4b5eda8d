"""A simulated KUKA that runs a G-code server: a buffer of records, and an arm that follows them."""

from understudy.robots.kuka.build import build
from understudy.robots.kuka.config import Config
from understudy.robots.kuka.server import KukaGcodeServer

__all__ = ["Config", "KukaGcodeServer", "build"]
