"""Three people label the same items in a real browser, and a fourth one settles what they differ on."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.project.create import create_project, open_project
from suffice.project.labelling_project import Project
from tests.web.browsing import Server, Watched, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

N = 260
TRUTH = ["large" if (k * 37) % 100 > 50 else "small" for k in range(N)]


def label_all(project: Project, answers: dict[str, float], first: int, *, seed: int = 0) -> None:
    """Each person labels the items before ``first``, right with a probability and otherwise at random."""
    rng = np.random.default_rng(seed)
    for person, right in answers.items():
        drawn = rng.choice(["small", "large"], first)
        given = np.where(rng.random(first) < right, TRUTH[:first], drawn)
        rows = {"id": [f"row {k}" for k in range(first)], "label": given.tolist()}
        project.import_labels(rows, label="label", person=person, id="id", conflicts="opinion")


@pytest.fixture
def links(tmp_path: Path) -> dict[str, str]:
    """A project with four accounts: the token of the link of each."""
    place = tmp_path / "sizes.suffice"
    data = {"id": [f"row {k}" for k in range(N)], "size": [(k * 37) % 100 for k in range(N)]}
    with create_project(place, data, id="id", classes=["small", "large"], overlap=1.0, opinions=3) as project:
        label_all(project, {"Ann": 1.0, "Bob": 0.95, "Eve": 0.0}, 240)
        tokens = {name: project.add_account(name, role="label", person="me") for name in ("Ann", "Bob", "Eve")}
        tokens["Zoe"] = project.add_account("Zoe", role="review", person="me")
    return {name: token or "" for name, token in tokens.items()}


@pytest.fixture
def server(tmp_path: Path, links: dict[str, str]) -> Iterator[Server]:
    assert links
    with served(tmp_path / "sizes.suffice") as found:
        yield found


class Member(Watched):
    """A page of somebody with an account, opened by a link."""

    def enter(self, person: str) -> None:
        self.page.goto(f"{self.server.url}?token={person}")
        self.item()


@pytest.mark.slow
def test_three_people_label_an_item_and_a_reviewer_settles_it(
    browser: "Browser", server: Server, links: dict[str, str]
) -> None:
    shared = set()
    for person, key in (("Ann", "1"), ("Bob", "2"), ("Eve", "2")):
        with closing(Member(browser, server, links[person])) as member:
            shared.add(member.press(key))
            member.settle()
            if person == "Ann":
                # Who labels does not see what is known about people.
                member.go("progress")
                member.page.wait_for_selector("#view-progress .people:has-text('Eve')")
                assert "by chance" not in member.page.inner_text("#view-progress")
                assert not any("api/people" in address for address in member.addresses)
    (item,) = shared
    with closing(Member(browser, server, links["Zoe"], viewport={"width": 360, "height": 800})) as reviewer:
        page = reviewer.page
        reviewer.go("progress")
        page.wait_for_selector(".people > div:has-text('Eve') .by-chance")
        assert page.locator(".by-chance").count() == 1
        assert "3 people labelled the same 241 items" in page.inner_text("#view-progress")
        assert "Krippendorff's alpha is" in page.inner_text("#view-progress")
        page.click("summary:has-text('What the numbers of people mean')")
        assert "at most 1\u00a0% of projects" in page.inner_text("#view-progress")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        reviewer.go("review")
        page.click("#view-review [data-kind=unresolved]")
        page.wait_for_selector(f"#view-review article[data-item='{item}']")
        # The newest disagreement is first.
        first, second = page.query_selector_all(".sides > div")
        assert "Bob, Eve" in first.inner_text()
        assert "2 of 3" in first.inner_text()
        assert "Ann" in second.inner_text()
        assert "small counts. Most people say large." in page.inner_text(".said-of")
        page.keyboard.press("2")
        reviewer.said("Corrected to large")
        reviewer.settle()
    with open_project(server.project) as project:
        assert project.state().label_of(item) == "large"
        assert [each.label for each in project.state().acts.opinions(item)] == ["small", "large", "large"]
