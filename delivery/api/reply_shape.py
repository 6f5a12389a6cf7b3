"""The shape of a reply in answers."""

from rest_framework import serializers

from delivery.models import Reply
from delivery.models.message import public_id


class ReplySerializer(serializers.ModelSerializer[Reply]):
    """The reply to one delivery of a message that was published with `ReplyTo`."""

    delivery = serializers.IntegerField(source="delivery_id")
    reply = serializers.SerializerMethodField(help_text="msg_…")

    class Meta:
        model = Reply
        fields = ["delivery", "reply", "replied_at"]

    def get_reply(self, reply: Reply) -> str | None:
        return None if reply.reply_id is None else public_id(reply.reply_id)
