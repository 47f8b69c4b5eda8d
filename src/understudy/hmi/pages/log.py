"""The log: what is wrong and what to do, what happened, what was said on the wires."""

import json

from nicegui import ui

from understudy.hmi.pages.browser import Browser
from understudy.hmi.pages.frame import button, within_reach
from understudy.hmi.texts import Texts, dictionary

HEAD = """
<link rel="stylesheet" href="/static/program.css">
<script type="module" src="/static/log.js"></script>
"""
KINDS = ("alarm", "fault", "collision", "program", "welder", "state", "mode", "message", "traffic")


def build(browser: Browser) -> None:
    ui.add_head_html(HEAD)
    with ui.element("div").classes("u-log").props('id="log-page"') as page:
        page.props["data-words"] = json.dumps(spoken(browser.texts))
        with ui.element("section").classes("u-alarms").props("data-mark=alarms"):
            _alarms(browser)
        with ui.element("section").classes("u-record"):
            _filters(browser)
            ui.element("div").classes("u-log-rows").props("id=rows data-mark=log-rows")


def spoken(texts: Texts) -> dict[str, str]:
    """What the browser's part says; advice by the sentence that the cell gives."""
    advice = {
        f"advice {entry['en']}": entry[texts.language]
        for key, entry in dictionary().items()
        if key.startswith("advice.")
    }
    return {**texts.section("log"), **advice}


def advice(texts: Texts, sentence: str) -> str:
    """The cell's advice in this browser's language; as it came where nobody has translated it."""
    return spoken(texts).get(f"advice {sentence}", sentence)


def _alarms(browser: Browser) -> None:
    """Those that stand now."""
    ui.label(browser.texts("log.alarms")).classes("u-card-title")
    place = ui.element("div").classes("u-alarm-cards")
    shown: list[object] = [None]

    def update() -> None:
        alarms = browser.picture.alarms()
        if alarms == shown[0]:
            return
        shown[0] = alarms
        place.clear()
        with place:
            for alarm in alarms:
                _alarm(browser, alarm.robot, alarm.text, alarm.what_to_do)
            if not alarms:
                with ui.element("div").classes("u-alarm-card u-fine"):
                    ui.icon("check_circle")
                    ui.label(browser.texts("frame.no_alarm")).classes("u-alarm-title")

    browser.each_round(update)


def _alarm(browser: Browser, robot: str, text: str, what_to_do: str) -> None:
    with ui.element("div").classes("u-alarm-card"):
        ui.icon("warning")
        with ui.element("div").classes("u-alarm-text"):
            ui.label(f"{robot}: {text}").classes("u-alarm-title")
            if what_to_do:
                ui.label(browser.texts("log.what_to_do")).classes("u-caption")
                ui.label(advice(browser.texts, what_to_do)).classes("u-advice").props(
                    "data-mark=advice"
                )
        reset = button(browser.texts("frame.reset"), icon="restart_alt")
        within_reach(browser, reset)
        reset.on_click(lambda: browser.ask("reset", {"robot": robot}))


def _filters(browser: Browser) -> None:
    """log.js lets through what they say."""
    texts = browser.texts
    with ui.element("div").classes("u-log-bar"):
        for kind in KINDS:
            pick = button(texts(f"log.{kind}"), kind="u-small u-filter").props(
                f'data-kind="{kind}"'
            )
            pick.on("click", js_handler=f"() => window.log.toggle({kind!r})")
    with ui.element("div").classes("u-log-bar"):
        where = ui.element("select").classes("u-name u-where").props('data-log="where"')
        where.props["aria-label"] = texts("log.where")
        search = ui.element("input").classes("u-name").props('data-log="search" type=search')
        search.props["placeholder"] = texts("log.search")
        count = ui.element("div").classes("u-caption u-count").props('data-log="count"')
        count.props("data-mark=log-count")
        hold = button(texts("log.freeze"), icon="pause", key="h").props('data-log="freeze"')
        hold.on("click", js_handler="() => window.log.freeze()")
        save = button("", icon="download", hint=texts("log.save"))
        save.on("click", js_handler="() => window.log.download()")
