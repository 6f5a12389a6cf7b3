"""Template tags of the lists: the bar of filters above them, and their saved views."""

from django import template
from django.contrib.admin.views.main import ChangeList
from django.template import Context

from delivery.console.saved_views import views
from delivery.console.shared import filter_bar

register = template.Library()


@register.simple_tag
def active_chips(changelist: ChangeList) -> list[filter_bar.Chip]:
    return filter_bar.active_chips(changelist)


@register.simple_tag
def filter_mistakes(changelist: ChangeList) -> list[str]:
    return filter_bar.mistakes(changelist)


@register.simple_tag
def kept_parameters(changelist: ChangeList) -> list[tuple[str, str]]:
    return filter_bar.kept_parameters(changelist)


@register.simple_tag(takes_context=True)
def saved_views(context: Context, changelist: ChangeList) -> views.ShownViews:
    return views.shown_views(context["request"].user, changelist)
