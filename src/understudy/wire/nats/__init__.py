"""A NATS server with JetStream: an own one that runs with the cell, or a given one.

All peers behind the server are one session of the message face, whose peer name is `nats`. The
session is opened when the connection is made and closed when it is lost.

- Robot to backend: a message without `reply_to` is published and forgotten. A message with one is
  stored by JetStream under that id; when the server has confirmed it, the session receives a
  message to the address `CONFIRMED`. If no confirmation comes, the session hears nothing, and sends
  the message again when it likes: the server drops what it has already stored.
- Backend to robot: one durable consumer gives the messages to the session, as many as its credit
  allows. `reply_to` is the address of the acknowledgement; the session sends it when it has handled
  the message.
"""

from typing import Any

from understudy.wire.nats.config import Config as Config

SELECTED_BY: dict[str, Any] = {}
