"""The KUKA on real sockets."""

import socket
import struct
import time
from pathlib import Path

import pytest
from tests.free_ports import free_port
from tests.robots.kuka.kuka_wire import COMMAND, TELEMETRY, command, feedback, telemetry

from understudy.app.stand_in import StandIn

PATIENCE_SECONDS = 60.0


def connected(robot: StandIn, endpoint: str) -> socket.socket:
    return socket.create_connection(robot.address(endpoint), PATIENCE_SECONDS)


def frames(line: socket.socket, size: int, count: int) -> bytes:
    """Exactly ``count`` frames."""
    got = b""
    while len(got) < size * count:
        piece = line.recv(size * count - len(got))
        assert piece, "the robot hung up"
        got += piece
    return got


def until(line: socket.socket, seq: int) -> int:
    """Read feedback until this record is completed; return the number of frames."""
    count = 1
    while feedback(frames(line, 48, 1))[0][0] != seq:
        count += 1
    return count


def await_clients(robot: StandIn, endpoint: str, count: int) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while robot.do("status")["parts"][endpoint]["clients"] != count:
        assert time.monotonic() < end, f"timeout: {count} clients at {endpoint}"


def await_records(robot: StandIn, waiting: int) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while robot.do("status")["parts"]["kuka"].waiting != waiting:
        assert time.monotonic() < end, f"timeout: {waiting} records that wait"


def first_frame(host: socket.socket, robot: StandIn) -> bytes:
    """Accepts the connection of the robot; returns its first frame that reports the connection."""
    host.settimeout(PATIENCE_SECONDS)
    line, _ = host.accept()
    line.settimeout(PATIENCE_SECONDS)
    with line:
        await_clients(robot, TELEMETRY, 1)  # the robot knows of it later than the host
        robot.forward(seconds=0.2)
        return frames(line, 128, 1)


def completed(robot: StandIn) -> int:
    status = robot.do("status")["parts"]["kuka"]
    return int(status.reading.progress.completed)


def test_a_move_with_feedback_and_telemetry(kuka_robot: StandIn) -> None:
    with connected(kuka_robot, TELEMETRY) as watcher, connected(kuka_robot, COMMAND) as client:
        client.sendall(command(1, X=200, F=100))
        assert until(client, 1) == 41
        assert kuka_robot.now == pytest.approx(2.01)
        seen = telemetry(frames(watcher, 128, 91))
        assert [frame.pose[0] for frame in seen] == pytest.approx(
            [100.0 * t / 50 - 0.5 for t in range(10, 101)], abs=1e-3
        )


@pytest.mark.understudy(rate="max")
@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_window_of_four_at_any_speed(kuka_robot: StandIn, count: int) -> None:
    seen, sent = [0], 0
    with connected(kuka_robot, COMMAND) as client:
        while seen[-1] < count:
            while sent < count and sent - seen[-1] < 4:
                sent += 1
                client.sendall(command(sent, X=sent % 2, F=100))
            seen.append(max(feedback(frames(client, 48, 1))[0][0], 0))
    assert list(dict.fromkeys(seen)) == list(range(count + 1))


@pytest.mark.understudy(rate="max")
@pytest.mark.parametrize("count", [800, pytest.param(10_000, marks=pytest.mark.soak)])
def test_records_of_a_client_that_never_reads(kuka_robot: StandIn, count: int) -> None:
    with (
        connected(kuka_robot, COMMAND) as client,
        connected(kuka_robot, COMMAND.replace("command", "telemetry")) as watcher,
    ):
        client.sendall(b"".join(command(n, X=n % 2, F=100) for n in range(1, count + 1)))
        seqs = [0]
        while seqs[-1] != count:
            seqs.append(max(telemetry(frames(watcher, 128, 1))[0].seq, 0))
    assert seqs == sorted(seqs)


def test_the_newest_client_takes_over(kuka_robot: StandIn) -> None:
    with connected(kuka_robot, COMMAND) as old:
        old.sendall(command(1, X=1, F=100))
        until(old, 1)
        with connected(kuka_robot, COMMAND) as new:
            new.sendall(command(2, X=10, F=100))
            until(new, 2)
            while old.recv(4096):
                pass
            assert completed(kuka_robot) == 2


@pytest.mark.understudy(rate=0.0)
def test_a_client_that_closes_right_after_its_last_command(kuka_robot: StandIn) -> None:
    with connected(kuka_robot, COMMAND) as client:
        client.sendall(b"".join(command(n, X=100 * (n % 2), F=100) for n in (1, 2, 3)))
        await_records(kuka_robot, 2)
        kuka_robot.forward(seconds=0.3)
    await_clients(kuka_robot, COMMAND, 0)
    kuka_robot.forward(seconds=5)
    assert completed(kuka_robot) == 1  # it was in flight; the others were cleared


def cell_file(folder: Path, face: str) -> str:
    path = folder / "cell.yaml"
    path.write_text(f"robots: {{kuka: {{kind: kuka, faces: {{kuka_eki: {face}}}}}}}\n")
    return str(path)


def test_the_robot_connects_to_a_listening_host(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        wire = f"{{mode: client, host: 127.0.0.1, port: {port}, retry_s: 0.01}}"
        with StandIn(cell_file(tmp_path, f"{{telemetry: {wire}}}")) as robot:
            assert robot.endpoints[TELEMETRY] == f"tcp://127.0.0.1:{port}"
            for _ in range(2):  # it reconnects after the host has disconnected
                assert telemetry(first_frame(host, robot))[0].flags == 0b10


def test_the_robot_tries_again_until_a_host_listens(tmp_path: Path) -> None:
    port = free_port()
    wire = f"{{mode: client, host: 127.0.0.1, port: {port}, retry_s: 0.01}}"
    with (
        StandIn(cell_file(tmp_path, f"{{telemetry: {wire}}}")) as robot,
        socket.create_server(("127.0.0.1", port)) as host,
    ):
        assert len(first_frame(host, robot)) == 128


def test_datagrams_are_broadcast(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(PATIENCE_SECONDS)
        port = listener.getsockname()[1]
        with StandIn(cell_file(tmp_path, f"{{ex4: {{host: 127.0.0.1, port: {port}}}}}")) as robot:
            assert robot.endpoints["kuka.kuka_eki.ex4"] == f"udp://127.0.0.1:{port}"
            robot.forward(seconds=0.3)
            got = [listener.recv(4096) for _ in range(3)]
    assert [len(frame) for frame in got] == [128] * 3
    assert struct.unpack_from("<i", got[0], 60) == (0b1000,)


def test_config_errors_name_what_is_allowed(tmp_path: Path) -> None:
    for face, expected in [
        ("{comand: {}}", "did you mean 'command'"),
        ("{command: {prot: 1}}", r"kuka_eki\.command\.prot.*did you mean 'port'"),
        ("{telemetry: {mode: cleint}}", "mode.*did you mean 'client'"),
        ("{telemetry: {mode: client}}", "host: this key is missing"),
        ("{ex4: {port: 0}}", "ex4.port"),
        ("{ex3: 5}", "ex3"),
        ("{ex4: {host: a..b}}", r"kuka\.kuka_eki\.ex4 cannot send .* to a\.\.b:60004"),
    ]:
        with pytest.raises(Exception, match=expected), StandIn(cell_file(tmp_path, face)):
            pass
