"""Expected reactions to the faults of the cell's own NATS server."""

from collections.abc import Mapping

from understudy.ports import CONFIRMED, FORGOTTEN
from understudy.ports.fault_reactions import LiveReaction, LiveTrial, SeenLive


def confirmed(trial: LiveTrial) -> None:
    """the server has stored events"""
    trial.press_and_release()


def synced(trial: LiveTrial) -> None:
    """the server has synced its store, and stored more since"""
    trial.press_and_release()
    trial.inject("store_synced")
    trial.press_and_release()


def go_on(trial: LiveTrial) -> None:
    """the robots report more"""
    trial.press_and_release()


def says(text: str) -> SeenLive:
    return SeenLive(f"the log says `{text}`", lambda trial: trial.said(text))


ANNOUNCED = SeenLive("the robots send their state again", lambda trial: trial.heard(FORGOTTEN) > 0)
STORES = SeenLive("messages are confirmed again", lambda trial: trial.heard(CONFIRMED) > 0)
QUIET = SeenLive("no loss is reported", lambda trial: not trial.said("has lost"))
REACTIONS: Mapping[str, LiveReaction] = {
    "store_synced": LiveReaction(confirmed, (STORES, QUIET), then=go_on),
    "power_cut": LiveReaction(synced, (says("went back from"), ANNOUNCED, STORES), then=go_on),
    "stream_lost": LiveReaction(confirmed, (says("has vanished"), ANNOUNCED, STORES), then=go_on),
    "stream_purged": LiveReaction(confirmed, (says("was emptied"), ANNOUNCED, STORES), then=go_on),
    "sequence_gap": LiveReaction(confirmed, (STORES, QUIET), then=go_on),
}
