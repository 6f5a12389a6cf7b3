"""Template filters and tags of the console: times, rates, statuses."""

from datetime import datetime

from django import template
from django.contrib.auth.models import AnonymousUser
from django.template import Context, Node, NodeList
from django.template.base import FilterExpression, Parser, Token, VariableNode
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.console import navigation
from delivery.console.health import sparkline
from delivery.console.health.recent import RecentHealth
from delivery.console.holding import buttons
from delivery.console.lanes import strip_blocks as blocks
from delivery.console.lanes.strips import Strip
from delivery.console.messages.trace_event import Event
from delivery.console.shared import labels, links, times
from delivery.console.shared.addresses import address_for
from delivery.console.shared.state_cell import state_cell
from delivery.standing.bounded_counts import Bounded
from delivery.standing.vocabulary import Standing
from subscriptions.values.shown_addresses import secret_address_key
from subscriptions.values.times import largest_unit

register = template.Library()


class PanelNode(Node):
    """A section with a heading."""

    child_nodelists = ("heading", "content")

    def __init__(self, name: FilterExpression, *, heading: NodeList, content: NodeList) -> None:
        self.name, self.heading, self.content = name, heading, content

    def render(self, context: Context) -> SafeString:
        return format_html(
            '<section class="inturn-panel" aria-labelledby="{0}-title">'
            '<h2 id="{0}-title" class="inturn-panel-title">{1}</h2>{2}</section>',
            self.name.resolve(context),
            self.heading.render(context),
            self.content.render(context),
        )


@register.simple_tag(takes_context=True)
def receiver_address(context: Context, text: str | None) -> str:
    """An endpoint, a URL or a text with URLs, as the user may see it."""
    user = getattr(context.get("request"), "user", None) or AnonymousUser()
    return address_for(user, text or "")


@register.filter
def url_key(url: str) -> str:
    """The id of a URL in addresses of the console, where the URL itself could be read."""
    return secret_address_key(url)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    return times.ago(moment, now=timezone.now())


@register.filter
def due(moment: datetime | None) -> SafeString | str:
    """The time of a future event; once it has passed, the text is `due`, not `ago`."""
    return times.due(moment, now=timezone.now())


@register.filter
def age(moment: datetime | None) -> str:
    """The time since a moment in a single unit and without "ago", for large type: `3 min`."""
    return largest_unit(timezone.now() - moment) if moment else "–"


@register.filter
def exact(moment: datetime) -> str:
    """The text alone, for titles."""
    return times.exact(moment)


@register.filter
def stamp(moment: datetime) -> SafeString:
    return times.stamp(moment)


@register.filter
def minute(moment: datetime) -> SafeString:
    return times.minute(moment)


@register.filter
def with_times(text: str) -> SafeString:
    return times.with_times(text)


@register.filter
def after(event: Event, published_at: datetime) -> str:
    """The time of an event since the publication of the message."""
    return event.after(published_at)


@register.filter
def linked(text: str) -> SafeString:
    """The text, escaped, with links where it names messages, deliveries and jobs."""
    return links.linked(text)


@register.simple_tag
def address(view_name: str, *ids: int) -> str:
    """The address of a view of rows, for templates included many times."""
    return links.address(view_name, *ids)


@register.filter
def grouped(number: int) -> str:
    return f"{number:,}"


@register.filter
def rate(per_second: float) -> str:
    if per_second == 0:
        return "0"
    return (
        f"{per_second:.2f}"
        if per_second < 1
        else f"{per_second:,.1f}"
        if per_second < 10
        else f"{per_second:,.0f}"
    )


@register.filter
def milliseconds(number: int | None) -> str:
    return labels.milliseconds(number)


@register.filter
def status(name: str) -> SafeString:
    return labels.label(name)


@register.simple_tag
def state_of(standing: Standing) -> SafeString:
    """How a thing stands, with its cause on a second line."""
    return state_cell(standing, now=timezone.now())


@register.filter
def outcome(name: str) -> SafeString:
    """The label of an attempt's outcome; all outcomes except success are shown as failures."""
    return labels.label(name, tone=labels.TONES.get(name, "bad"))


@register.simple_tag
def health_cell(health: RecentHealth) -> SafeString:
    return sparkline.health_cell(health)


@register.simple_tag
def day_of(health: RecentHealth) -> SafeString:
    return sparkline.sparkline_in_detail(health, height=64)


@register.simple_tag
def strip_blocks(strip: Strip) -> SafeString:
    return blocks.strip_blocks(strip, now=timezone.now())


@register.simple_tag
def stop_buttons(owner: buttons.Owner) -> SafeString:
    return buttons.stop_buttons(owner)


@register.simple_tag
def toggle_buttons(owner: buttons.Owner, backlog: Bounded | None, cost: str) -> SafeString:
    return buttons.toggle_buttons(owner, backlog=backlog, cost=cost)


@register.tag
def panel(parser: Parser, token: Token) -> PanelNode:
    """A section with a heading: `{% panel "name" "Heading" %}…{% endpanel %}`.

    A heading of more than words is the text up to `{% content %}`.
    """
    name, *heading = (parser.compile_filter(bit) for bit in token.split_contents()[1:])
    if heading:
        nodes = NodeList([VariableNode(heading[0])])
    else:
        nodes = parser.parse(("content",))
        parser.delete_first_token()
    content = parser.parse(("endpanel",))
    parser.delete_first_token()
    return PanelNode(name, heading=nodes, content=content)


@register.simple_block_tag
def fact(content: str, name: str) -> SafeString:
    """A value with its name, in a `dl` of the class `inturn-facts`."""
    return format_html("<div><dt>{}</dt><dd>{}</dd></div>", name, content)


@register.simple_tag
def columns(*names: str, unseen: str = "") -> SafeString:
    """The head of a table; the last column, of buttons, may have a name for screen readers only."""
    heads = format_html_join("", '<th scope="col">{}</th>', ((name,) for name in names))
    if unseen:
        heads += format_html('<th scope="col"><span class="inturn-unseen">{}</span></th>', unseen)
    return format_html("<thead><tr>{}</tr></thead>", heads)


@register.simple_tag
def refreshes(
    part: str, *, seconds: int, others: str = "", address: str = "", only_if: bool = True
) -> SafeString:
    """The attributes of a self-replacing element, with `others`, every few seconds.

    It is in the block `refreshed` or `refreshed_too` of a page. The new elements come from the
    page at `address`, by default the address in the browser. Without `only_if` the element is
    refreshed no more.
    """
    if not only_if:
        return format_html('id="{}"', part)
    return format_html(
        'id="{0}" hx-get="{1}" hx-trigger="every {2}s" hx-select="#{0}" hx-swap="outerHTML"{3}',
        part,
        address,
        seconds,
        format_html(' hx-select-oob="{}"', others) if others else "",
    )


@register.simple_tag(takes_context=True)
def breadcrumbs(context: template.Context) -> list[navigation.Crumb]:
    """The pages above the current one, with links; empty for a page outside the sidebar."""
    return navigation.breadcrumbs_of(
        view_name=str(context.get("view_name") or ""),
        original=context.get("original"),
        title=str(context.get("title", "")),
    )
