"""Labelling: what to label next, labels, skips, corrections, and taking back."""

from collections.abc import Callable

from fastapi import APIRouter

from suffice.session.project import WriteReceipt
from suffice.web.desk import AppContext, Context, JsonRoute, cells_of, documented, image_url
from suffice.web.schemas import AskedItem, LabelSent, NextAnswer, NextSent, Receipt, SkipSent, UndoSent

router = APIRouter(prefix="/api", tags=["labelling"], route_class=JsonRoute)

# A person who is alone waits this long for the model to learn their last label, so that the next item is the best one.
_PATIENCE = 0.1


@router.post("/next", responses=documented(415, 507))
def ask_next(sent: NextSent, context: Context) -> NextAnswer:
    """Which items a person is to label next; nobody else is asked for them for a while.

    Items that the person was asked for and did not answer come first, so asking again gives the same ones.
    """
    project = context.project
    if context.is_alone(sent.person):
        context.catch_up(_PATIENCE)
    asked = project.next(sent.person, sent.n, queue=context.background.learning_status.queue)
    items = project.items([each.position for each in asked])
    with project.lock:
        left = project.state().left
    shown = [
        AskedItem(
            item=item.position,
            id=item.id,
            cells=cells_of(item),
            image=image_url(item),
            until=each.until,
            why=each.why,
        )
        for each, item in zip(asked, items, strict=True)
    ]
    return NextAnswer(items=shown, left=left)


@router.post("/labels", responses=documented(404, 409, 415, 507))
def add_label(sent: LabelSent, context: Context) -> Receipt:
    """Label an item; what is acknowledged is on the disk. Sent again under the same request, it is not done again."""
    item = context.require_item(sent.item)
    return _done(context, lambda: context.project.label(item, sent.label, person=sent.person, request=sent.request))


@router.post("/skips", responses=documented(404, 409, 415, 507))
def add_skip(sent: SkipSent, context: Context) -> Receipt:
    """Say that an item cannot be labelled; nobody is asked for it again."""
    item = context.require_item(sent.item)
    return _done(context, lambda: context.project.skip(item, person=sent.person, request=sent.request))


@router.post("/corrections", responses=documented(404, 409, 415, 507))
def add_correction(sent: LabelSent, context: Context) -> Receipt:
    """Change the label that counts of an item that has one."""
    item = context.require_item(sent.item)
    return _done(context, lambda: context.project.correct(item, sent.label, person=sent.person, request=sent.request))


@router.post("/undo", responses=documented(409, 415, 507))
def undo(sent: UndoSent, context: Context) -> Receipt:
    """Take back the newest label, skip or correction of a person; the answer says of which item it was."""
    return _done(context, lambda: context.project.undo(person=sent.person, request=sent.request))


def _done(context: AppContext, write: Callable[[], WriteReceipt]) -> Receipt:
    written = write()
    context.background.wake()
    return Receipt(seq=written.seq, item=written.position, repeated=written.repeated)
