"""A password validator in addition to Django's."""

from django.core.exceptions import ValidationError

LEAST = 5


class FewDistinctCharactersValidator:
    """Refuse a password long only by repetition, such as aaaaaaaaaaaa or 121212121212."""

    def validate(self, password: str, user: object = None) -> None:
        if len(set(password)) < LEAST:
            raise ValidationError(self.get_help_text(), code="password_repeats_few_characters")

    def get_help_text(self) -> str:
        return f"Your password must contain at least {LEAST} different characters."
