"""Tokens that open an endpoint to other machines: the shortest that is accepted."""

from understudy.errors import ConfigError

SHORTEST_TOKEN = 16
"""Characters. A right token is never delayed (hmi/access.py), so its length alone makes
guessing hopeless."""


def check_token(token: str | None, key: str) -> None:
    """Raises a ConfigError for a token that is too short; the message does not contain it."""
    if token and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the token has {len(token)} characters",
            key=key,
            allowed=f"{SHORTEST_TOKEN} or more, for example from: openssl rand -hex 16",
        )
