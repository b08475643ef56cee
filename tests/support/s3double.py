# SPDX-License-Identifier: Apache-2.0
"""S3's protocol in memory, for what a small real server lacks: it aborts multipart uploads, lists
unfinished ones, lists in pages, and verifies every signature as specified
(https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html)."""

import datetime
import hashlib
import hmac
import threading
import urllib.parse
import xml.sax.saxutils

from . import served

ACCESS_KEY, SECRET_KEY, TOKEN = "AKIDEXAMPLE", "sEcr3t/key+of=test", "t0ken/+=="
CREDENTIALS = (f"[default]\naws_access_key_id = {ACCESS_KEY}\n"
               f"aws_secret_access_key = {SECRET_KEY}\naws_session_token = {TOKEN}\n")


def _quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


class S3Double(served.Served):
    """Tests may read `objects` {key: bytes} and `uploads` {id: Upload}.  `fault(request)` may
    answer instead: a status and an error code, "close", or None for the usual answer; "answered" if it
    has."""

    def __init__(self, bucket="backups", region="us-east-1", page=1000):
        self.bucket, self.region, self.page = bucket, region, page
        self.objects, self.uploads, self.log, self.headers = {}, {}, [], []
        self.fault = lambda request: None
        self.after = lambda request: None  # the same, after the work is done
        self.lock = threading.Lock()
        super().__init__(_Handler)

    def begin(self, key, age_s=0):
        """Adds an upload that another client began `age_s` seconds ago; its id."""
        upload = Upload(key, datetime.timedelta(seconds=age_s))
        self.uploads[upload.id] = upload
        return upload.id


def reads(request):
    """Whether this request reads an object, not a list."""
    return request.command == "GET" and "?" not in request.path


def drip(gone, size):
    """A fault: an object that is read has no end, and comes `size` bytes at a time, 20 times a
    second, until the event `gone`."""
    def answer(request):
        if not reads(request):
            return None
        request.send_response(200)
        request.end_headers()
        try:
            while not gone.wait(0.05):
                request.wfile.write(bytes(size))
        except OSError:
            pass  # the client has gone
        return "close"
    return answer


class Upload:
    """An unfinished multipart upload."""
    count = 0

    def __init__(self, key, age=datetime.timedelta()):
        Upload.count += 1
        self.id = f"up/{Upload.count}+{_quote(key)}"
        self.key, self.parts = key, {}
        self.began = datetime.datetime.now(datetime.timezone.utc) - age


