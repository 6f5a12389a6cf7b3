"""A fixed corpus of generated payloads with the shapes of real webhooks, 1 to 27 kB each."""

import json
import random
from collections.abc import Mapping
from typing import Any

COUNT = 330

Made = dict[str, Any]

# Areas of events, with their weights and actions; None is an event without an action.
_AREAS: Mapping[str, tuple[int, list[str | None]]] = {
    "Issues": (6, ["opened", "edited", "closed", "labeled"]),
    "PullRequest": (6, ["opened", "closed", "synchronize", "review_requested"]),
    "IssueComment": (4, ["created", "edited", "deleted"]),
    "Push": (4, [None]),
    "Release": (3, ["published", "created"]),
    "Repository": (3, ["created", "archived", "publicized"]),
    "Discussion": (3, ["created", "answered"]),
    "CheckRun": (3, ["created", "completed"]),
    "WorkflowJob": (2, ["queued", "completed"]),
    "Installation": (2, ["created", "suspend"]),
    "Star": (1, ["created", "deleted"]),
    "Ping": (1, [None]),
}
_TEXTS = [
    "It looks like you accidently spelled 'commit' with two 't's.",
    "Größe und Maß: naïve façade, crème brûlée, Łódź, Ærøskøbing",
    "日本語のタイトル、句読点。絵文字も👩‍👩‍👧‍👦🇨🇭🧑🏽‍💻",
    "مرحبا بالعالم — שלום עולם — \u202bright to left\u202c",
    "𝒳 astral, e\u0301 combining, zero\u200bwidth, \u00a0no-break, \ufeffmark",
    'quotes " and \\ backslashes / slashes, <b>&amp;</b>, %s $$ {{x}}',
    "lines\nand\ttabs\r\nand controls \u0001\u001f\u007f",
    "",
]
# Numbers as text: values that floats and 64-bit integers cannot hold must arrive as they were sent.
_NUMBERS = [
    "0",
    "-0",
    "1.0",
    "5.50",
    "1e2",
    "-1.5E-7",
    "9007199254740993",
    "18446744073709551616",
    "3." + "14159" * 12,
]
_NUMBER = "\ue000number %d\ue000"
_PEOPLE = [
    ("Codertocat", 21031067),
    ("octocat", 583231),
    ("Octocoders", 38302899),
    ("müller-lüdenscheidt", 38302900),
]
# Real payloads consist mostly of URLs.
_OF_PERSON = [
    "followers",
    "following",
    "gists",
    "subscriptions",
    "organizations",
    "repos",
    "events",
    "received_events",
]
_OF_REPOSITORY = [
    "forks",
    "keys",
    "collaborators",
    "teams",
    "hooks",
    "issue_events",
    "events",
    "assignees",
    "branches",
    "tags",
    "blobs",
    "git_tags",
    "git_refs",
    "trees",
    "statuses",
    "languages",
    "stargazers",
    "contributors",
    "subscribers",
    "subscription",
    "commits",
    "git_commits",
    "comments",
    "issue_comment",
    "contents",
    "compare",
    "merges",
    "archive",
    "downloads",
    "issues",
    "pulls",
    "milestones",
    "notifications",
    "labels",
    "releases",
    "deployments",
]
_REPOSITORIES = [
    ("Codertocat", "Hello-World"),
    ("Octocoders", "Hello-World"),
    ("octocat", "hello-world"),
]


def made_webhooks() -> list[tuple[str, bytes]]:
    """Return COUNT events with the exact bytes of their payloads."""
    chance = random.Random(329)
    areas = [area for area, (weight, _) in _AREAS.items() for _ in range(weight)]
    return [_webhook(chance, chance.choice(areas), number) for number in range(COUNT)]


def _webhook(chance: random.Random, area: str, number: int) -> tuple[str, bytes]:
    action = chance.choice(_AREAS[area][1])
    body = _body(chance, area, action, number)
    event = f"GitHub.{area}" if action is None else f"GitHub.{area}.{_camel(action)}"
    return event, _spelled(chance, body)


def _body(chance: random.Random, area: str, action: str | None, number: int) -> Made:
    sender = _person(*_PEOPLE[0 if chance.random() < 0.8 else chance.randrange(1, len(_PEOPLE))])
    body: Made = {} if action is None else {"action": action}
    body[_snake(area)] = _subject(chance, area, number)
    if area == "Issues":
        body["issue"] = body.pop("issues")
    if area != "Installation" and chance.random() < 0.9:
        body["repository"] = _repository(chance, sender, number)
    if chance.random() < 0.97:
        body["sender"] = sender
    if area == "Installation" or chance.random() < 0.1:
        body["installation"] = {"id": 5 + number, "node_id": _node_id(chance)}
    if chance.random() < 0.1:
        body["changes"] = _deep(chance, chance.randrange(5, 60))
    body["numbers"] = [_NUMBER % chance.randrange(len(_NUMBERS)) for _ in range(3)]
    return body


