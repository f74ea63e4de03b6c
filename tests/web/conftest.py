"""One browser for all tests of the page that a process runs: it takes longer to start than most of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.web.browsing import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def browser() -> "Iterator[Browser]":
    with chromium() as found:
        yield found
