"""The adapter to Label Studio with recorded answers of its API; the real server is in ``test_label_studio.py``."""

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.label_studio_command import TOKEN_VARIABLE
from suffice.errors import InvalidValueError, SufficeError
from suffice.integrations.label_studio import (
    SECRET_HEADER,
    LabelStudio,
    LabelStudioError,
    LabelStudioSync,
    UnreachableError,
    WebhookReceiver,
    checked_token,
    checked_url,
    created_project,
    label_config,
    project_link,
    registered_webhook,
    remove_webhooks,
    section_of,
    task_values,
    with_section,
)
from suffice.project import Project, open_project
from suffice.project.background_learner import BackgroundLearner
from tests.integrations.recorded_label_studio import CONFIG, PERSONAL_TOKEN, TOKEN, RecordedServer, served

WORDS = (["free", "prize", "win", "money"], ["lunch", "home", "meeting", "report"])


def mails(count: int) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS[k % 2], k=4)) for k in range(count)]


def truth(state: RecordedServer, task: int) -> str:
    return "spam" if {*state.tasks[task]["data"]["text"].split()} & {*WORDS[0]} else "ham"


@pytest.fixture
def server() -> Iterator[RecordedServer]:
    with served(RecordedServer(mails(60))) as state:
        yield state


@contextmanager
def connected(state: RecordedServer, folder: Path, **options: Any) -> Iterator[tuple[LabelStudioSync, Project]]:
    api = LabelStudio(state.url, TOKEN)
    project = open_project(folder) if folder.exists() else created_project(folder, api, 1)
    with project, BackgroundLearner(project) as background:
        yield LabelStudioSync(api, 1, project, background, **options), project


def labels(project: Project) -> dict[int, str]:
    with project.lock:
        labelled = project.state().labelled()
    rows = project.rows([each.item for each in labelled]) if labelled else []
    return {int(row[0]): str(each.label) for row, each in zip(rows, labelled, strict=True)}


def test_annotations_are_followed_and_tasks_ordered(server: RecordedServer, tmp_path: Path) -> None:
    given = {}
    with connected(server, tmp_path / "p") as (sync, project):
        sync.update()
        for _ in range(14):
            task = server.next_task()
            given[task] = truth(server, task)
            server.annotate(task, given[task])
            sync.read_tasks([task])
            sync.update()
            held = server.predictions()
            assert 1 <= len(held) <= 10
            assert not set(held) & set(given)
            assert all(each["result"] == [] for each in held.values())
        assert labels(project) == given
        with project.lock:
            # The first ones were asked for at random, and the journal knows which.
            state = project.state()
            assert sum(each.random for each in state.labelled()) >= 10
        assert server.project["sampling"] == "Uncertainty sampling"
        assert server.project["show_instruction"] is True
        n_events = len(project.events())
        for _ in range(3):
            sync.update()
        # Reading everything again writes nothing.
        assert len(project.events()) == n_events


