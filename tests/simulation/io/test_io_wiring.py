"""Links, relays, rings: sources, delays, and owners of inputs."""

import pytest

from understudy.agenda import advance
from understudy.errors import ConfigError, Refused
from understudy.simulation.io.virtual_io import MOST_PENDING, Config, Link, Relay, VirtualIO
from understudy.units import NS_PER_MS, NS_PER_SECOND

MS = NS_PER_MS


def pins(*wires: Link | Relay) -> VirtualIO:
    links = [wire for wire in wires if isinstance(wire, Link)]
    relays = [wire for wire in wires if isinstance(wire, Relay)]
    return VirtualIO(Config(links=links, relays=relays))


def reason(answer: object) -> str:
    assert isinstance(answer, Refused), "nothing was refused"
    return answer.reason


def edges(io: VirtualIO, pin: int, bank: str = "DI") -> list[tuple[float, bool]]:
    return [(c.at / MS, c.value) for c in io.history() if (c.bank, c.pin) == (bank, pin)]


def toggle(io: VirtualIO, pin: int, *moments_ms: float) -> None:
    """The output changes at these times, beginning with on."""
    for at, moment in enumerate(moments_ms):
        now = round(moment * MS)
        advance([io], now)
        io.set_digital_output(pin, at % 2 == 0, now)


# ── links ───────────────────────────────────────────────────────────────────────────────────────


def test_the_links_of_the_document() -> None:
    """DO0 → DI0 after 50 ms, DO1 → DI1 after 100 ms."""
    io = pins(Link(0, 0, 50), Link(1, 1, 100))
    io.set_digital_output(0, True, 0)
    io.set_digital_output(1, True, 0)
    advance([io], 50 * MS - 1)
    assert io.digital().inputs == 0b00
    advance([io], 50 * MS)
    assert io.digital().inputs == 0b01
    advance([io], 100 * MS)
    assert io.digital().inputs == 0b11


def test_a_link_without_delay_acts_in_the_same_instant() -> None:
    io = pins(Link("DO5", "DI6"))
    io.set_digital_output(5, True, 3)
    assert io.digital_input(6)
    assert io.next_wake() is None


def test_edges_shorter_than_the_delay_pass() -> None:
    io = pins(Link(2, 3, 50))
    toggle(io, 2, 0, 1, 10, 10.5)
    advance([io], NS_PER_SECOND)
    assert edges(io, 3) == [(50, True), (51, False), (60, True), (60.5, False)]


def test_an_output_sets_several_inputs_each_after_its_delay() -> None:
    io = pins(Link(2, 3, 10), Link(2, 4), Link(2, 5, 30, invert=True))
    advance([io], 100 * MS)
    toggle(io, 2, 100, 200)
    advance([io], NS_PER_SECOND)
    assert edges(io, 3) == [(110, True), (210, False)]
    assert edges(io, 4) == [(100, True), (200, False)]
    assert edges(io, 5) == [(30, True), (130, False), (230, True)]


def test_an_input_follows_one_output() -> None:
    with pytest.raises(ConfigError, match=r"links\.1: DI3 follows DO0 already"):
        pins(Link(0, 3), Link(1, 3))
    io = pins(Link(0, 3))
    assert reason(io.link(1, 3, 0, 0)).startswith("DI3 follows DO0 already")


def test_invalid_links_are_refused_with_their_place_in_the_file() -> None:
    with pytest.raises(ConfigError, match=r"links\.0\.output: unknown pin of DO \(got 'ARK_START'"):
        pins(Link("ARK_START", 0))
    with pytest.raises(ConfigError, match=r"links\.1\.input: there is no DI32; allowed: 0…31"):
        pins(Link(0, 0), Link(0, 32))
    with pytest.raises(ConfigError, match=r"relays\.0\.input: there is no DI-1"):
        pins(Relay(-1, 0))


# ── relays ──────────────────────────────────────────────────────────────────────────────────────


def test_a_relay_goes_the_other_way() -> None:
    io = pins(Relay(7, 8, 20), Relay(7, 9, invert=True))
    assert io.digital_output(9)
    io.set_digital_input(7, True, 0)
    assert not io.digital_output(9)
    advance([io], NS_PER_SECOND)
    assert edges(io, 8, "DO") == [(20, True)]


def test_chains_settle_and_inversions_add_up() -> None:
    io = pins(Link(0, 1, invert=True), Relay(1, 2, invert=True), Link(2, 3, 10))
    assert (io.digital().inputs, io.digital().outputs) == (0b10, 0)
    io.set_digital_output(0, True, 0)
    assert (io.digital().inputs, io.digital().outputs) == (0, 0b101)
    advance([io], 10 * MS)
    assert io.digital().inputs == 0b1000