def _subject(chance: random.Random, area: str, number: int) -> Made:
    subject: Made = {
        "url": f"https://api.github.com/repos/Codertocat/Hello-World/{_snake(area)}/{number}",
        "id": 444500041 + number,
        "node_id": _node_id(chance),
        "number": number,
        "title": chance.choice(_TEXTS),
        "user": _person(*chance.choice(_PEOPLE)),
        "labels": [_label(chance, number) for _ in range(chance.choice([0, 1, 1, 2, 8]))],
        "body": " ".join(chance.choices(_TEXTS, k=chance.randrange(1, 4))),
        "closed_at": None,
    }
    if area == "PullRequest":
        subject |= {"draft": chance.random() < 0.5, "merged": None, "base": {"ref": "master"}}
    if area == "Push":
        subject["commits"] = [_commit(chance) for _ in range(chance.choice([1, 3, 30, 65]))]
    return subject


def _repository(chance: random.Random, sender: Made, number: int) -> Made:
    owner, name = _REPOSITORIES[
        0 if chance.random() < 0.75 else chance.randrange(1, len(_REPOSITORIES))
    ]
    repository: Made = {
        "id": 186853002 + number % 7,
        "node_id": _node_id(chance),
        "name": name,
        "full_name": f"{owner}/{name}",
        "private": chance.random() < 0.1,
        "owner": sender if owner == sender["login"] else _person(*dict(_people_by_name())[owner]),
        "description": chance.choice([None, *_TEXTS]),
        "fork": False,
        "pushed_at": f"2019-05-15T15:20:{chance.randrange(10, 60)}Z",
        "size": chance.randrange(6),
        "default_branch": "master",
        **{
            f"{name}_url": f"https://api.github.com/repos/{owner}/Hello-World/{name}"
            for name in _OF_REPOSITORY
        },
    }
    if chance.random() < 0.6:
        repository["topics"] = ["octokit", "wéb-hooks", "日本"][: chance.randrange(4)]
    return repository


def _people_by_name() -> list[tuple[str, tuple[str, int]]]:
    return [(login, (login, id)) for login, id in _PEOPLE]


def _person(login: str, id: int) -> Made:
    api = f"https://api.github.com/users/{login}"
    return {
        "login": login,
        "id": id,
        "avatar_url": f"https://avatars1.githubusercontent.com/u/{id}?v=4",
        "gravatar_id": "",
        "url": api,
        "starred_url": api + "/starred{/owner}{/repo}",
        **{f"{name}_url": f"{api}/{name}" for name in _OF_PERSON},
        "type": "User",
        "site_admin": False,
    }


def _label(chance: random.Random, number: int) -> Made:
    return {
        "id": 1362934389 + number,
        "name": chance.choice(["bug", "bug", "Übersetzung", "🐛"]),
        "default": True,
    }


def _commit(chance: random.Random) -> Made:
    return {
        "id": f"{chance.getrandbits(160):040x}",
        "distinct": True,
        "message": chance.choice(_TEXTS),
        "timestamp": "2019-05-15T15:20:33+02:00",
        "added": [f"docs/{chance.randrange(1000)}.md" for _ in range(chance.randrange(6))],
        "removed": [],
    }


def _deep(chance: random.Random, levels: int) -> Made:
    inner: Made = {"from": chance.choice(_TEXTS)}
    for level in range(levels):
        inner = {f"level {level}": [inner] if level % 3 else inner, "": None}
    return inner


def _node_id(chance: random.Random) -> str:
    return f"MDEw{chance.getrandbits(96):024x}="


def _camel(action: str) -> str:
    return "".join(word.capitalize() for word in action.split("_"))


def _snake(area: str) -> str:
    return "".join(
        f"_{letter.lower()}" if letter.isupper() else letter for letter in area
    ).removeprefix("_")


def _spelled(chance: random.Random, body: Made) -> bytes:
    """Serialize it as senders do: compact or with blanks, as UTF-8 or with escapes."""
    spacing = chance.choice([(",", ":"), (", ", ": ")])
    text = json.dumps(body, ensure_ascii=chance.random() < 0.5, separators=spacing)
    for at, spelling in enumerate(_NUMBERS):
        text = text.replace(json.dumps(_NUMBER % at), spelling)
    return text.encode()
