"""Label Studio itself: a server from PyPI on this machine, with its own database, and the command as a process."""

import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from suffice.cli.label_studio_command import TOKEN_VARIABLE
from suffice.integrations.label_studio import LabelStudio, LabelStudioError
from suffice.project import open_project
from tests.integrations.snippets import SNIPPETS

pytest.importorskip("label_studio", reason="Label Studio has an environment of its own: make test-integrations")

TOKEN = "0123456789abcdef0123456789abcdef01234567"
CLASSES = ("spam", "ham")
CONFIG = (
    '<View><Text name="item" value="$text"/><Choices name="label" toName="item" choice="single">'
    '<Choice value="spam"/><Choice value="ham"/></Choices></View>'
)
OWN_DESCRIPTION, OWN_INSTRUCTION = "Mails of 2024.", "<p>Read <b>all</b> of it.</p>"


def eventually(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The value of a condition once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """A server of Label Studio that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.api = LabelStudio(self.url, TOKEN)

    def start(self) -> None:
        settings = {
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "ML_BLOCK_LOCAL_IP": "false",
            "SSRF_PROTECTION_ENABLED": "false",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
        }
        program = str(Path(sys.executable).with_name("label-studio"))
        options = ["--internal-host", "127.0.0.1", "--no-browser", "--data-dir", str(self.folder)]
        user = ["--username", "ann@example.com", "--password", "secret-word-1", "--user-token", TOKEN]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [program, "start", "--port", str(self.port), *options, *user, "--enable-legacy-api-token"],
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
            )
        eventually(self.answers, 300.0)

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "server.log").read_text()[-3000:]
        try:
            with urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)

    def make_project(self, tasks: list[dict[str, Any]], config: str = CONFIG) -> int:
        about = {
            "title": "Mails",
            "label_config": config,
            "description": OWN_DESCRIPTION,
            "expert_instruction": OWN_INSTRUCTION,
        }
        number = int(self.api.call("POST", "/api/projects/", about)["id"])
        self.api.call("POST", f"/api/projects/{number}/import", tasks)
        return number

    def next_task(self, project: int) -> dict[str, Any]:
        """The task that somebody who presses "Label All Tasks" is shown."""
        found: dict[str, Any] = self.api.call("GET", f"/api/projects/{project}/next/")
        return found

    def annotate(self, task: dict[str, Any], label: str | None = None) -> int:
        label = label or truth(task)
        result = [{"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [label]}}]
        return int(self.api.call("POST", f"/api/tasks/{task['id']}/annotations/", {"result": result})["id"])

    def labels(self, project: int) -> dict[str, str]:
        """The label of each annotated task."""
        return {
            str(task["id"]): annotation["result"][0]["value"]["choices"][0]
            for task in self.api.tasks(project)
            for annotation in task["annotations"]
            if not annotation["was_cancelled"]
        }


class Connection:
    """A process of ``suffice label-studio``."""

    def __init__(self, server: Server, project: int, folder: Path) -> None:
        self.folder, self.errors = folder, folder.with_suffix(".errors")
        options = ["--url", server.url, "--project", str(project), "--folder", str(folder), "--port", "0", "--json"]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "suffice", "label-studio", *options],
                env={**os.environ, TOKEN_VARIABLE: TOKEN},
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors.read_text()
        self.told = json.loads(line)

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        assert self.process.wait(60) == (0 if number == signal.SIGTERM else -number), self.errors.read_text()
        assert self.process.stdout is not None
        self.process.stdout.close()


def suffice(*arguments: str, token: str | None = TOKEN) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
    environment |= {} if token is None else {TOKEN_VARIABLE: token}
    return subprocess.run(
        [sys.executable, "-m", "suffice", *arguments], capture_output=True, text=True, env=environment, check=False
    )


def mails(number: int) -> list[dict[str, Any]]:
    rng = random.Random(0)
    words = [
        ["free", "prize", "win", "money", "click", "offer", "cash"],
        ["lunch", "home", "meeting", "report", "tomorrow", "thanks", "dinner"],
    ]
    return [{"data": {"text": " ".join(rng.choices(words[k % 2], k=5))}} for k in range(number)]


def truth(task: dict[str, Any]) -> str:
    return "spam" if {*task["data"]["text"].split()} & {"free", "prize", "win", "money", "click"} else "ham"


def journal_labels(folder: Path) -> dict[str, str]:
    with open_project(folder) as project, project.lock:
        state = project.state()
        labelled = state.labelled()
        assert all(len(each.opinions) == 1 for each in labelled)
        names = project.rows([each.item for each in labelled]) if labelled else []
        return {row[0]: str(each.label) for row, each in zip(names, labelled, strict=True)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("label-studio"))
    found.start()
    yield found
    found.stop()


def test_forty_tasks_a_check_and_a_restart_of_either_side(server: Server, tmp_path: Path) -> None:  # noqa: PLR0915
    api, folder = server.api, tmp_path / "mails.suffice"
    project = server.make_project(mails(100))
    connection = Connection(server, project, folder)
    with pytest.raises(HTTPError, match="401"):
        urlopen(Request(connection.told["webhook"], b"{}"), timeout=10)
    given: dict[str, str] = {}
    numbers: dict[str, int] = {}

    def in_step() -> bool:
        return journal_labels(folder) == given

    def annotate(task: dict[str, Any]) -> None:
        numbers[str(task["id"])] = server.annotate(task)
        given[str(task["id"])] = truth(task)

    def change(place: int) -> None:
        task = list(given)[place]
        given[task] = "ham" if given[task] == "spam" else "spam"
        value = {"choices": [given[task]]}
        result = [{"from_name": "label", "to_name": "item", "type": "choices", "value": value}]
        api.call("PATCH", f"/api/annotations/{numbers[task]}/", {"result": result})

    def delete(place: int) -> None:
        task = list(given)[place]
        del given[task]
        api.call("DELETE", f"/api/annotations/{numbers.pop(task)}/")

    def label(count: int) -> None:
        for _ in range(count):
            task = server.next_task(project)
            # The order is that of suffice: the task has its prediction, which holds no label.
            assert [(each["model_version"], each["result"]) for each in task["predictions"]] == [("suffice", [])]
            annotate(task)
            eventually(in_step)

    label(12)
    # suffice is killed; two labels are given meanwhile, one is changed and one is deleted.
    connection.end(signal.SIGKILL)
    for _ in range(2):
        annotate(server.next_task(project))
    change(0)
    delete(1)
    connection = Connection(server, project, folder)
    assert in_step()
    label(6)
    # Label Studio is stopped and started again; suffice goes on by itself.
    server.stop()
    time.sleep(2.0)
    assert connection.process.poll() is None
    server.start()
    label(10)
    # While suffice runs: a changed, a deleted and a skipped annotation.
    change(3)
    delete(4)
    eventually(in_step)
    skipped = server.next_task(project)
    api.call("POST", f"/api/tasks/{skipped['id']}/annotations/", {"result": [], "was_cancelled": True})

    def n_skipped() -> int:
        with open_project(folder) as found, found.lock:
            skips: int = found.state().n_skipped
            return skips

    eventually(lambda: n_skipped() == 1)
    connection.end()
    connection = Connection(server, project, folder)
    label(40 - len(given))
    assert server.labels(project) == given == journal_labels(folder)
    assert len(given) == 40
    # Every annotation is one label, and nothing was written twice.
    with open_project(folder) as found:
        kinds = Counter(event.kind.name for event in found.events())
    assert kinds["labelled"] == 42
    assert kinds["undone"] == 2
    assert kinds["corrected"] == 2
    # Two people's work is not mixed up with ours: the text that was there is there.
    about = api.project(project)
    assert about["description"].startswith(OWN_DESCRIPTION)
    assert about["expert_instruction"].startswith(OWN_INSTRUCTION)
    assert "Guaranteed" not in about["description"]

    # A random check: its tasks come first, and have no predicted label.
    done = suffice("check", str(folder), "--size", "20", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["check"]["size"] == 20
    with open_project(folder) as found, found.lock:
        check = found.state().checks.open_check
        assert check is not None
        # The task that was skipped may be drawn; it has its answer.
        drawn = {row[0] for row in found.rows(found.state().checks.pending().tolist())}
        assert len(drawn) >= 19
    eventually(lambda: api.project(project)["model_version"] == "suffice check 1")
    eventually(lambda: "random check" in api.project(project)["expert_instruction"])
    # The task that the annotator had before the check is still theirs; all others are those of the check.
    served = []
    for answered in range(25):
        task = server.next_task(project)
        if str(task["id"]) in drawn:
            assert all(each["result"] == [] for each in task["predictions"])
            served.append(str(task["id"]))
        annotate(task)
        eventually(in_step)
        if len(served) == 10 and answered < 15:
            connection.end(signal.SIGKILL)
            connection = Connection(server, project, folder)
        if len(served) == len(drawn):
            break
    assert set(served) == drawn
    assert answered <= 21
    eventually(lambda: "Guaranteed: at most" in api.project(project)["description"])
    about = api.project(project)
    assert "Guaranteed: at most" in about["expert_instruction"]
    assert about["description"].startswith(OWN_DESCRIPTION)
    assert about["description"].count("[suffice]") == about["expert_instruction"].count("[suffice]") == 1
    eventually(lambda: api.project(project)["model_version"] == "suffice")
    assert "Guaranteed: at most" in suffice("status", str(folder)).stdout
    out = tmp_path / "out"
    assert suffice("export", str(folder), "--out", str(out)).returncode == 0
    with (out / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["id"]: row["label"] for row in rows} == given == server.labels(project)
    assert {row["labelled_by"] for row in rows} == {"ann@example.com"}
    assert json.loads((out / "guarantee.json").read_text())["check"] == 1
    assert (out / "report.html").exists()
    connection.end()
    assert api.call("GET", "/api/webhooks/", project=project) == []
    # Everything of ours can be removed.
    options = ("label-studio", "--url", server.url, "--project", str(project), "--folder", str(folder))
    assert suffice(*options, "--remove").returncode == 0
    about = api.project(project)
    assert (about["description"], about["expert_instruction"]) == (OWN_DESCRIPTION, OWN_INSTRUCTION)
    assert about["total_predictions_number"] == 0
    assert len(server.labels(project)) == len(rows)


def test_an_exported_file_can_be_imported(server: Server, tmp_path: Path) -> None:
    from suffice.project import create_project

    texts = [task["data"]["text"] for task in mails(30)]
    with create_project(tmp_path / "p", texts, classes=CLASSES) as made:
        for item in range(15):
            made.label(item, truth({"data": {"text": texts[item]}}), person="ann")
        made.correct(0, "spam", person="bob")
    out = tmp_path / "out"
    assert suffice("export", str(tmp_path / "p"), "--format", "label-studio", "--out", str(out)).returncode == 0
    config = (out / "label-studio.xml").read_text()
    tasks = json.loads((out / "label-studio.json").read_text())
    number = int(server.api.call("POST", "/api/projects/", {"title": "again", "label_config": config})["id"])
    report = server.api.call("POST", f"/api/projects/{number}/import", tasks)
    assert (report["task_count"], report["annotation_count"], report["prediction_count"]) == (30, 16, 15)
    found = list(server.api.tasks(number))
    for task, sent in zip(found, tasks, strict=True):
        assert task["data"] == sent["data"]
        for key in ("annotations", "predictions"):
            got = [each["result"][0]["value"]["choices"] for each in task.get(key, [])]
            assert got == [each["result"][0]["value"]["choices"] for each in sent.get(key, [])]
    # And suffice takes the annotations back: all were imported by one user, and the correction counts.
    done = suffice(
        "label-studio", "--url", server.url, "--project", str(number), "--folder", str(tmp_path / "q"), "--once"
    )
    assert done.returncode == 0, done.stderr
    with open_project(tmp_path / "q") as again, again.lock:
        assert again.state().n_labelled == 15
        assert again.state().label_of(0) == "spam"


def test_a_personal_token_and_predictions_that_are_shown(server: Server, tmp_path: Path) -> None:
    project, folder = server.make_project(mails(60)), tmp_path / "p"
    for task in list(server.api.tasks(project))[:12]:
        server.annotate(task)
    personal = server.api.call("POST", "/api/token/", {})["token"]
    secret = tmp_path / "token"
    secret.write_text(f"{personal}\n")
    options = ("--url", server.url, "--project", str(project), "--folder", str(folder), "--token-file", str(secret))
    done = suffice("label-studio", *options, "--show-predictions", "--random-share", "0", "--once", token=None)
    assert done.returncode == 0, done.stderr
    held = [each for each in server.api.call("GET", "/api/predictions/", project=project) if each["result"]]
    assert held
    task = server.next_task(project)
    assert task["predictions"][0]["result"][0]["value"]["choices"][0] in CLASSES
    server.annotate(task)
    done = suffice("label-studio", *options, "--show-predictions", "--once", token=None)
    assert done.returncode == 0, done.stderr
    with open_project(folder) as found, found.lock:
        saw = {row[0] for row in found.rows([each.item for each in found.state().labelled() if each.saw_prediction])}
    assert saw == {str(task["id"])}


def test_tables_and_images(server: Server, tmp_path: Path) -> None:
    table = CONFIG.replace("<Text", "<Table").replace("$text", "$cells")
    rows = [{"data": {"cells": {"size": k, "colour": ["red", "blue"][k % 2]}}} for k in range(20)]
    project = server.make_project(rows, table)
    options = ("label-studio", "--url", server.url, "--once", "--json", "--project")
    done = suffice(*options, str(project), "--folder", str(tmp_path / "table"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["size"] == 20
    new = [{"data": {"cells": {"size": 99, "colour": "red"}}}]
    server.api.call("POST", f"/api/projects/{project}/import", new)
    assert json.loads(suffice(*options, str(project), "--folder", str(tmp_path / "table")).stdout)["size"] == 21

    from PIL import Image

    image = CONFIG.replace("<Text", "<Image").replace("$text", "$image")
    project = int(server.api.call("POST", "/api/projects/", {"title": "images", "label_config": image})["id"])
    boundary = "b0undary"
    for k in range(6):
        file = tmp_path / f"{k}.png"
        Image.new("RGB", (20, 20), (40 * k, 255 - 40 * k, 7)).save(file)
        part = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{k}.png"\r\n\r\n'.encode()
        body = part + file.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        upload(server, f"/api/projects/{project}/import", body, f"multipart/form-data; boundary={boundary}")
    done = suffice(*options, str(project), "--folder", str(tmp_path / "images"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["size"] == 6
    elsewhere = server.make_project([{"data": {"image": "http://other.example/a.png"}}] * 2, image)
    done = suffice(*options, str(elsewhere), "--folder", str(tmp_path / "elsewhere"))
    assert done.returncode == 2
    assert "only that server is contacted" in done.stderr


def test_the_commands_of_the_page(server: Server, tmp_path: Path) -> None:
    project = server.make_project(mails(60))
    for task in list(server.api.tasks(project))[:14]:
        server.annotate(task)
    names = {"LABEL_STUDIO_URL": server.url, "LABEL_STUDIO_PROJECT": str(project), TOKEN_VARIABLE: TOKEN}
    environment = {**os.environ, **names, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = SNIPPETS / "label-studio.sh"
    done = subprocess.run(
        ["sh", "-e", str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "14 of 60 tasks have a label" in done.stdout
    assert server.api.project(project)["model_version"] == "suffice check 1"
    assert len((tmp_path / "results" / "labels.csv").read_text().splitlines()) == 15


def upload(server: Server, path: str, body: bytes, kind: str) -> None:
    request = Request(f"{server.url}{path}", body, {"Authorization": f"Token {TOKEN}", "Content-Type": kind})
    with urlopen(request, timeout=60) as answer:
        assert answer.status == 201


def test_wrong_use_is_refused_with_a_sentence(server: Server, tmp_path: Path) -> None:
    project = server.make_project(mails(4))
    start = ("label-studio", "--url", server.url, "--folder", str(tmp_path / "p"), "--once", "--project")
    done = suffice(*start, str(project), token="0" * 40)
    assert (done.returncode, "refuses the API token" in done.stderr) == (1, True), done.stderr
    done = suffice(*start, "999999")
    assert (done.returncode, "999999 is none; there are:" in done.stderr) == (2, True), done.stderr
    several = CONFIG.replace('choice="single"', 'choice="multiple"')
    done = suffice(*start, str(server.make_project(mails(4), several)))
    assert (done.returncode, "allows several choices" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "p").exists()
    with pytest.raises(LabelStudioError, match="refuses the API token"):
        LabelStudio(server.url, "0" * 40).project(project)
