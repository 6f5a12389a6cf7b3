"""Errors answered by no view, in the format of the address's clients."""

from django.http import HttpResponse

from delivery.incoming.problems import Problem
from delivery.vendors.teamforge.addresses import is_teamforge_address
from delivery.vendors.teamforge.envelope import problem_in_envelope


def refusal_of(path: str, problem: Problem) -> HttpResponse:
    """Return TeamForge's envelope at TeamForge's addresses, elsewhere the problem document."""
    return problem_in_envelope(problem) if is_teamforge_address(path) else problem.response()
