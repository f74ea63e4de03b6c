"""The API of a folder of projects: nothing that is sent breaks the server, and the OpenAPI names every status."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.core.result import Ok

from suffice.web.access import Access
from tests.web.requests_in_process import InProcess, Message
from tests.web.test_folder import MAILS, create, folder_in, listed, talk, upload
from tests.web.test_schema import REQUESTS, messages
from tests.web.web_projects import TOKEN

#: Statuses that any route may have, which are in the description of the whole API.
ANYWHERE = {400, 401, 403, 404, 405, 408, 413, 414, 415, 422, 429, 431}


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, TOKEN], ids=["open", "with a token"])
def test_no_reply_of_a_folder_says_that_the_server_failed(tmp_path: Path, token: str | None) -> None:
    statuses, failed = Counter[int](), []
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    access = Access(host="testserver", token=token, csrf="csrf-of-the-page")
    with folder_in(tmp_path, access) as app, InProcess() as client:
        script = talk(app, Host="testserver", **headers)
        made = create(script, upload(script).json()).json()["folder"]
        pending = upload(script, MAILS, "more.csv").json()["upload"]
        schema = schemathesis.openapi.from_dict(script.get("/api/openapi.json").json())
        operations: list[Any] = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
        assert {operation.path for operation in operations} >= {"/api/projects", "/api/uploads", "/api/plan"}
        each = REQUESTS // (20 * len(operations))
        for operation in operations:
            described = {int(status) for status in operation.definition.raw["responses"] if status.isdecimal()}
            for message in messages(operation, -(-each // 2)):
                # Half of the requests are about an upload that there is.
                body = message.body.replace(b'"upload": "', f'"upload": "{pending}", "_": "'.encode(), 1)
                for sent in {message.body, body}:
                    reply = client.ask(app, Message(message.method, message.target, sent, message.headers), **headers)
                    statuses[reply.status] += 1
                    if reply.status >= 500 or reply.status not in described | ANYWHERE:
                        failed.append((message.method, message.target, sent[:500], reply))
        assert not failed, (len(failed), failed[:5])
        assert made in listed(script)
    assert statuses[200] > 0
    assert statuses[422] > 0
