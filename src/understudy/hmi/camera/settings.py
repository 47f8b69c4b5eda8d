"""Settings of the virtual camera of a robot."""

from collections.abc import Mapping
from typing import NamedTuple

from nicegui import ui

from understudy.hmi.camera.detectors import detectors
from understudy.hmi.frame.browser import Browser
from understudy.hmi.frame.widgets import Slider, operator_only
from understudy.hmi.page import STATIC

STYLE = f"{STATIC}/camera/camera.css"


class Setting(NamedTuple):
    """A value of the camera that can be set: its command with all its parameters, its bounds and
    step on the page, and its unit."""

    command: str
    parameters: tuple[str, ...]
    bounds: tuple[float, float]
    step: float
    unit: str = ""


SETTINGS: Mapping[str, Setting] = {
    "exposure_ms": Setting("set_camera_exposure", ("exposure_ms",), (0.5, 60.0), 0.5, "ms"),
    "gain_db": Setting("set_camera_gain", ("gain_db",), (-20.0, 48.0), 1.0, "dB"),
    "brightness": Setting("set_camera_light", ("brightness", "ambient"), (0.0, 3.0), 0.05),
    "ambient": Setting("set_camera_light", ("brightness", "ambient"), (0.0, 1.0), 0.05),
    "noise_grey": Setting("set_camera_noise", ("noise_grey",), (0.0, 40.0), 0.5),
}


def camera_settings(browser: Browser) -> None:
    """Sliders of the virtual camera; hidden without one."""
    with ui.element("section").classes("u-card u-camera-settings").props("data-mark=eye") as card:
        ui.label(browser.texts("camera.title")).classes("u-card-title")
        for name in SETTINGS:
            _setting(browser, name)
        detectors(browser)
    operator_only(browser, card, on_real=False)
    browser.on_update(lambda: card.set_visibility(bool(browser.part("camera"))))


def _setting(browser: Browser, name: str) -> None:
    setting = SETTINGS[name]

    async def change(value: float) -> None:
        now = {**browser.part("camera"), name: value}
        given = {key: now[key] for key in setting.parameters}
        await browser.command(setting.command, {"device": f"{browser.robot}.camera", **given})

    with ui.element("div").classes("u-eye-setting"):
        ui.label(browser.texts(f"camera.{name}")).classes("u-caption")
        slider = Slider(browser, setting.bounds, setting.step, change).mark(f"eye-{name}")
        figure = ui.label().classes("u-eye-figure").props(f"data-mark=eye-{name}-figure")

    def update() -> None:
        now = browser.part("camera")
        if now:
            slider.show(now[name])
            figure.set_text(f"{now[name]:g} {setting.unit}".strip())

    browser.on_update(update)
