"""The text of a configuration document: the JSON, and the shape of the lists."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from delivery.configuration.document.document import (
    FORMAT,
    NAMES,
    SECTIONS,
    DocumentEntry,
    DocumentFault,
    RefusedDocumentError,
    Section,
    document_refused,
)
from delivery.incoming.bodies import json_error


def parse_document(text: bytes | str) -> Any:
    """Parse JSON.

    Raises RefusedDocumentError for invalid JSON and for duplicate names in an object.
    """
    try:
        content = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
        # A lone surrogate cannot be stored.
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise document_refused(f"The file is not UTF-8: {error}.") from None
    except json.JSONDecodeError as error:
        detail = f"The file is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        raise document_refused(detail) from None
    except ValueError as error:
        raise document_refused(f"The file is not JSON: {json_error(error)}.") from None
    except RecursionError:
        raise document_refused("The file is nested too deeply.") from None
    return content


def check_entries(content: Any) -> dict[str, list[DocumentEntry]]:
    """Return section → entries.

    Raises RefusedDocumentError if the content is not shaped as a document.
    """
    if not isinstance(content, dict):
        raise document_refused(
            "A configuration is a JSON object with the lists " + ", ".join(NAMES) + "."
        )
    if content.get("format") != FORMAT:
        raise document_refused(
            f'"format": {FORMAT} is missing: this is not a configuration that this version reads.'
        )
    faults = [
        DocumentFault(
            object="", field=name, detail=f"There is no such list; known are {', '.join(NAMES)}."
        )
        for name in content
        if name not in (*NAMES, "format")
    ]
    faults += [
        fault for section in SECTIONS for fault in _faults(section, content.get(section.name, []))
    ]
    if faults:
        raise RefusedDocumentError(faults)
    return {name: content[name] for name in NAMES if name in content}


def document_text(content: Mapping[str, Any]) -> str:
    """Return the text of a document, a line for each field; equal content gives equal text."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _faults(section: Section, entries: Any) -> Iterator[DocumentFault]:
    if not isinstance(entries, list):
        yield DocumentFault(object="", field=section.name, detail="This is a list of objects.")
        return
    keys: set[tuple[str, ...]] = set()
    for index, entry in enumerate(entries):
        place = f"{section.name}[{index}]"
        key = section.key_of(entry) if isinstance(entry, dict) else ()
        if not key or not all(isinstance(part, str) and part for part in key):
            detail = f"An object with {' and '.join(section.key)} belongs here."
            yield DocumentFault(object=place, field="", detail=detail)
        elif key in keys:
            detail = "It stands twice in the document; leave one of them out."
            yield DocumentFault(object=f"{section.noun} {'/'.join(key)}", field="", detail=detail)
        keys.add(key)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise document_refused(
                f"An object of the file has two members of the name {name[:100]}; leave one out."
            )
        found[name] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise document_refused(f"The file is not JSON: {name} is no number.")
