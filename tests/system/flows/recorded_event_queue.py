"""Requests to the Event Queue, recorded from a listening socket that named clients wrote to.

`PERL`: HTTP::Tiny 0.080, called as WebService::Telenor::GBE calls it; its hashes have no order, so
headers come in two. `CURL`: curl 7.88. `JAVA`: HttpURLConnection, and `JAVA_CLIENT` java.net.http,
of Java 17. What differs from one installation to the next is a $name: host, credentials, queue and
the followed link.
"""

PERL_NEXT = """\
POST /event/queue/$queue/next HTTP/1.1
Host: $host
Content-Length: 2
Accept: application/vnd.comoyo.api-v20120202+json
Content-Type: application/vnd.comoyo.api-v20120202+json
Authorization: Basic $credentials
User-Agent: HTTP-Tiny/0.080

{}"""

PERL_ACK = """\
POST $link HTTP/1.1
Host: $host
Content-Type: application/vnd.comoyo.api-v20120202+json
Accept: application/vnd.comoyo.api-v20120202+json
Authorization: Basic $credentials
User-Agent: HTTP-Tiny/0.080
Content-Length: 2

{}"""

# Without -d curl sends neither a body nor its length.
CURL_NEXT = """\
POST /event/queue/$queue/next HTTP/1.1
Host: $host
Authorization: Basic $credentials
User-Agent: curl/7.88.1
Accept: application/json

"""

CURL_ACK = """\
POST $link HTTP/1.1
Host: $host
Authorization: Basic $credentials
User-Agent: curl/7.88.1
Accept: */*

"""

CURL_STATUS = """\
GET /event/queue/$queue/status HTTP/1.1
Host: $host
Authorization: Basic $credentials
User-Agent: curl/7.88.1
Accept: */*

"""

# curl --anyauth: the credentials follow only after a challenge.
CURL_NEXT_UNASKED = """\
POST /event/queue/$queue/next HTTP/1.1
Host: $host
User-Agent: curl/7.88.1
Accept: */*

"""

JAVA_NEXT = """\
POST /event/queue/$queue/next HTTP/1.1
Authorization: Basic $credentials
Accept: application/json
User-Agent: Java/17.0.15
Host: $host
Connection: keep-alive

"""

JAVA_ACK = """\
POST $link HTTP/1.1
Authorization: Basic $credentials
Accept: application/json
User-Agent: Java/17.0.15
Host: $host
Connection: keep-alive
Content-type: application/x-www-form-urlencoded
Content-Length: 0

"""

# java.net.http asks for HTTP/2 in each request, and with an Authenticator for a challenge.
JAVA_CLIENT_NEXT_UNASKED = """\
POST /event/queue/$queue/next HTTP/1.1
Connection: Upgrade, HTTP2-Settings
Content-Length: 0
Host: $host
HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA
Upgrade: h2c
User-Agent: Java-http-client/17.0.15
Accept: application/json

"""

JAVA_CLIENT_NEXT = """\
POST /event/queue/$queue/next HTTP/1.1
Authorization: Basic $credentials
Connection: Upgrade, HTTP2-Settings
Content-Length: 0
Host: $host
HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA
Upgrade: h2c
User-Agent: Java-http-client/17.0.15
Accept: application/json

"""
