"""Browser and processes of the tests of the page."""

from tests.browsers import browser, chromium, open_page

__all__ = ["browser", "chromium", "open_page"]
