"""A ZeroMQ server in a thread, for clients that ask and wait."""

import threading
from collections.abc import Callable

import zmq

PATIENCE = 60.0
Respond = Callable[[bytes], bytes | None]


class Server:
    """A REP server in a thread; a question that `respond` gives nothing for is never answered."""

    def __init__(self, address: str, respond: Respond) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        try:
            self._socket.bind(address)
        except zmq.ZMQError:
            self._socket.close()
            raise
        self._respond = respond
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.heard = 0

    def _run(self) -> None:
        while not self._ends.is_set():
            if self._socket.poll(10):
                *envelope, request = self._socket.recv_multipart()
                self.heard += 1
                if (reply := self._respond(request)) is not None:
                    self._socket.send_multipart([*envelope, reply])
        self._socket.close(linger=0)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ends.set()
        self._thread.join(PATIENCE)
