"""A simulated KUKA that runs a G-code server: a buffer of records, and an arm that follows them."""

from understudy.cell.kuka.build import build
from understudy.cell.kuka.config import Config
from understudy.cell.kuka.server import KukaGcodeServer

__all__ = ["Config", "KukaGcodeServer", "build"]
