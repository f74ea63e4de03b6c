"""The sender of a request to a project with accounts, and what each role may do."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from starlette.exceptions import HTTPException

from suffice.project.accounts import Account, Role, folded, permits

#: The role that each route needs if there are accounts. A route that is not listed needs ``manage``.
ROUTE_ROLES: Final[dict[tuple[str, str], Role]] = {
    ("GET", "/api/project"): "label",
    ("GET", "/api/status"): "label",
    ("GET", "/api/labels"): "label",
    ("GET", "/api/items"): "label",
    ("GET", "/api/items/{item}"): "label",
    ("GET", "/api/items/{item}/image"): "label",
    ("POST", "/api/next"): "label",
    ("POST", "/api/labels"): "label",
    ("POST", "/api/skips"): "label",
    ("POST", "/api/unsure"): "label",
    ("POST", "/api/corrections"): "label",
    ("POST", "/api/undo"): "label",
    ("POST", "/api/predictions"): "label",
    ("GET", "/api/review"): "review",
    ("GET", "/api/people"): "review",
    ("POST", "/api/confirmations"): "review",
    ("GET", "/api/settings"): "manage",
    ("POST", "/api/settings"): "manage",
    ("POST", "/api/classes"): "manage",
    ("POST", "/api/model"): "manage",
    ("POST", "/api/imports"): "manage",
    ("POST", "/api/items"): "manage",
    ("GET", "/api/checks/offers"): "manage",
    ("GET", "/api/checks/recall-offers"): "manage",
    ("GET", "/api/checks/sequential-offer"): "manage",
    ("POST", "/api/checks"): "manage",
    ("POST", "/api/checks/abort"): "manage",
    ("GET", "/api/export/labels"): "manage",
    ("GET", "/api/export/skipped"): "manage",
    ("GET", "/api/export/predictions"): "manage",
    ("GET", "/api/export/checked-predictions"): "manage",
    ("GET", "/api/export/guarantee"): "manage",
    ("GET", "/api/export/rows"): "manage",
    ("GET", "/api/final"): "manage",
    ("GET", "/api/final/statement"): "manage",
    ("GET", "/api/checks/statement"): "manage",
    ("GET", "/api/report"): "manage",
}


@dataclass(frozen=True)
class Visitor:
    """A signed-in person, if there are accounts.

    Attributes:
        account: The account; None for the owner, who came by the server's own token.
        csrf: What their page sends with everything that changes something.
    """

    account: Account | None
    csrf: str = field(repr=False)

    @property
    def name(self) -> str | None:
        """Name of the account; None for the owner."""
        return None if self.account is None else self.account.name

    @property
    def role(self) -> Role:
        """What they may do. The owner may do everything."""
        return "manage" if self.account is None else self.account.role

    def require(self, method: str, route: str, person: object, accounts: Iterable[Account]) -> None:
        """Raise an error for actions that the role does not allow, and for requests in the name of another person.

        Args:
            method: The HTTP method.
            route: The route, as in :data:`ROUTE_ROLES`.
            person: The name that is sent; None if there is none.
            accounts: All accounts.

        Raises:
            HTTPException: 403.
        """
        needed = ROUTE_ROLES.get((method, route), "manage")
        if not permits(self.role, needed):
            raise HTTPException(
                403,
                f"this needs the role {needed}, and your account has the role {self.role}; ask somebody who manages "
                "the project",
            )
        if not isinstance(person, str):
            return
        if self.name is not None and person.strip() != self.name:
            raise HTTPException(403, f"you are signed in as {self.name!r}, so person must be that name")
        # The name of an account can be used only by the person who has signed in to it.
        if self.name is None and any(folded(person) == folded(each.name) for each in accounts):
            raise HTTPException(
                403, f"{person.strip()!r} is the name of an account; sign in to use it, or take another"
            )
