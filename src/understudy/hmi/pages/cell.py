"""The cell page: the scene, and the simulation panel beside it."""

from nicegui import ui

from understudy.hmi.pages.seat import Seat


def build(seat: Seat) -> None:
    ui.add_head_html('<script type="module" src="/static/scene.js"></script>')
    with ui.element("div").classes("u-cell"):
        ui.element("div").classes("u-scene").props('id="scene"')
