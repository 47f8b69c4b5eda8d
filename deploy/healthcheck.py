"""Asks `/health` of the page in this container. Exit code 0: it answers; 1: it does not."""

import os
import sys
import urllib.request

TIMEOUT_SECONDS = 4.0

token = os.environ.get("UNDERSTUDY_HMI_VIEWER_TOKEN") or os.environ.get("UNDERSTUDY_HMI_TOKEN", "")
port = sys.argv[1] if len(sys.argv) > 1 else "8080"
request = urllib.request.Request(
    f"http://127.0.0.1:{port}/health", headers={"Authorization": f"Bearer {token}"}
)
try:
    urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()
except OSError as problem:
    sys.exit(f"the page on port {port} gives no answer: {problem}")
