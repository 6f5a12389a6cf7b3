"""Workfront's base64Encoding as a script.

`newState` and `oldState` are sent as base64 of their JSON. As any script's output, the encoded body
is stored before the first attempt, so each attempt sends and signs the same bytes. ES5 has no
base64; the script encodes the UTF-8 bytes itself. Workfront does not document the spacing of the
encoded JSON: here it has none.
"""

from typing import Any

# Stored with subscriptions, and compared with their texts: this text stays the same.
BASE64_SCRIPT = """\
// Workfront's base64Encoding: newState and oldState as base64 of their JSON.
var DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function base64(value) {
    var bytes = unescape(encodeURIComponent(JSON.stringify(value)));
    var whole = bytes.length - bytes.length % 3, text = "", i, bits;
    for (i = 0; i < whole; i += 3) {
        bits = bytes.charCodeAt(i) << 16 | bytes.charCodeAt(i + 1) << 8 | bytes.charCodeAt(i + 2);
        text += DIGITS[bits >> 18] + DIGITS[bits >> 12 & 63] \
+ DIGITS[bits >> 6 & 63] + DIGITS[bits & 63];
    }
    if (bytes.length - whole === 1) {
        bits = bytes.charCodeAt(whole);
        text += DIGITS[bits >> 2] + DIGITS[bits << 4 & 63] + "==";
    } else if (bytes.length - whole === 2) {
        bits = bytes.charCodeAt(whole) << 8 | bytes.charCodeAt(whole + 1);
        text += DIGITS[bits >> 10] + DIGITS[bits >> 4 & 63] + DIGITS[bits << 2 & 63] + "=";
    }
    return text;
}

if (typeof $inmessage === "object" && $inmessage !== null) {
    ["newState", "oldState"].forEach(function (name) {
        if (typeof $inmessage[name] === "object" && $inmessage[name] !== null) {
            $inmessage[name] = base64($inmessage[name]);
        }
    });
    $outmessage = $inmessage;
}
"""
_TRUE, _FALSE = ("true",), ("", "false")


def is_base64(given: Any) -> bool | None:
    """Return the value of `base64Encoding`; None if Workfront would refuse it.

    Workfront takes true, false and blank, also as texts.
    """
    if given is None or isinstance(given, bool):
        return bool(given)
    text = given.strip().lower() if isinstance(given, str) else None
    return True if text in _TRUE else False if text in _FALSE else None
