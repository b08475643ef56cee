# SPDX-License-Identifier: Apache-2.0
"""A webhook in Python on loopback, whose answers a test sets, and which records its requests."""

import base64
import http.server
import json
import ssl
import threading
import urllib.parse

from . import wait, webhook

API = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {"Validating": "validatingwebhookconfigurations", "Mutating": "mutatingwebhookconfigurations"}


def allow(_request):
    """The answer that allows everything."""
    return {"allowed": True}


def patch(*operations):
    """A function that answers with these operations of a JSON patch."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _request: {"allowed": True, "patchType": "JSONPatch", "patch": text}


def pem(folder):
    """The certificate of webhook.make_pair as a caBundle."""
    return base64.b64encode((folder / "tls.crt").read_bytes()).decode()


class Call:
    """One request of the API server."""

    def __init__(self, path, headers, review):
        self.path, _, query = path.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query))
        self.headers, self.review, self.request = headers, review, review["request"]


class Hooks:
    """Serves https://127.0.0.1:PORT/ANY; `answers` maps a path to a function from the request to
    the response (without its uid).  `install` makes the API server call the paths."""

    def __init__(self, server, folder):
        self.server, self.calls, self.answers, self.installed = server, [], {}, []
        self.pair(folder)
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.http.daemon_threads = True
        self.http.socket = self.tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def pair(self, folder):
        """Sets another certificate, for connections that begin from now on."""
        webhook.make_pair(folder, "127.0.0.1")
        if not hasattr(self, "tls"):
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.bundle = pem(folder)

    def handler(self):
        """The class of http.server that answers for this object."""
        hooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # the name is http.server's
                """An AdmissionReview."""
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                call = Call(self.path, self.headers, review)
                hooks.calls.append(call)
                response = hooks.answers.get(call.path, allow)(call.request)
                body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                   "response": {"uid": call.request["uid"], **response}}).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the API server has stopped waiting

            def log_message(self, *_):  # the arguments are http.server's
                """Nothing on standard error."""

        return Handler

    def of(self, path):
        """The calls of a path."""
        return [c for c in self.calls if c.path == path]

    def entry(self, name, path, space, **members):
        """An entry of `webhooks` for Things of this namespace, in their version v1."""
        return {"name": f"{name}.{space.name}.steward.dev", "admissionReviewVersions": ["v1"],
                "sideEffects": "None", "timeoutSeconds": 10, "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "clientConfig": {"url": self.url + path, "caBundle": self.bundle},
                "objectSelector": {"matchLabels": {"space": space.name}},
                "rules": [{"operations": ["CREATE", "UPDATE", "DELETE"], "scope": "Namespaced",
                           "apiGroups": ["thing.contract.steward.dev"], "apiVersions": ["v1"],
                           "resources": ["things"]}], **members}

    def install(self, kind, space, *entries):
        """Creates a configuration ("Validating" or "Mutating") and waits until the API server uses
        it: one more entry then denies a ConfigMap of this namespace.  Returns its path."""
        self.answers["/probe"] = lambda _: {"allowed": False, "status": {"message": "it is used"}}
        rule = {"operations": ["CREATE"], "scope": "Namespaced", "apiGroups": [""],
                "apiVersions": ["v1"], "resources": ["configmaps"]}
        probe = self.entry("probe", "/probe", space, rules=[rule])
        name = f"{space.name}-{kind.lower()}"
        path = f"{API}/{PLURALS[kind]}"
        self.installed.append(f"{path}/{name}")
        made = self.server.ask("POST", path, {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name}, "webhooks": [probe, *entries]})
        self.server.fine(made)
        obj = space.configmap(labels={"space": space.name})
        wait.until("the API server to ask the webhook", lambda: "it is used" in self.server.ask(
            "POST", space.path("configmaps") + "?dryRun=All", obj).message)
        self.calls.clear()
        return f"{path}/{name}"

    def end(self):
        """Removes the configurations and stops serving."""
        for path in self.installed:
            self.server.ask("DELETE", path)
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()