class _Handler(served.Handler):
    # --- signatures

    def _canonical(self, path, query, signed):
        pairs = sorted((_quote(k), _quote(v)) for k, v in query)
        lines = [self.command, _quote(urllib.parse.unquote(path), "/"),
                 "&".join(f"{k}={v}" for k, v in pairs)]
        lines += [f"{h}:{' '.join((self.headers[h] or '').split())}" for h in signed]
        return "\n".join([*lines, "", ";".join(signed), self.headers["x-amz-content-sha256"] or ""])

    def _signed(self, path, query, body):
        """What is wrong with the request's signature, or None."""
        auth = self.headers.get("Authorization", "")
        if not auth.startswith("AWS4-HMAC-SHA256 "):
            return "AccessDenied"
        parts = dict(p.strip().split("=", 1) for p in auth.split(" ", 1)[1].split(","))
        signed = parts["SignedHeaders"].split(";")
        access, *scope = parts["Credential"].split("/")
        must = {"host", *(h.lower() for h in self.headers if h.lower().startswith("x-amz-"))}
        if access != ACCESS_KEY or scope[1:] != [self.server.region, "s3", "aws4_request"]:
            return "InvalidAccessKeyId"
        if not must <= set(signed) or self.headers["x-amz-security-token"] != TOKEN:
            return "SignatureDoesNotMatch"
        if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            return "XAmzContentSHA256Mismatch"
        canonical = self._canonical(path, query, signed)
        to_sign = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], "/".join(scope),
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + SECRET_KEY).encode()
        for part in scope:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        right = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        return None if hmac.compare_digest(right, parts["Signature"]) else "SignatureDoesNotMatch"

    # --- answers

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status, code):
        self._answer(status, (f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Message>because '
                              f"of {code}</Message></Error>").encode())

    def _xml(self, root, inside):
        self._answer(200, (f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://s3.ama'
                           f'zonaws.com/doc/2006-03-01/">{inside}</{root}>').encode())

    def _give(self, answer):
        if answer == "close":
            self.close_connection = True
        elif answer and answer != "answered":
            self._refuse(*answer)
        return bool(answer)

    # --- requests

    def _any(self):
        path, _, query = self.path.partition("?")
        query = urllib.parse.parse_qsl(query, keep_blank_values=True)
        self.body = body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.log.append((self.command, self.path))
        self.server.headers.append(dict(self.headers.items()))
        self.query = dict(query)
        if self._give(self.server.fault(self)):
            return
        wrong = self._signed(path, query, body)
        if wrong:
            self._refuse(400 if "Mismatch" in wrong else 403, wrong)
            return
        host = self.headers["Host"].split(".")[0]
        in_host = host == self.server.bucket
        parts = urllib.parse.unquote(path).lstrip("/")
        bucket, key = (host, parts) if in_host else (parts + "/").split("/", 1)
        if bucket != self.server.bucket:
            self._refuse(404, "NoSuchBucket")
            return
        with self.server.lock:
            self._serve(key if in_host else key.rstrip("/"), body)

    def _serve(self, key, body):
        ops = {("GET", True): self._listing, ("POST", False): self._post, ("PUT", False): self._put,
               ("GET", False): self._get, ("DELETE", False): self._delete}
        op = ops.get((self.command, not key))
        if op:
            op(key, body)
        else:
            self._refuse(405, "MethodNotAllowed")

    def _get(self, key, _):
        if key in self.server.objects:
            self._answer(200, self.server.objects[key])
        else:
            self._refuse(404, "NoSuchKey")

    def _delete(self, key, _):
        if "uploadId" in self.query:
            gone = self.server.uploads.pop(self.query["uploadId"], None)
            if not gone:
                self._refuse(404, "NoSuchUpload")
                return
        else:
            self.server.objects.pop(key, None)
        self._answer(204)

    def _put(self, key, body):
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        if "partNumber" in self.query:
            upload = self.server.uploads.get(self.query["uploadId"])
            if not upload:
                self._refuse(404, "NoSuchUpload")
                return
            upload.parts[int(self.query["partNumber"])] = (etag, body)
        else:
            self.server.objects[key] = body
        if not self._give(self.server.after(self)):
            self._answer(200, ETag=etag)

    def _post(self, key, body):
        if "uploads" in self.query:
            upload = self.server.uploads[self.server.begin(key)]
            self._xml("InitiateMultipartUploadResult",
                      f"<Bucket>b</Bucket><UploadId>{upload.id}</UploadId>")
            return
        upload = self.server.uploads.get(self.query["uploadId"])
        if not upload:
            self._refuse(404, "NoSuchUpload")
            return
        named = [f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>"
                 for n, (etag, _) in sorted(upload.parts.items())]
        if body.decode() != f"<CompleteMultipartUpload>{''.join(named)}</CompleteMultipartUpload>":
            self._refuse(400, "InvalidPart")
            return
        small = [n for n, (_, data) in sorted(upload.parts.items())[:-1] if len(data) < 5 << 20]
        if small:
            self._refuse(400, "EntityTooSmall")
            return
        self.server.objects[key] = b"".join(d for _, (_, d) in sorted(upload.parts.items()))
        del self.server.uploads[upload.id]
        if not self._give(self.server.after(self)):
            self._xml("CompleteMultipartUploadResult", f"<Key>{xml.sax.saxutils.escape(key)}</Key>")

    def _listing(self, _, __):
        prefix, page = self.query.get("prefix", ""), self.server.page
        if "uploads" in self.query:
            mark = (self.query.get("key-marker", ""), self.query.get("upload-id-marker", ""))
            rows = [u for u in sorted(self.server.uploads.values(), key=lambda u: (u.key, u.id))
                    if u.key.startswith(prefix) and (u.key, u.id) > mark]
            inside = "".join(f"<Upload><Key>{_quote(u.key, '/')}</Key><UploadId>{u.id}</UploadId>"
                             f"<Initiated>{u.began:%Y-%m-%dT%H:%M:%S}.000Z</Initiated>"
                             "<Owner><ID>1</ID></Owner></Upload>" for u in rows[:page])
            if len(rows) > page:
                inside += (f"<NextKeyMarker>{_quote(rows[page - 1].key, '/')}</NextKeyMarker>"
                           f"<NextUploadIdMarker>{rows[page - 1].id}</NextUploadIdMarker>")
            more, root = len(rows) > page, "ListMultipartUploadsResult"
        else:
            start = self.query.get("continuation-token", "")
            rows = [k for k in sorted(self.server.objects) if k.startswith(prefix) and k > start]
            inside = "".join(f"<Contents><Key>{_quote(k, '/')}</Key><Size>"
                             f"{len(self.server.objects[k])}</Size></Contents>" for k in rows[:page])
            more, root = len(rows) > page, "ListBucketResult"
            if more:
                token = xml.sax.saxutils.escape(rows[page - 1])
                inside += f"<NextContinuationToken>{token}</NextContinuationToken>"
        self._xml(root, f"<IsTruncated>{str(more).lower()}</IsTruncated>{inside}"
                  "<EncodingType>url</EncodingType>")

    do_GET = do_PUT = do_POST = do_DELETE = _any
