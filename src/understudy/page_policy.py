"""Content security policy of a report, an HTML file that people mail and archive."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256


def policy_meta(
    *, scripts: Sequence[str] = (), styles: Sequence[str] = (), pictures: bool = False
) -> str:
    """The `<meta>` element that allows these texts of script and style elements, and nothing else:
    no other script, no handler attribute, no request. ``pictures``: those in the file itself."""
    directives = (
        "default-src 'none'",
        f"script-src {_sources(scripts)}",
        f"style-src {_sources(styles)}",
        *(["img-src data:"] if pictures else []),
        "base-uri 'none'",
        "form-action 'none'",
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(directives)}">'


def _sources(texts: Sequence[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
