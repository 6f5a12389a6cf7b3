"""Django's settings; `config.env` supplies the values of the installation."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

import environ
from django.templatetags.static import static

from config import env
from config.static_sources import sources_digest
from config.up import clusters
from config.version import version

ENVIRONMENT = env.read_environment()
VERSION = version()
# Of every request to an endpoint.
USER_AGENT = f"Inturn/{VERSION}"
# A connection whose database machine vanished fails within about ten seconds: while connecting,
# while idle or waiting for an answer (TCP keepalives), and while sent data is not acknowledged (the
# user time-out, in milliseconds, where the system has it, because keepalives do not run then). All
# connections use these: see `delivery.database.connections.connection_parameters`. Non-TCP sockets
# ignore them.
NOTICES_VANISHED = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

BASE_DIR = env.ASSETS
SECRET_KEY = ENVIRONMENT.secret_key
DEBUG = ENVIRONMENT.debug
ALLOWED_HOSTS = ENVIRONMENT.allowed_hosts

INSTALLED_APPS = [
    "config",
    "subscriptions",
    "delivery",
    # Without the app replacing the admin site: ours is `delivery.console.site`.
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "delivery.console.apps.ConsoleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.forms",
    "django_q",
    "rest_framework",
    "drf_spectacular",
]

MIDDLEWARE = [
    "config.web.metrics.measure",
    "config.web.health.answer_any_host",
    "django.middleware.security.SecurityMiddleware",
    "config.web.middleware.PagePolicy",
    "config.web.middleware.StaticFiles",
    "config.web.middleware.Compression",
    "config.web.middleware.Sessions",
    "django.middleware.common.CommonMiddleware",
    "config.web.middleware.Csrf",
    "config.web.middleware.Authentication",
    "config.web.middleware.Messages",
    "config.web.middleware.Frames",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
# No redirects to an address with a slash: they would lose the body of a publisher's POST.
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"  # `templates` may replace widgets, too.


# Plans must not depend on statistics, which a young or busy table may lack: by default PostgreSQL
# scans a whole table it believes to be short to settle one delivery. Generic plans also avoid
# planning a prepared statement again. Queries without an index still scan.
WALKS_INDEXES = (
    "-c enable_seqscan=off",
    "-c enable_hashjoin=off",
    "-c enable_mergejoin=off",
    "-c plan_cache_mode=force_generic_plan",
    # Before PostgreSQL 18 an unavoidable scan has such a high cost estimate that JIT would compile
    # it.
    "-c jit=off",
)


def _database(url: str) -> dict[str, Any]:
    # Commands without a server, such as `up` itself, have no URL, but Django requires an engine.
    parsed: dict[str, Any] = environ.Env.db_url_config(
        url or "postgresql://inturn@127.0.0.1:1/inturn"
    )
    extra = parsed.get("OPTIONS", {})
    options = " ".join(filter(None, (*WALKS_INDEXES, extra.get("options", ""))))
    return parsed | {
        "ENGINE": "django.db.backends.postgresql",
        "OPTIONS": NOTICES_VANISHED | extra | {"options": options},
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


DATABASES = {"default": _database(ENVIRONMENT.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "subscriptions.passwords.FewDistinctCharactersValidator"},
]

LANGUAGE_CODE = "en-us"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = ENVIRONMENT.home / "static" / sources_digest()
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {"staticfiles": {"BACKEND": "config.web.static_files.HashedFiles"}}

COOKIE_PREFIX = ENVIRONMENT.cookie_prefix
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}session", f"{COOKIE_PREFIX}csrf"
MESSAGE_STORAGE = "config.web.cookies.MessageStorage"
# A working day: a console left open requires a new sign-in the next morning.
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
_BASE = urlsplit(ENVIRONMENT.base_url)
CSRF_TRUSTED_ORIGINS = [f"{_BASE.scheme}://{_BASE.netloc.lower()}"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _BASE.scheme == "https"
# If our server has no TLS files, a proxy serves https; without a proxy, any client could set this
# header.
_HAS_PROXY = _BASE.scheme == "https" and ENVIRONMENT.tls is None
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HAS_PROXY else None
# A year, which browsers' preload lists require.
SECURE_HSTS_SECONDS = 365 * 86_400 if _BASE.scheme == "https" else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        # data: for the small icons in the styles of Unfold and of Django's admin.
        "img-src": ["'self'", "data:"],
        # No inline script anywhere. Unfold uses Alpine, which compiles the expressions in its
        # attributes with eval.
        "script-src": ["'self'", "'unsafe-eval'"],
        # A single inline style: the <style> of theme colours, which Unfold writes into each page.
        # It follows from UNFOLD["COLORS"] and Unfold's version: when either changes,
        # tests/unit/delivery/console/shared/test_base_security.py reports the new hash.
        "style-src": ["'self'", "'sha256-ZA8xFkNGfuCIDsU2/wdq53EJHJ6dhQwSiWAyWQftvRs='"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    },
}

# Our own view reads the body of a publish, and answers 413 at our limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(ENVIRONMENT.max_message_bytes * 20, 20 * 1024 * 1024)
# Each entry of a choice of several is a field: a publisher may have a thousand event types.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

# Mail about incidents (`delivery.incidents`). A slow server holds up mail only.
EMAIL_HOST, EMAIL_PORT = ENVIRONMENT.mail.host, ENVIRONMENT.mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = ENVIRONMENT.mail.user, ENVIRONMENT.mail.password
EMAIL_USE_TLS = ENVIRONMENT.mail.security == "STARTTLS"
EMAIL_USE_SSL = ENVIRONMENT.mail.security == "TLS"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = ENVIRONMENT.mail.sender

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["delivery.api.base.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["delivery.api.base.authentication.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "delivery.incoming.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
    "DATETIME_FORMAT": "iso-8601",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Inturn",
    "DESCRIPTION": "A webhook event broker: webhooks, delivered in turn. No text may hold a NUL "
    "character. A header has at most 32 KiB, one that Inturn itself reads 8 KiB, Content-Type and "
    "Accept 1 KiB, all together 64 KiB (431); an address with its query has 32 KiB (414).",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ActionEnum": "subscriptions.models.policy.Action",
        "DeliveryStatusEnum": "delivery.states.Status",
        "SubscriberStatusEnum": "subscriptions.models.holding.SubscriberStatus",
        "SubscriptionStatusEnum": "subscriptions.models.holding.SubscriptionStatus",
        "BulkStateEnum": "delivery.models.resubmission.ResubmissionState",
        "ScopeEnum": "subscriptions.models.api_key.Scope",
        "AccessScopeEnum": "delivery.api.configured.keys.ACCESS_SCOPES",
    },
}

Q_CLUSTER = clusters.q_cluster(workers=ENVIRONMENT.sender_processes)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"event": {"()": "config.logs.EventFormatter"}},
    "filters": {"wrong_origins": {"()": "config.logs.WrongOrigins"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "event"}},
    "root": {"handlers": ["stderr"], "level": ENVIRONMENT.log_level},
    "loggers": {
        "django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        # Anonymous clients must not fill the log with a line for each 4xx or a traceback for each
        # wrong host.
        "django.request": {"level": "ERROR"},
        "django.security": {"level": "CRITICAL"},
        # The only log of an origin passed on by a proxy and not named by INTURN_BASE_URL.
        "django.security.csrf": {"level": "WARNING", "filters": ["wrong_origins"]},
        # py4j logs each closed connection.
        "py4j": {"level": "WARNING"},
    },
}

STYLESHEETS = (
    # For all subjects; the others follow, so that they may vary these.
    "console",
    "lists",
    "configuration",
    "deliveries",
    "first_steps",
    "guide",
    "health",
    "history",
    "holding",
    "lanes",
    "messages",
    "omnibox",
    "overview",
    "payloads",
    "people",
    "pipeline",
    "policies",
    "replays",
    "saved_views",
    "subscriptions",
)


def _style(name: str, _request: Any) -> str:
    return static(f"console/{name}.css")


UNFOLD = {
    "SITE_TITLE": "Inturn",
    "SITE_HEADER": "Inturn",
    "SITE_SUBHEADER": "Webhooks, delivered in turn",
    "SITE_URL": None,
    "SITE_ICON": lambda _request: static("console/favicon.svg"),
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("console/favicon.svg"),
        },
    ],
    "STYLES": [partial(_style, name) for name in STYLESHEETS],
    "SCRIPTS": [
        lambda _request: static("console/console.js"),
        lambda _request: static("console/times.js"),
        lambda _request: static("console/omnibox.js"),
        lambda _request: static("console/live.js"),
    ],
    "SIDEBAR": {"navigation": "delivery.console.navigation.sidebar"},
    "COLORS": {
        "primary": {
            "50": "oklch(98.4% .014 180.72)",
            "100": "oklch(95.3% .051 180.801)",
            "200": "oklch(91% .096 180.426)",
            "300": "oklch(85.5% .138 181.071)",
            "400": "oklch(77.7% .152 181.912)",
            "500": "oklch(70.4% .14 182.503)",
            "600": "oklch(51.1% .096 186.391)",
            "700": "oklch(43.7% .078 188.216)",
            "800": "oklch(38.6% .063 188.416)",
            "900": "oklch(32% .052 188)",
            "950": "oklch(27.7% .046 192.524)",
        },
    },
}