# ── rings ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delay", [0.0, 1e-9, 0.5])
def test_a_ring_without_delay_is_refused_in_the_cell_file(delay: float) -> None:
    with pytest.raises(ConfigError, match=r"relays\.0: a ring through DO0 with less than 1 ms"):
        pins(Link(0, 0, delay), Relay(0, 0, delay, invert=True))
    with pytest.raises(ConfigError, match=r"relays\.1: a ring"):
        pins(Link(0, 0), Link(1, 1, delay), Relay(0, 1), Relay(1, 0))


def test_a_ring_without_delay_is_refused_while_it_runs_and_nothing_changes() -> None:
    io = pins(Relay(0, 0))
    assert reason(io.link(0, 0, 0, 0)) == "a ring through DI0 with less than 1 ms never settles"
    io.set_digital_output(0, True, 0)
    assert not io.digital_input(0)


def test_a_ring_with_delay_oscillates_in_time() -> None:
    io = pins(Link(0, 0, 5), Relay(0, 0, 5, invert=True))
    advance([io], 42 * MS)
    assert edges(io, 0, "DO") == [(5, True), (15, False), (25, True), (35, False)]
    advance([io], 60 * NS_PER_SECOND)
    assert len(io.state.pending) == 1, "one edge goes round for ever"


def test_a_ring_can_be_created_at_run_time() -> None:
    io = pins(Relay(0, 0, invert=True))
    assert io.link(0, 0, 2, 0) is None
    advance([io], 9 * MS)
    assert edges(io, 0, "DO") == [(0, True), (2, False), (4, True), (6, False), (8, True)]


def test_a_wire_holds_a_bounded_number_of_edges_and_ends_on_the_right_level() -> None:
    io = pins(Link(0, 0, 3_600_000), Link(1, 1, 3_600_000))
    for now in range(MOST_PENDING + 501):
        io.set_digital_output(0, now % 2 == 0, now)
    io.set_digital_output(1, True, 0)
    assert len(io.state.pending) <= MOST_PENDING + 1
    advance([io], 2 * 3_600_000 * MS)
    assert io.digital().inputs == 0b11


# ── linking while it runs ───────────────────────────────────────────────────────────────────────


def test_a_new_link_carries_the_present_level() -> None:
    io = pins()
    io.set_digital_output(4, True, 0)
    io.link(4, 4, 25, 10 * MS)
    io.link(4, 5, 0, 10 * MS, invert=True)
    advance([io], NS_PER_SECOND)
    assert edges(io, 4) == [(35, True)]
    assert edges(io, 5) == []


def test_linking_the_same_pins_again_changes_the_delay() -> None:
    io = pins(Link(4, 4, 100))
    io.set_digital_output(4, True, 0)
    assert io.link(4, 4, 10, 20 * MS) is None
    advance([io], NS_PER_SECOND)
    assert edges(io, 4) == [(30, True)]


def test_unlink_drops_pending_edges_and_keeps_the_level() -> None:
    io = pins(Link(4, 4, 50), Link(4, 5), Link(6, 6, 50))
    io.set_digital_output(4, True, 0)
    io.set_digital_output(6, True, 0)
    assert io.unlink(4, 20 * MS) is None
    advance([io], NS_PER_SECOND)
    assert (edges(io, 4), edges(io, 5), edges(io, 6)) == ([], [(0, True)], [(50, True)])
    io.set_digital_output(4, False, NS_PER_SECOND)
    assert io.digital_input(5)


def test_unlink_does_not_end_a_pulse() -> None:
    io = pins(Link(4, 4, 50))
    io.simulate_sensor_trigger(4, True, 0, duration_ms=30)
    io.unlink(4, 10 * MS)
    advance([io], NS_PER_SECOND)
    assert edges(io, 4) == [(0, True), (30, False)]


@pytest.mark.parametrize("pin", [32, "NOWHERE"])
def test_links_of_unknown_pins_are_refused(pin: int | str) -> None:
    io = pins()
    assert isinstance(io.link(pin, 0, 0, 0), Refused)
    assert isinstance(io.link(0, pin, 0, 0), Refused)
    assert isinstance(io.unlink(pin, 0), Refused)


# ── owners ──────────────────────────────────────────────────────────────────────────────────────


def test_a_link_onto_a_pin_that_a_device_owns_is_the_devices_delay() -> None:
    io = pins(Link(0, 0, 50), Link(1, 1, 100, invert=True))
    io.own(0)
    io.own(1)
    assert (io.link_delay(0), io.link_delay(1), io.link_delay(2)) == (50 * MS, 100 * MS, None)
    io.set_digital_output(0, True, 0)
    advance([io], NS_PER_SECOND)
    assert io.digital().inputs == 0, "the device moves it, and nothing else"
    io.drive(0, True, NS_PER_SECOND)
    assert io.digital_input(0)


def test_linking_an_owned_pin_while_it_runs_changes_the_devices_delay() -> None:
    io = pins()
    io.own(0)
    assert io.link(0, 0, 80, 0) is None
    assert io.link_delay(0) == 80 * MS
    assert io.next_wake() is None
    io.unlink(0, 0)
    assert io.link_delay(0) is None