def test_the_order_is_that_in_which_items_were_asked_for(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p") as (sync, project):
        sync.update()
        asked = [int(project.rows([event.item])[0][0]) for event in project.events() if event.item is not None]
        held = server.predictions()
        assert sorted(held, key=lambda task: held[task]["score"]) == asked
        server.annotate(asked[1], "ham")
        sync.update()
        again = sorted(held := server.predictions(), key=lambda task: held[task]["score"])
        assert again[: len(asked) - 1] == [asked[0], *asked[2:]]


def test_changed_deleted_and_skipped_annotations(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p") as (sync, project):
        one, two, three = (server.annotate(task, "spam") for task in (1, 2, 3))
        server.annotate(4, None)
        sync.read_all()
        assert labels(project) == {1: "spam", 2: "spam", 3: "spam"}
        assert project.state().n_skipped == 1
        server.change(one, "ham")
        server.delete(two)
        server.annotate(4, "ham")
        sync.read_all()
        assert labels(project) == {1: "ham", 3: "spam", 4: "ham"}
        server.change(one, "spam")
        server.delete(three)
        server.annotate(3, None)
        sync.read_all()
        assert labels(project) == {1: "spam", 4: "ham"}
        server.tasks[1]["annotations"] = []
        sync.read_tasks([1])
        assert labels(project) == {4: "ham"}


def test_several_people(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p") as (sync, project):
        ann, bob = server.annotate(1, "spam", user=1), server.annotate(1, "ham", user=2)
        sync.read_all()
        assert labels(project) == {1: "spam"}
        assert [each.person for each in project.state().acts.opinions(0)] == ["ann@example.com", "bob@example.com"]
        # The second answer does not change the label that counts.
        server.change(bob, "spam")
        server.change(ann, "ham")
        sync.read_all()
        assert labels(project) == {1: "ham"}
        server.delete(ann)
        sync.read_all()
        assert labels(project) == {1: "spam"}
        # An annotation that is marked as ground truth counts.
        server.annotate(1, "ham", user=1, ground_truth=True)
        sync.read_all()
        assert labels(project) == {1: "ham"}
        # Labels that came in another way stay.
        project.label(5, "ham", person="carl")
        sync.read_all()
        assert labels(project) == {1: "ham", 6: "ham"}


@pytest.mark.slow
@given(
    acts=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([1, 2]), st.sampled_from(["spam", "ham", None, "delete"])),
        max_size=12,
    )
)
def test_any_sequence_of_acts_ends_in_the_same_state(
    acts: list[tuple[int, int, str | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The journal says the same whether it was read after every act, or once at the end."""
    folder = tmp_path_factory.mktemp("acts")
    with served(RecordedServer(mails(6))) as state:
        with connected(state, folder / "often") as (sync, project):
            for task, user, act in acts:
                mine = [each for each in state.tasks[task]["annotations"] if each["completed_by"] == user]
                if act == "delete":
                    for each in mine:
                        state.delete(each["id"])
                elif mine and act is not None:
                    mine[-1] |= {"was_cancelled": False}
                    state.change(mine[-1]["id"], act)
                elif not mine:
                    state.annotate(task, act, user=user)
                sync.read_all()
            often = labels(project)
            opinions = [{each.person: each.label for each in _opinions(project, item)} for item in range(4)]
        wanted = {
            task: {
                state.users[each["completed_by"] - 1]["email"]: each["result"][0]["value"]["choices"][0]
                for each in found["annotations"]
                if not each["was_cancelled"]
            }
            for task, found in state.tasks.items()
        }
        assert opinions == [wanted[task] for task in range(1, 5)]
        for task, found in wanted.items():
            assert (task in often) == bool(found)
            assert task not in often or often[task] in found.values()


def _opinions(project: Project, item: int) -> list[Any]:
    """What each person says of an item now."""
    with project.lock:
        acts = [act for act in project.state().acts.of_item(item) if "label" in act.data]
    newest = {act.person: act for act in acts}
    return [type("Said", (), {"person": act.person, "label": act.data["label"]}) for act in newest.values()]


def test_a_check_comes_first_and_its_guarantee_is_shown(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p") as (sync, project):
        sync.update()
        for _ in range(15):
            server.annotate(task := server.next_task(), truth(server, task))
            sync.update()
        before = set(server.predictions())
        project.start_check(12, person="ann")
        sync.update()
        check = project.state().checks.open_check
        assert check is not None
        drawn = [int(row[0]) for row in project.rows(check.items)]
        assert server.project["model_version"] == "suffice check 1"
        held = server.predictions("suffice check 1")
        assert sorted(held, key=lambda task: held[task]["score"]) == drawn
        assert all(each["result"] == [] for each in held.values())
        assert before
        assert not server.predictions("suffice")
        assert "random check" in server.project["expert_instruction"]
        for number in range(12):
            task = server.next_task()
            assert task == drawn[number]
            server.annotate(task, truth(server, task))
            sync.update()
        guarantee = project.guarantee()
        assert guarantee is not None
        assert guarantee.about_present_model
        sentence = str(guarantee).split(". ")[0]
        assert sentence in server.project["description"]
        assert sentence in server.project["expert_instruction"]
        assert server.project["description"].startswith("Ours.\n\n[suffice] Guaranteed")
        assert server.project["model_version"] == "suffice"
        # A corrected answer recomputes it.
        wrong = "ham" if truth(server, drawn[0]) == "spam" else "spam"
        server.change(server.tasks[drawn[0]]["annotations"][0]["id"], wrong)
        sync.update()
        assert sentence not in server.project["description"]
        assert "Guaranteed" in server.project["description"]


def test_shown_predictions_are_recorded_but_none_is_shown_for_a_check(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p", show_predictions=True) as (sync, project):
        for task in range(1, 13):
            server.annotate(task, truth(server, task))
        sync.update()
        held = server.predictions()
        shown = [task for task, each in held.items() if each["result"]]
        assert shown
        assert len(shown) < len(held)
        random_items = {int(project.rows([item])[0][0]) for item in range(60) if item in project.state().random_items()}
        assert not random_items & set(shown)
        server.annotate(shown[0], truth(server, shown[0]))
        sync.update()
        assert [each.item for each in project.state().labelled() if each.saw_prediction] == [shown[0] - 1]
        project.start_check(10, person="ann")
        sync.update()
        assert all(each["result"] == [] for each in server.predictions("suffice check 1").values())
        assert not server.predictions("suffice")


def test_tasks_and_choices_that_come_later(server: RecordedServer, tmp_path: Path) -> None:
    told: list[str] = []
    with connected(server, tmp_path / "p", say=told.append) as (sync, project):
        sync.update()
        new = server.add_task({"text": "win a prize at home"})
        server.annotate(new, "spam")
        server.project["label_config"] = CONFIG.replace("</Choices>", '<Choice value="other"/></Choices>')
        server.annotate(1, "other")
        sync.update()
        assert project.size == 61
        assert labels(project) == {new: "spam", 1: "other"}
        assert project.settings.classes == ("spam", "ham", "other")
        server.annotate(2, "something else")
        server.add_task({"other": "field"})
        sync.update()
        sync.update()
        assert len(told) == 2
        assert "is none of the classes" in told[1]
        assert "has no field 'text'" in told[0]
        # A deleted task is not asked for any more; its label is kept.
        del server.tasks[1], server.tasks[3]
        sync.update()
        assert labels(project) == {new: "spam", 1: "other"}
        assert project.state().labels.is_skipped(2)
        server.tasks.clear()
        with pytest.raises(LabelStudioError, match="has no tasks any more; nothing was changed"):
            sync.update()


def test_a_restart_loses_nothing(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p") as (sync, _):
        sync.update()
        one = server.annotate(1, "spam")
        server.annotate(2, "ham")
        sync.update()
    server.delete(one)
    server.annotate(3, "ham")
    with connected(server, tmp_path / "p") as (sync, project):
        sync.update()
        assert labels(project) == {2: "ham", 3: "ham"}
        held = server.predictions()
        assert len(held) == len({each["task"] for each in held.values()}) >= 4


def eventually(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.mark.slow
def test_the_loop_outlives_a_server_that_is_gone(server: RecordedServer, tmp_path: Path) -> None:
    told: list[str] = []
    with connected(server, tmp_path / "p", say=told.append) as (sync, project):
        thread = threading.Thread(target=sync.run)
        thread.start()
        server.called = sync.notify
        eventually(lambda: len(server.predictions()) >= 4)
        server.annotate(1, "spam")
        eventually(lambda: labels(project) == {1: "spam"})
        one = server.annotate(2, "ham")
        eventually(lambda: 2 in labels(project))
        server.delete(server.annotate(4, "ham"))
        two = server.annotate(5, "ham")
        eventually(lambda: 5 in labels(project))
        server.delete(two)
        eventually(lambda: labels(project) == {1: "spam", 2: "ham"})
        # Only the tasks that webhooks named were read.
        assert sync.n_read == 1
        server.status = 503
        server.delete(one)
        eventually(lambda: told)
        server.called = lambda _: None
        server.annotate(3, "ham")
        server.status = 0
        eventually(lambda: labels(project) == {1: "spam", 3: "ham"})
        eventually(lambda: len(told) == 2)
        # A webhook of a task that is not known, and one that is not understood.
        new = server.add_task({"text": "free money"})
        server.annotate(new, "spam")
        sync.notify(None)
        eventually(lambda: new in labels(project))
        sync.close()
        thread.join()
    assert "cannot answer now" in told[0]
    assert told[1] == "The connection to Label Studio works again. All annotations were read."


def test_what_no_webhook_told_is_found(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p", every=0.05) as (sync, project):
        thread = threading.Thread(target=sync.run)
        thread.start()
        server.annotate(1, "spam")
        eventually(lambda: labels(project) == {1: "spam"})
        sync.close()
        thread.join()


def test_texts_of_people_are_kept(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p") as (sync, _):
        server.project["expert_instruction"] = "<p>Read all.</p>"
        sync.update()
        first = server.project["expert_instruction"]
        assert first.startswith("<p>Read all.</p>\n\n<p>[suffice]")
        server.project["expert_instruction"] = f"<p>Changed.</p>{first}<p>After it.</p>"
        server.annotate(1, "spam")
        sync.update()
        second = server.project["expert_instruction"]
        assert second.startswith("<p>Changed.</p><p>Read all.</p>")
        assert second.endswith("<p>[/suffice]</p><p>After it.</p>")
        assert second.count("[suffice]") == 1
        # Who does not want the instructions before labelling is not overruled.
        server.project["show_instruction"] = False
        server.annotate(2, "spam")
        sync.update()
        assert server.project["show_instruction"] is False
        sync.remove()
        assert server.project["expert_instruction"] == "<p>Changed.</p><p>Read all.</p><p>After it.</p>"
        assert server.project["description"] == "Ours."
        assert not server.predictions()


TEXTS = st.text("a <p>/[]\n", max_size=15)


@given(before=TEXTS, after=TEXTS, section=TEXTS)
def test_a_section_is_replaced_and_nothing_else(before: str, after: str, section: str) -> None:
    before, after, section = (text.replace("[", "(") for text in (before, after, section))
    one, two = f"[suffice] {section} [/suffice]", "[suffice] other [/suffice]"
    text = with_section(before, one)
    assert section_of(text) == one
    assert text == with_section(text, one)
    assert before.strip() in text
    text = with_section(f"{text}{after}", two)
    assert section_of(text) == two
    assert text.endswith(f"{two}{after}")


def test_a_section_whose_end_was_deleted_takes_nothing_with_it() -> None:
    text = with_section("Mine. [suffice] Keep going. And mine too.", "[suffice] Stop. [/suffice]")
    assert "And mine too." in text
    assert section_of(text) == "[suffice] Stop. [/suffice]"


# The server.


def test_only_the_configured_server_is_contacted(server: RecordedServer) -> None:
    with served(RecordedServer(["a", "b"])) as other:
        server.status, server.location = 302, f"{other.url}/api/projects/1/"
        with pytest.raises(LabelStudioError, match=r"redirects to .*, and only the server of --url is contacted"):
            LabelStudio(server.url, TOKEN).project(1)
        server.location = "/elsewhere"
        with pytest.raises(LabelStudioError, match="redirects"):
            LabelStudio(server.url, TOKEN).project(1)
        with pytest.raises(InvalidValueError, match="only that server is contacted"):
            LabelStudio(server.url, TOKEN).file(f"{other.url}/data/upload/1.png")
        for address in ("//other.example/x.png", "https://127.0.0.1/x.png", "file:///etc/passwd"):
            with pytest.raises(SufficeError):
                LabelStudio(server.url, TOKEN).file(address)
        assert other.requests == []


def test_all_tasks_are_read_also_if_some_are_deleted_meanwhile(
    server: RecordedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.integrations.label_studio._PAGE_SIZE", 7)
    api, answer = LabelStudio(server.url, TOKEN), server.answer
    assert [task["id"] for task in api.tasks(1)] == list(range(1, 61))
    delete = iter([1, 2])

    def answer_and_delete(method: str, path: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        found = answer(method, path, query, sent)
        if query.get("page") == "3" and (number := next(delete, None)) is not None:
            del server.tasks[number]
        return found

    monkeypatch.setattr(server, "answer", answer_and_delete)
    assert [task["id"] for task in api.tasks(1)] == list(range(3, 61))

    def answer_and_add(method: str, path: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        found = deepcopy(answer(method, path, query, sent))
        found[1]["total"] += 1
        return found

    monkeypatch.setattr(server, "answer", answer_and_add)
    with pytest.raises(UnreachableError, match="are changing faster than they can be read"):
        api.tasks(1)


def test_another_field_is_noticed_after_a_restart(server: RecordedServer, tmp_path: Path) -> None:
    with connected(server, tmp_path / "p"):
        pass
    server.project["label_config"] = CONFIG.replace("$text", "$body")
    with (
        pytest.raises(LabelStudioError, match="shows the field 'body'"),
        connected(server, tmp_path / "p"),
    ):
        pass


def test_a_proxy_is_not_used(server: RecordedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert LabelStudio(server.url, TOKEN).project(1)["id"] == 1


def test_tokens(server: RecordedServer) -> None:
    with pytest.raises(LabelStudioError, match="refuses the API token"):
        LabelStudio(server.url, "0" * 40).project(1)
    with pytest.raises(LabelStudioError, match="refuses the API token"):
        LabelStudio(server.url, "a.wrong.one").project(1)
    personal = LabelStudio(server.url, PERSONAL_TOKEN)
    assert personal.project(1)["id"] == 1
    server.accesses += 1  # the access token has expired
    assert personal.project(1)["id"] == 1
    for token in (None, "", " \n", "two words here", "abc", "ü" * 40):
        with pytest.raises(InvalidValueError, match="API token"):
            checked_token(token)


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://a", "http://", "http://a:b@c", "http://a?b=c", "http://a:port", "//a"]
)
def test_bad_addresses(url: str) -> None:
    with pytest.raises(InvalidValueError, match="--url must be an address such as"):
        checked_url(url)


def test_a_server_that_is_not_there_or_is_something_else(server: RecordedServer) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableError, match="cannot be reached"):
            LabelStudio(f"http://127.0.0.1:{held.getsockname()[1]}", TOKEN).project(1)
    with pytest.raises(InvalidValueError, match=r"--project must be .* 7 is none; there are: 1 \(Mails\)"):
        LabelStudio(server.url, TOKEN).project(7)


OTHER_CONFIGS = {
    "several choices": (CONFIG.replace('choice="single"', 'choice="multiple"'), "allows several choices"),
    "no choices": ('<View><Text name="a" value="$t"/></View>', "it has Text"),
    "another control": (CONFIG.replace("</View>", '<Rating name="r" toName="item"/></View>'), "Text, Choices"),
    "two texts": (CONFIG.replace("</View>", '<Text name="q" value="$b"/></View>'), "not supported"),
    "another name": (CONFIG.replace('toName="item"', 'toName="x"'), "toName of Choices must be 'item'"),
    "no field": (CONFIG.replace("$text", "text"), "must name a field"),
    "one choice": (CONFIG.replace('<Choice value="ham"/>', "").replace('<Choice value="ham" />', ""), "at least 2"),
    "from the task": (CONFIG.replace('choice="single"', 'choice="single" value="$c"'), "depend on the task"),
    "not XML": ("<View>", "cannot be read"),
    "entities": ('<!DOCTYPE x [<!ENTITY a "b">]><View/>', "cannot be read"),
    "audio": (CONFIG.replace("<Text", "<Audio"), "Audio"),
}


@pytest.mark.parametrize("name", OTHER_CONFIGS)
def test_other_configurations_are_refused(name: str) -> None:
    config, message = OTHER_CONFIGS[name]
    with pytest.raises(InvalidValueError, match=message):
        label_config(config)


def test_aliases_are_the_labels() -> None:
    assert label_config(CONFIG.replace('value="spam"', 'value="Spam!" alias="s"')).classes == ("s", "ham")


def test_tables(tmp_path: Path) -> None:
    config = CONFIG.replace("<Text", "<Table").replace("$text", "$row")
    rows = [{"size": k, "task_id": f"c{k % 3}", "label": "x" * (k % 2)} for k in range(20)]
    with served(RecordedServer(rows, config, "row")) as state, connected(state, tmp_path / "p") as (sync, project):
        assert project.settings.columns == ("size", "task_id", "label")
        state.annotate(3, "ham")
        sync.update()
        assert labels(project) == {3: "ham"}
        state.add_task({"row": {"size": 5, "more": 1}})
        sync.update()
        assert project.size == 21
    for value in ([{"a": 1}], "text", {"a": {"b": 1}}):
        with pytest.raises(InvalidValueError, match="must be one row"):
            task_values(label_config(config), [{"id": 1, "data": {"row": value}}])


def test_images_elsewhere_need_features(tmp_path: Path) -> None:
    config = CONFIG.replace("<Text", "<Image").replace("$text", "$image")
    addresses = [f"https://other.example/{k}.png" for k in range(20)]
    told: list[str] = []
    with served(RecordedServer(addresses, config, "image")) as state:
        api = LabelStudio(state.url, TOKEN)
        with pytest.raises(InvalidValueError, match="give features of the tasks"):
            created_project(tmp_path / "p", api, 1)
        assert not (tmp_path / "p").exists()
        np.save(tmp_path / "features.npy", np.random.default_rng(0).normal(size=(20, 3)))
        created_project(tmp_path / "p", api, 1, features=tmp_path / "features.npy").close()
        with connected(state, tmp_path / "p", say=told.append) as (sync, project):
            state.annotate(2, "ham")
            state.add_task({"image": "https://other.example/new.png"})
            sync.update()
            assert labels(project) == {2: "ham"}
            assert project.size == 20
    assert "1 new task cannot be added" in told[0]


# The webhook.


def call_receiver(receiver: WebhookReceiver, body: bytes, headers: dict[str, str], **scope: Any) -> int:
    messages = [
        {"type": "http.request", "body": body[:3], "more_body": True},
        {"type": "http.request", "body": body[3:]},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    about = {"type": "http", "path": "/webhook", "method": "POST", "headers": raw} | scope
    asyncio.run(receiver(about, receive, send))
    return int(sent[0]["status"])


def test_the_webhook_needs_its_secret() -> None:
    came: list[Any] = []
    receiver = WebhookReceiver("s3cret", came.append, most=100)
    right = {SECRET_HEADER: "s3cret"}
    event = json.dumps({"action": "ANNOTATION_CREATED"}).encode()
    assert call_receiver(receiver, event, {}) == 401
    assert call_receiver(receiver, event, {SECRET_HEADER: "other"}) == 401
    assert call_receiver(receiver, event, right, path="/") == 404
    assert call_receiver(receiver, event, right, method="GET") == 405
    assert came == []
    assert call_receiver(receiver, event, right) == 200
    # What is not understood or too large: everything is read again.
    assert call_receiver(receiver, b"no JSON", right) == 200
    assert call_receiver(receiver, b"[1, 2]", right) == 200
    assert call_receiver(receiver, b" " * 1000, right) == 200
    assert came == [{"action": "ANNOTATION_CREATED"}, None, None, None]


def test_webhooks_are_registered_once(server: RecordedServer) -> None:
    api = LabelStudio(server.url, TOKEN)
    other = api.call("POST", "/api/webhooks/", {"url": "http://other.example", "headers": {}})["id"]
    registered_webhook(api, 1, "http://127.0.0.1:1/webhook", "secret")
    number = registered_webhook(api, 1, "http://127.0.0.1:2/webhook", "secret")
    assert set(server.webhooks) == {other, number}
    assert server.webhooks[number]["headers"] == {SECRET_HEADER: "secret"}
    remove_webhooks(api, 1, "secret")
    assert set(server.webhooks) == {other}


def test_a_project_belongs_to_one_of_label_studio(tmp_path: Path) -> None:
    link = project_link(tmp_path, "http://a", 1)
    assert project_link(tmp_path, "http://a", 1) == link
    assert (tmp_path / "label-studio.json").stat().st_mode & 0o077 == 0
    for url, number in (("http://b", 1), ("http://a", 2)):
        with pytest.raises(InvalidValueError, match="belongs to project 1 of http://a"):
            project_link(tmp_path, url, number)
    (tmp_path / "label-studio.json").write_text("{}")
    with pytest.raises(SufficeError, match="is damaged"):
        project_link(tmp_path, "http://a", 1)


# The command.


def command(*arguments: str, token: str | None = TOKEN) -> tuple[Any, str]:
    done = CliRunner().invoke(app, ["label-studio", *arguments], env={TOKEN_VARIABLE: token})
    return done.exception, done.stdout


def test_the_command_reads_and_publishes_once(server: RecordedServer, tmp_path: Path) -> None:
    server.annotate(1, "spam")
    folder = str(tmp_path / "p.suffice")
    options = ("--url", server.url, "--project", "1", "--folder", folder)
    error, out = command(*options, "--once", "--json", "--initial", "5", "--mistake-cost", "20", "--at-most", "5%")
    assert error is None
    assert json.loads(out)["n_labelled"] == 1
    assert "[suffice] Too early to say" in server.project["description"]
    error, out = command(*options, "--once")
    assert error is None
    assert "1 of 60 tasks have a label" in out
    error, _ = command(*options, "--once", "--seed", "3")
    assert "exists already, and --seed is for a new one" in str(error)
    error, out = command(*options, "--remove")
    assert error is None
    assert server.project["description"] == "Ours."
    with open_project(folder) as project:
        assert (project.settings.name, project.settings.initial) == ("Mails", 5)


def test_wrong_use_of_the_command(server: RecordedServer, tmp_path: Path) -> None:
    options = ("--project", "1", "--folder", str(tmp_path / "p"), "--once")
    cases: list[tuple[tuple[str, ...], str | None, str]] = [
        (("--url", server.url, *options), None, "there is no API token"),
        (("--url", server.url, *options), "0" * 40, "refuses the API token"),
        (("--url", "http://127.0.0.1:9", *options), TOKEN, "cannot be reached"),
        (("--url", "nothing", *options), TOKEN, "--url must be"),
        (("--url", server.url, *options, "--project", "7"), TOKEN, "7 is none"),
        (("--url", server.url, *options, "--project", "0"), TOKEN, "1 or more, not 0"),
        (("--url", server.url, *options, "--remove"), TOKEN, "exclude each other"),
        (("--url", server.url, *options, "--token-file", "no such file"), TOKEN, "cannot be read"),
        (("--url", server.url, *options, "--webhook-url", "x"), TOKEN, "--webhook-url must be an address"),
    ]
    for arguments, token, message in cases:
        error, _ = command(*arguments, token=token)
        assert isinstance(error, SufficeError), message
        assert message in str(error)
        assert TOKEN not in str(error)
    server.project["label_config"] = OTHER_CONFIGS["several choices"][0]
    error, _ = command("--url", server.url, *options)
    assert "not supported" in str(error)
    server.project["label_config"] = CONFIG
    server.tasks.clear()
    error, _ = command("--url", server.url, *options)
    assert "import the tasks there first" in str(error)
    assert not (tmp_path / "p").exists()
