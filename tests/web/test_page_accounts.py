"""The page where there are accounts: signing in by a password or a link, and what each role sees."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.create import create_project, open_project
from suffice.project.events import EventKind
from tests.web.browsing import Server, Watched, served
from tests.web.test_accessibility import require_axe, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PASSWORD = "correct horse"
TABS = {
    "label": ["Label", "Progress", "Labels"],
    "review": ["Label", "Progress", "Labels", "Review"],
    "manage": ["Label", "Progress", "Labels", "Review", "Export", "Settings"],
}


class Member(Watched):
    """A page of somebody with an account; it opens the address of the server, or a link with a token."""

    def __init__(self, browser: "Browser", server: Server, token: str = "", **options: Any) -> None:
        super().__init__(browser, server, token, **options)

    def enter(self, person: str) -> None:
        self.page.goto(f"{self.server.url}?token={person}" if person else self.server.url)
        self.page.wait_for_selector("article[data-ready=true], #sign-in-name")

    def sign_in(self, person: str, password: str = PASSWORD) -> None:
        self.page.fill("#sign-in-name", person)
        self.page.fill("#sign-in-password", password)
        self.page.keyboard.press("Enter")

    def tabs(self) -> list[str]:
        return [each.inner_text() for each in self.page.query_selector_all(".tabs a") if each.is_visible()]

    def close(self, *, unreachable: bool = False) -> None:
        # A browser itself notes each refusal.
        self.complaints = [text for text in self.complaints if "401" not in text]
        super().close(unreachable=unreachable)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    place = tmp_path / "texts.suffice"
    texts = [f"text number {k} of {'many' if k % 3 else 'few'} words" for k in range(40)]
    with create_project(place, texts, classes=["many", "few"]) as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)
    with served(place) as found:
        yield found


def link_for(server: Server, name: str, role: Any) -> str:
    with open_project(server.project) as project:
        return project.add_account(name, role=role, person="me") or ""


@pytest.mark.slow
def test_signing_in_by_a_password_labelling_and_signing_out(server: Server, browser: "Browser") -> None:
    member = Member(browser, server)
    page = member.page
    assert page.is_visible("#sign-in")
    assert page.title() == "Sign in · suffice"
    assert page.evaluate("document.activeElement.id") == "sign-in-name"
    assert not page.is_visible(".tabs")
    assert not page.is_visible("#person")
    member.sign_in("Ann", " ")
    page.wait_for_selector("#sign-in-problem:has-text('Enter both')")
    member.sign_in("Ann", "wrong password")
    page.wait_for_selector("#sign-in-problem:has-text('The name or the password is wrong.')")
    assert page.evaluate("document.activeElement.id") == "sign-in-password"
    member.sign_in("Eve")
    page.wait_for_selector("#sign-in-problem:has-text('The name or the password is wrong.')")
    # However it is written, the name is that of the account.
    member.sign_in("ann")
    item = member.press("1")
    assert page.inner_text("#person-name") == "Ann"
    assert member.tabs() == TABS["manage"]
    assert not page.is_visible("#sign-in")
    page.click("#person")
    assert page.query_selector("dialog") is None
    member.settle()
    (label,) = server.events(EventKind.labelled)
    assert (label.item, label.person) == (item, "Ann")
    # It outlives a reload.
    page.reload()
    member.item()
    kept = json.dumps(page.evaluate("[{...localStorage}, {...sessionStorage}, document.cookie]"))
    assert PASSWORD not in kept
    assert "suffice_session" not in kept
    page.click("#sign-out")
    page.wait_for_selector("#sign-in-name")
    assert not page.is_visible("article")
    page.reload()
    page.wait_for_selector("#sign-in-name")
    member.close()


@pytest.mark.slow
@pytest.mark.parametrize("role", ["label", "review"])
def test_a_link_signs_in_and_the_page_hides_what_the_role_cannot_do(
    server: Server, browser: "Browser", role: str
) -> None:
    with open_project(server.project) as project:
        project.label(0, "few", person="Ann")
    member = Member(browser, server, link_for(server, "Bob", role), viewport={"width": 390, "height": 800})
    page = member.page
    assert page.url == server.url
    assert page.inner_text("#person-name") == "Bob"
    assert member.tabs() == TABS[role]
    mine = member.press("1")
    member.settle()
    member.go("progress")
    member.go("labels")
    rows = {0, mine} if role == "review" else {mine}
    member.until(f"document.querySelectorAll('tr[data-item]').length === {len(rows)}")
    assert {int(each.get_attribute("data-item") or -1) for each in page.query_selector_all("tr[data-item]")} == rows
    assert page.is_visible("text=Disagreed") == (role == "review")
    page.click(f"tr[data-item='{mine}'] >> text=Correct")
    page.select_option(f"tr[data-item='{mine}'] select", "few")
    page.click(f"tr[data-item='{mine}'] >> text=Save")
    member.said("Corrected to few")
    for view in ("review", "export", "settings"):
        page.goto(f"{server.url}#{view}")
        shown = "review" if (view, role) == ("review", "review") else "label"
        page.wait_for_selector(f"#view-{shown}:visible")
    (corrected,) = server.events(EventKind.corrected)
    assert (corrected.item, corrected.person) == (mine, "Bob")
    member.close()


@pytest.mark.slow
def test_whoever_is_removed_is_signed_out_and_loses_no_answer(server: Server, browser: "Browser") -> None:
    member = Member(browser, server, link_for(server, "Bob", "label"))
    page = member.page
    item = member.item()
    with open_project(server.project) as project:
        project.remove_account("Bob", person="me")
        page.keyboard.press("1")
        page.wait_for_selector("#sign-in-name")
        assert not page.is_visible("article")
        assert server.labels() == []
        # Somebody else at this browser does not send it under another name.
        member.sign_in("Ann")
        member.item()
        page.wait_for_selector("#saving:has-text('Bob must sign in here again')")
        member.press("2")
        member.until(
            "JSON.parse(sessionStorage[Object.keys(sessionStorage).find((k) => k.includes('outbox'))]).length === 1"
        )
        assert [(each.person, each.data["label"]) for each in server.events(EventKind.labelled)] == [("Ann", "few")]
        project.add_account("Bob", role="label", person="me", password=PASSWORD)
        project.reset_account("Ann", person="me", password="another password")
        page.wait_for_selector("#sign-in-name")
        page.wait_for_selector("#sign-in:has-text('1 answer of Bob waits in this tab')")
        member.sign_in("Bob")
        member.item()
        member.settle()
    labels = [(each.person, each.item, each.data["label"]) for each in server.events(EventKind.labelled)]
    assert labels[1:] == [("Bob", item, "many")]
    member.close()


@pytest.mark.slow
def test_a_link_in_another_tab_signs_in_here_too(server: Server, browser: "Browser") -> None:
    member = Member(browser, server)
    other = member.page.context.new_page()
    other.goto(f"{server.url}?token={link_for(server, 'Bob', 'label')}")
    other.close()
    member.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    member.item()
    assert member.page.inner_text("#person-name") == "Bob"
    member.close()


@pytest.mark.slow
def test_another_role_changes_the_page(server: Server, browser: "Browser") -> None:
    member = Member(browser, server, link_for(server, "Bob", "label"))
    assert member.tabs() == TABS["label"]
    for role in ("manage", "review"):
        with open_project(server.project) as project:
            project.change_role("Bob", role, person="me")
        state = "visible" if role == "manage" else "hidden"
        member.page.wait_for_selector(".tabs a[data-view=settings]", state=state)  # type: ignore[arg-type]
        member.page.wait_for_selector(".tabs a[data-view=review]")
        member.item()
        assert member.tabs() == TABS[role]
    member.close()


@pytest.mark.slow
def test_the_first_account_asks_people_who_are_there_to_sign_in(browser: "Browser", tmp_path: Path) -> None:
    place = tmp_path / "texts.suffice"
    create_project(place, [f"text {k}" for k in range(20)], classes=["a", "b"]).close()
    with served(place, "--token") as server:
        watched = Watched(browser, server, "Zoe")
        watched.press("1")
        watched.settle()
        assert not watched.page.is_visible("#sign-out")
        with open_project(place) as project:
            project.add_account("Ann", role="manage", person="me", password=PASSWORD)
        watched.page.wait_for_selector("#sign-in-name")
        # The server's own link lets the owner in, under a name of their choice.
        watched.page.goto(server.link)
        assert watched.item() >= 0
        assert watched.page.inner_text("#person-name") == "Zoe"
        assert watched.page.is_visible("#sign-out")
        watched.press("2")
        watched.settle()
        assert [each.person for each in server.events(EventKind.labelled)] == ["Zoe", "Zoe"]
        watched.page.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("dark", 390),
        ("light", 1280),
    ],
)
def test_neither_form_nor_header_has_a_violation(server: Server, browser: "Browser", scheme: str, width: int) -> None:
    require_axe()
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}, "bypass_csp": True}
    member = Member(browser, server, **options)
    page = member.page
    found = {"form": violations(page)}
    member.sign_in("Ann", "wrong password")
    page.wait_for_selector("#sign-in-problem:not(:empty)")
    found["wrong"] = violations(page)
    member.sign_in("Ann")
    member.item()
    found["signed in"] = violations(page)
    # Nothing is wider than the screen.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    other = Member(browser, server, link_for(server, "Bartholomew with a very long name", "label"), **options)
    found["label"] = violations(other.page)
    assert other.page.evaluate("document.documentElement.scrollWidth") <= width
    other.page.close()
    assert {part: each for part, each in found.items() if each} == {}
