"""Policies in the console: built-in ones, copies, refusals at their field, and plain words."""

import pytest
from django.test import Client

from delivery.console.policies.words import policy_sentences
from subscriptions.models import Action, InDoubt, Policy
from tests.unit.delivery.console.configuration.test_log import ROOT


class TestPolicies:
    @pytest.fixture
    def built_in(self, db: None) -> Policy:
        policy, _ = Policy.objects.get_or_create(name="strict", defaults={"is_built_in": True})
        return policy

    def test_a_built_in_one_cannot_be_changed_or_deleted(
        self, ann: Client, built_in: Policy
    ) -> None:
        address = f"{ROOT}/policy/{built_in.pk}"
        assert ann.post(f"{address}/change/", {"name": "mine"}).status_code == 403
        assert ann.post(f"{address}/delete/", {"post": "yes"}).status_code == 403

    def test_a_copy_form_starts_with_the_originals_values(
        self, ann: Client, built_in: Policy
    ) -> None:
        count = Policy.objects.count()
        form = ann.get(f"{ROOT}/policy/add/?copy={built_in.pk}").context["adminform"].form
        assert form.initial["name"] == "strict-copy"
        assert form.initial["on_server_error"] == built_in.on_server_error
        assert Policy.objects.count() == count

    def test_is_described_in_plain_words(self) -> None:
        policy = Policy(
            on_server_error=Action.BLOCK, on_unavailable=Action.BLOCK, in_doubt=InDoubt.HOLD
        )
        words = policy_sentences(policy)
        assert words[2].startswith("When it answers any 5xx: no later message is sent")
        assert "held as IN_DOUBT" in words[-1]
