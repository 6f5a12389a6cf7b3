"""Requests to Workfront's event subscriptions, recorded from a socket that named clients wrote to.

Fields, token and header names are those of the vendor's documentation. `CURL`: curl 7.88. `JAVA`:
HttpURLConnection, and `JAVA_CLIENT` java.net.http, of Java 17. What differs from one installation
to the next is a $name.
"""

CURL_CREATE = """\
POST /attask/eventsubscription/api/v1/subscriptions HTTP/1.1
Host: $host
User-Agent: curl/7.88.1
Accept: */*
sessionID: $key
Content-Type: application/json
Content-Length: $length

{
    "objCode": "$code",
    "eventType": "UPDATE",
    "authToken": "EauthTokenWorkfrontRocks1234_",
    "url": "$url",
    "filters": [
        {
            "fieldName": "status",
            "comparison": "changed"
        }
    ]
}"""

# curl -d without -H: the body is JSON all the same.
CURL_CREATE_AS_FORM = CURL_CREATE.replace(
    "Content-Type: application/json\nContent-Length: $length",
    "Content-Length: $length\nContent-Type: application/x-www-form-urlencoded",
)

CURL_READ = """\
GET $target HTTP/1.1
Host: $host
User-Agent: curl/7.88.1
Accept: */*
sessionID: $key

"""

CURL_PUT_VERSION = """\
PUT $target/version HTTP/1.1
Host: $host
User-Agent: curl/7.88.1
Accept: */*
sessionID: $key
Content-Type: application/json
Content-Length: 17

{"version": "v2"}"""

JAVA_CREATE = """\
POST /attask/eventsubscription/api/v1/subscriptions HTTP/1.1
Authorization: $key
Content-Type: application/json
User-Agent: Java/17.0.15
Host: $host
Accept: text/html, image/gif, image/jpeg, */*; q=0.2
Connection: keep-alive
Content-Length: $length

{"objCode":"$code","eventType":"UPDATE","url":"$url","authToken":"EauthTokenWorkfrontRocks1234_"}"""

JAVA_DELETE = """\
DELETE $target HTTP/1.1
Authorization: $key
User-Agent: Java/17.0.15
Host: $host
Accept: text/html, image/gif, image/jpeg, */*; q=0.2
Connection: keep-alive

"""

# java.net.http asks for HTTP/2, and gives a GET a length.
JAVA_CLIENT_LIST = """\
GET /attask/eventsubscription/api/v1/subscriptions?page=$page&limit=1 HTTP/1.1
Connection: Upgrade, HTTP2-Settings
Content-Length: 0
Host: $host
HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA
Upgrade: h2c
User-Agent: Java-http-client/17.0.15
X-User-Token: $key

"""
