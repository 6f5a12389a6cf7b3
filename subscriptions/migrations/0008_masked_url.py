"""URLs in texts that statements write for everybody are masked, as in Python."""

from django.db import migrations

from subscriptions.values.shown_addresses import LONGEST_WORD, MASK

CREATE = f"""
CREATE FUNCTION subscriptions_masked_url(url text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(
    regexp_replace(url, '(?<!/)/[^/?]{{{LONGEST_WORD + 1},}}', '/{MASK}', 'g'), '[?].*', '?{MASK}'
)
"""


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0007_sign_in_doors")]

    operations = [migrations.RunSQL(CREATE, "DROP FUNCTION subscriptions_masked_url(text)")]
