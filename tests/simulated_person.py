"""A person who labels at a running server with the true labels, for tests of documented commands."""

import json
import time
import urllib.request
from collections.abc import Sequence
from typing import Any, Final

_NAME: Final = "Ann"


class SimulatedPerson:
    """Answers what the server asks, and remembers what it said.

    Attributes:
        said: All sentences of the status so far.
    """

    said: set[str]

    def __init__(self, url: str, truth: Sequence[str], token: str = "") -> None:
        """Begin without an answer.

        Args:
            url: Address of the server or of one of its projects, with a slash at the end.
            truth: The true label of each item.
            token: That of the server; empty if it has none.
        """
        self.said = set()
        self._url = url
        self._truth = truth
        self._token = token

    def ask(self, path: str, **body: Any) -> Any:
        """The response to a request, as JSON: POST with a body, otherwise GET."""
        data = json.dumps(body).encode() if body else None
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {}
        )
        asked = urllib.request.Request(self._url + path, data, headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    def label(self, n: int) -> Any:
        """Label the next items, at most ``n``, and return the status when the model has learned them."""
        for given in self.ask("api/next", person=_NAME, n=n)["items"]:
            self.ask("api/labels", person=_NAME, item=given["item"], label=self._truth[given["item"]])
        while (found := self.ask("api/status"))["behind"]:
            time.sleep(0.02)
        self.said.update(found["words"])
        return found
