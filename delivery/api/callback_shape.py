"""The shape of a callback in answers, without its token."""

from typing import get_args

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.models import Callback
from delivery.models.message import public_id
from delivery.publishing.callbacks import State, callback_state


class CallbackSerializer(serializers.ModelSerializer[Callback]):
    """The callback of one group of a QUEUE message: `answer` goes to `url`.

    `hop` is the length of the chain of callbacks, this one included.
    """

    queue_group = serializers.IntegerField()
    state = serializers.SerializerMethodField()
    hop = serializers.IntegerField()
    answer = serializers.SerializerMethodField(help_text="msg_…")

    class Meta:
        model = Callback
        fields = ["queue_group", "state", "url", "hop", "expires_at", "answered_at", "answer"]

    @extend_schema_field({"type": "string", "enum": list(get_args(State))})
    def get_state(self, callback: Callback) -> str:
        return callback_state(callback, now=timezone.now())

    def get_answer(self, callback: Callback) -> str | None:
        return None if callback.answer_id is None else public_id(callback.answer_id)
