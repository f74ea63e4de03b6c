"""The page in a real browser, with a real server: labelling, alone and together, undisturbed and not."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.events import EventKind
from tests.web.browsing import Server, Watched, served, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser


WORDS = ("win a prize now", "see you at lunch", "free entry text now", "are you home", "urgent claim cash")
ODD = "<script>document.title = 'hacked'</script> & <b>bold</b> 🐌\nsecond line"


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Server]":
    rows = [(f"m{k}", f"{WORDS[k % 5]} {k}", k) for k in range(120)]
    data = write_rows(tmp_path_factory.mktemp("messages") / "messages.csv", ("id", "message", "length"), rows)
    with served(data, "--text", "message", "--id", "id", "--classes", "ham,spam", "--target", "kind") as server:
        yield server


@pytest.mark.parametrize("items", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_items_by_keyboard_with_a_reload_in_the_middle(browser: "Browser", messages: Server, items: int) -> None:
    watched = Watched(browser, messages, "Ann")
    before = len(messages.labels())
    typed = []
    for k in range(items):
        if k == items // 2:
            shown = watched.item()
            watched.settle()
            watched.page.reload()
            assert watched.item() == shown
        key = "12"[k % 3 == 0]
        typed.append((watched.press(key), {"1": "ham", "2": "spam"}[key]))
    watched.said("Recorded: ")
    watched.settle()
    assert messages.labels()[before:] == typed
    assert len({item for item, _ in typed}) == items
    watched.page.wait_for_selector(f"#counter:has-text('{before + items} of 120 labelled')")
    watched.close()


@pytest.mark.slow
def test_a_label_sent_while_the_page_is_reloaded_counts_once(browser: "Browser", messages: Server) -> None:
    watched = Watched(browser, messages, "Rae")
    # The server gets the label, and the page never hears of it.
    watched.page.route("**/api/labels", lambda route: (route.fetch(), route.abort()))
    item = watched.press("2")
    watched.page.wait_for_selector("#saving:has-text('Not yet saved: 1 answer. Retrying.')")
    watched.page.on("dialog", lambda dialog: dialog.accept())
    watched.page.unroute("**/api/labels")
    watched.page.reload()
    watched.said("Saved the pending answers.")
    assert [label for label in messages.labels() if label[0] == item] == [(item, "spam")]
    watched.close(unreachable=True)


@pytest.mark.slow
def test_two_people_at_once_get_different_items(browser: "Browser", messages: Server) -> None:
    before = len(messages.labels())
    first, second = Watched(browser, messages, "Bea"), Watched(browser, messages, "Cem 🌷")
    typed = []
    for k in range(10):
        for watched, person in ((first, "Bea"), (second, "Cem 🌷")):
            assert first.item() != second.item()
            key = "12"[k % 2]
            typed.append((watched.press(key), {"1": "ham", "2": "spam"}[key], person))
    for watched in (first, second):
        watched.settle()
        watched.close()
    made = [(event.item, event.data["label"], event.person) for event in messages.events(EventKind.labelled)]
    assert sorted(made[before:]) == sorted(typed)
    assert len({item for item, _, _ in typed}) == 20


@pytest.mark.slow
def test_skip_undo_and_keys_that_must_do_nothing(browser: "Browser", messages: Server) -> None:
    watched = Watched(browser, messages, "Dot")
    keyboard = watched.page.keyboard
    skipped = watched.press("s")
    watched.said("Skipped.")
    assert messages.events(EventKind.skipped)[-1].item == skipped
    watched.item()
    keyboard.press("u")
    watched.said("Taken back.")
    watched.page.wait_for_selector(f"article[data-ready=true][data-item='{skipped}']")
    # A class that is not there, a key with a modifier, and a key that is held down.
    for key in ("9", "Control+1", "Alt+2"):
        keyboard.press(key)
    assert watched.item() == skipped
    keyboard.down("1")
    watched.page.wait_for_selector(f"article[data-ready=true]:not([data-item='{skipped}'])")
    after = watched.item()
    keyboard.down("1")
    keyboard.up("1")
    watched.settle()
    assert watched.item() == after
    assert messages.labels()[-1] == (skipped, "ham")
    keyboard.press("Control+z")
    watched.page.wait_for_selector(f"article[data-ready=true][data-item='{skipped}']")
    # Both clicks of a double click are meant for one item.
    watched.page.dblclick("button.answer:has-text('spam')")
    watched.settle()
    labelled = messages.labels()
    assert labelled[-1] == (skipped, "spam")
    assert sum(item == skipped for item, _ in labelled) == 2
    # While somebody types, letters are letters.
    watched.go("labels")
    watched.page.fill("#search", "")
    watched.page.type("#search", "su1")
    watched.go("label")
    watched.settle()
    assert messages.labels() == labelled
    watched.close()


#: Answers an item, presses another key as soon as the page changes the item, and returns what the page then says.
#: The clock of the page stands still meanwhile, so that a slow machine cannot make the second key late.
_NEXT_KEY_AT_ONCE = """() => new Promise((resolve) => {
    const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const article = document.querySelector("article[data-item]");
    const first = article.dataset.item;
    const now = performance.now();
    performance.now = () => now;
    new MutationObserver((_, observer) => {
        if (!article.dataset.item || article.dataset.item === first) return;
        observer.disconnect();
        press("2");
        delete performance.now;
        resolve(document.querySelector("#toast.shown").textContent);
    }).observe(article, { attributes: true });
    press("1");
})"""


@pytest.mark.slow
def test_a_key_that_comes_too_soon_is_not_taken_and_the_page_says_so(browser: "Browser", messages: Server) -> None:
    watched = Watched(browser, messages, "Eve")
    before = len(messages.labels())
    first = watched.item()
    said = watched.page.evaluate(_NEXT_KEY_AT_ONCE)
    assert said == "Not recorded: the item had just changed. Answer again."
    watched.settle()
    assert messages.labels()[before:] == [(first, "ham")]
    second = watched.press("2")
    watched.settle()
    assert messages.labels()[before:] == [(first, "ham"), (second, "spam")]
    watched.close()


@pytest.mark.slow
def test_nothing_moves_while_an_answer_is_being_saved(browser: "Browser", messages: Server) -> None:
    watched = Watched(browser, messages, "Fay")
    held: list[Any] = []
    watched.page.route("**/api/labels", lambda route: held.append(route))  # noqa: PLW0108 - a builtin is refused
    places = (
        "['article', '.answers', '#saving'].map((each) => document.querySelector(each)?.getBoundingClientRect().top)"
    )
    watched.press("1")
    before = watched.page.evaluate(places)
    assert watched.page.is_hidden("#saving")
    watched.page.wait_for_selector("#saving:has-text('Saving')")
    assert watched.page.evaluate(places)[:2] == before[:2]
    for route in held:
        route.continue_()
    watched.page.wait_for_selector("#saving", state="hidden")
    watched.settle()
    watched.close()


@pytest.mark.slow
def test_text_is_shown_as_text(browser: "Browser", tmp_path: Path) -> None:
    rows = [(f"<i>{k}</i>", f"{ODD} {WORDS[k % 5]} {k}", "<u>&amp;</u>") for k in range(12)]
    data = write_rows(tmp_path / "odd.csv", ("id", "message", "<b>note</b>"), rows)
    with served(data, "--text", "message", "--id", "id", "--classes", "<b>yes</b>,no 🐌") as server:
        watched = Watched(browser, server, "Eve <i>&")
        item = watched.item()
        assert watched.page.inner_text(".reading") == rows[item][1]
        assert watched.page.inner_text(".item-id") == f"<i>{item}</i>"
        assert watched.page.inner_text("button.answer >> nth=0").split() == ["1", "<b>yes</b>"]
        assert watched.page.inner_text("#person-name") == "Eve <i>&"
        watched.press("1")
        watched.said("Recorded: <b>yes</b>.")
        watched.go("labels")
        watched.page.wait_for_selector("tr:has-text('<script>document.title'):has-text('Eve <i>&')")
        watched.page.click("tr .id button")
        assert watched.page.inner_text("dialog .reading") == rows[item][1]
        assert not watched.page.query_selector_all("main b, main i, main u, dialog b, dialog i, dialog u")
        assert "hacked" not in watched.page.title()
        assert server.labels() == [(item, "<b>yes</b>")]
        watched.close()


@pytest.mark.slow
def test_a_server_that_is_killed_and_started_again(browser: "Browser", tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", ("id", "size"), [(f"row {k}", k % 9) for k in range(40)])
    with served(data, "--id", "id", "--classes", "small,large") as server:
        watched = Watched(browser, server, "Fay")
        first = watched.press("1")
        watched.settle()
        server.kill()
        second = watched.item()
        watched.page.keyboard.press("2")
        watched.page.wait_for_selector("#saving:has-text('Not yet saved: 1 answer. Retrying.')")
        # Nothing counts as recorded before the server says so.
        assert "Recorded: large." not in watched.page.inner_text("#toast")
        assert watched.page.inner_text("#counter") == "1 of 40 labelled"
        # One more was ready; then there is nothing to show but what has happened.
        third = watched.item()
        watched.page.keyboard.press("1")
        watched.page.wait_for_selector("article:has-text('2 answers of yours wait in this tab')")
        server.start()
        watched.page.wait_for_selector("#saving", state="hidden")
        watched.page.wait_for_selector("#counter:has-text('3 of 40 labelled')")
        assert watched.item() not in {first, second, third}
        assert server.labels() == [(first, "small"), (second, "large"), (third, "small")]
        watched.close(unreachable=True)
