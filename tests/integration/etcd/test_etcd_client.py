# SPDX-License-Identifier: Apache-2.0
"""lib/etcd against real members: health rounds, membership, alarms."""

import contextlib
import http.server
import json
import socket
import ssl
import threading
import time

import pytest

from support import dbserver, endless, etcd, wait
from support.etcdprobe import Probe


@pytest.fixture
def three(version):
    """Three members."""
    with etcd.Cluster(3, version) as cluster:
        yield cluster


@pytest.fixture
def one(version):
    """One member."""
    with etcd.Cluster(1, version) as cluster:
        yield cluster


def until_fine(probe, op, *at, seconds=15, **command):
    """The answer to a change that the strict check may refuse for some seconds."""
    def ask():
        answer = probe.ask(op, *at, **command)
        assert answer["trouble"] in ("FINE", "UNHEALTHY", "NOT_READY"), answer
        return answer if answer["result"] == 0 else None
    return wait.until(f"{op} to be accepted", ask, seconds)


# --- rounds

@pytest.mark.every_version("the gateway and its errors differ")
def test_health_round_reports_each_member(three, version):
    """IDs, sizes, versions and the leader are those that the members report."""
    three.ctl("put", "a", "x" * 1000)
    with Probe.of(three) as probe:
        health = probe.round(*three.members)
    leader = three.leader()
    for member, h in zip(three.members, health):
        status = member.status()
        assert h["trouble"] == "FINE" and h["answers"] and h["linearizable"] and h["error"] == ""
        assert h["cluster"] == status["header"]["cluster_id"]
        assert h["member"] == status["header"]["member_id"]
        assert h["leader"] == leader.id and not h["learner"]
        assert h["version"] == status["version"] and h["version"].startswith(version)
        assert int(h["term"]) >= 2 and int(h["applied"]) <= int(h["index"])
        assert int(h["size"]) >= int(h["in_use"]) > 0


def test_health_round_with_dead_members_ends_in_time(three):
    """A dead member, and one that keeps its connections but does not reply, are distinguished from
    one that answers without a quorum.  No call waits longer than its own timeout."""
    dead, paused, alive = three.members
    with Probe.of(three, timeout_ms=1500) as probe:
        assert all(h["linearizable"] for h in probe.round(*three.members))
        dead.kill()
        paused.pause()
        answer = probe.ask("round", *three.members)
        probe.fails("defragment", "UNREACHABLE", paused)
        paused.resume()
        dead_says, paused_says, alive_says = answer["round"]
        assert int(answer["ms"]) < 2200
        assert dead_says["trouble"] == "UNREACHABLE" and not dead_says["answers"]
        assert paused_says["trouble"] == "UNREACHABLE" and paused_says["code"] == "Timeout"
        assert alive_says["trouble"] == "FINE" and alive_says["answers"]
        assert not alive_says["linearizable"] and alive_says["error"]
        dead.start()
        wait.until("all to be well again",
                   lambda: all(h["linearizable"] for h in probe.round(*three.members)))


def test_health_rounds_of_threads_share_the_handle(three):
    """Eight threads share one handle."""
    with Probe.of(three) as probe:
        answer = probe.ask("threads", *three.members, count=8)
    assert answer["fine"] == answer["asked"] == "120"


def test_health_rounds_reuse_connections(one):
    """Ten rounds need one connection."""
    member = one.members[0]
    with Probe.of(one) as probe:
        for _ in range(10):
            assert probe.round(member)[0]["linearizable"]
        assert len(_connections(probe.process.pid)) == 1


def _connections(pid):
    import subprocess
    text = subprocess.run(["ss", "-Htnp", "state", "established"], capture_output=True,
                          text=True, check=True).stdout
    return [line for line in text.splitlines() if f"pid={pid}," in line]


def test_health_round_survives_a_member_restart(one):
    """A kept-alive connection that the member has closed causes no error."""
    member = one.members[0]
    with Probe.of(one) as probe:
        assert probe.round(member)[0]["linearizable"]
        member.stop()
        assert probe.round(member)[0]["trouble"] == "UNREACHABLE"
        member.start().wait_healthy()
        assert probe.round(member)[0]["linearizable"]


def test_health_round_without_endpoints_is_empty(one):
    """Without endpoints the result is empty."""
    with Probe.of(one) as probe:
        assert probe.round() == []


def test_cancelled_health_round_ends_at_once(one):
    """All later calls are cancelled as well."""
    member = one.members[0]
    with Probe.of(one, timeout_ms=20000) as probe:
        member.pause()
        probe.ask("cancel", after_ms=300)
        answer = probe.ask("round", member)
        member.resume()
        assert int(answer["ms"]) < 2000
        assert answer["round"][0]["code"] == "Cancelled"
        assert probe.ask("list", member)["code"] == "Cancelled"


# --- the list of members

@pytest.mark.every_version("the gateway and its errors differ")
def test_member_list_equals_that_of_etcdctl(three):
    """Names, IDs and URLs as in the output of etcdctl."""
    with Probe.of(three) as probe:
        answer = probe.fine("list", three.members[0])
    told = json.loads(three.ctl("member", "list", "-w", "json"))["members"]
    assert sorted((int(m["id"]), m["name"], m["url"]) for m in answer["members"]) == sorted(
        (m["ID"], m["name"], m["peerURLs"][0]) for m in told)
    assert answer["cluster"] == three.leader().status()["header"]["cluster_id"]


def test_member_list_includes_the_latest_change(three):
    """Changed through one member and read through another, repeatedly."""
    with Probe.of(three) as probe:
        leader = three.leader()
        until_fine(probe, "add", leader, url="http://localhost:1")
        for round_ in range(5):
            for member in three.members:
                members = probe.fine("list", member)["members"]
                learner, = [m for m in members if m["learner"]]
                assert learner["name"] == "" and learner["url"] == f"http://localhost:{round_ + 1}"
            probe.fine("remove", leader, id=learner["id"])
            for member in three.members:
                assert len(probe.fine("list", member)["members"]) == 3
            probe.fine("add", leader, url=f"http://localhost:{round_ + 2}")


@pytest.mark.every_version("the gateway and its errors differ")
def test_member_list_without_quorum_is_an_error(three):
    """3.4 would list its local state, which may be outdated."""
    alive = three.members[0]
    with Probe.of(three, timeout_ms=1500) as probe:
        for member in three.members[1:]:
            member.kill()
        answer = probe.fails("list", "NO_LEADER", alive)
        assert int(answer["ms"]) < 2000
        assert "members" not in answer


def test_member_list_of_isolated_leader_is_an_error(three):
    """The others are paused: it may still believe that it leads."""
    leader = three.leader()
    others = three.followers()
    with Probe.of(three, timeout_ms=1500) as probe:
        for member in others:
            member.pause()
        probe.fails("list", "NO_LEADER", leader)
        for member in others:
            member.resume()
        wait.until("the list", lambda: probe.ask("list", leader)["result"] == 0)


# --- changes

@pytest.mark.every_version("the gateway and its errors differ")
def test_learner_is_added_promoted_and_removed(one):
    """Promoted before it runs: NOT_READY.  Repetitions and a second learner are refused."""
    seed = one.members[0]
    with Probe.of(one) as probe:
        joiner = one.new_member()
        added = probe.fine("add", seed, url=joiner.peer_url)["id"]
        probe.fails("add", "EXISTS", seed, url=joiner.peer_url)
        probe.fails("add", "TOO_MANY_LEARNERS", seed, url="http://localhost:1")
        probe.fails("promote", "NOT_READY", seed, id=added)
        one.joins(joiner)
        joiner.start()
        wait.until("the learner", joiner.status)
        health = probe.round(joiner)[0]
        assert health["learner"] and health["answers"] and not health["linearizable"]
        assert health["trouble"] == "FINE" and health["member"] == added
        probe.fails("list", "UNSUPPORTED", joiner)
        until_fine(probe, "promote", seed, id=added)
        again = probe.ask("promote", seed, id=added)  # which of the two depends on timing
        assert again["result"] == -1 and again["trouble"] in ("NOT_READY", "EXISTS")
        joiner.wait_healthy()
        assert [m["learner"] for m in probe.fine("list", joiner)["members"]] == [False, False]
        until_fine(probe, "remove", seed, id=added)
        assert joiner.ended() == 0, "a removed member ends by itself"
        probe.fails("remove", "NOT_FOUND", seed, id=added)
        assert len(probe.fine("list", seed)["members"]) == 1


@pytest.mark.every_version("the gateway and its errors differ")
def test_strict_reconfig_check_protects_the_quorum(three):
    """With a dead voter, none is added and no other removed; the dead one is removed."""
    with Probe.of(three) as probe:
        dead = three.followers()[0]
        leader = three.leader()
        dead_id, other_id = dead.id, [m for m in three.followers() if m is not dead][0].id
        dead.kill()
        probe.fails("add", "UNHEALTHY", leader, url="http://localhost:1")
        probe.fails("remove", "UNHEALTHY", leader, id=other_id)
        probe.fine("remove", leader, id=dead_id)


def test_last_voter_cannot_be_removed(one):
    """etcd refuses its removal."""
    with Probe.of(one) as probe:
        probe.fails("remove", "UNHEALTHY", one.members[0], id=one.members[0].id)


@pytest.mark.every_version("the gateway and its errors differ")
def test_unknown_member_ids_are_not_found(one):
    """None of these IDs exists."""
    with Probe.of(one) as probe:
        probe.fails("remove", "NOT_FOUND", one.members[0], id="12345")
        probe.fails("promote", "NOT_FOUND", one.members[0], id="18446744073709551615")
        probe.fails("move", "FAILED", one.members[0], id="12345")


@pytest.mark.every_version("the gateway and its errors differ")
def test_change_without_quorum_differs_from_unreachable(three):
    """A member without a quorum is distinguished from an unreachable one, within the timeout."""
    alive = three.members[0]
    ids = {m.name: m.id for m in three.members}
    with Probe.of(three, timeout_ms=1500) as probe:
        for member in three.members[1:]:
            member.kill()
        wait.until("the leader to be gone", lambda: alive.status().get("leader") in (None, "0"))
        for op, more in (("remove", {"id": ids["m2"]}), ("alarms", {}),
                         ("disarm", {"id": ids["m1"]})):
            answer = probe.fails(op, "NO_LEADER", alive, **more)
            assert int(answer["ms"]) < 2000
        alive.kill()
        probe.fails("remove", "UNREACHABLE", alive, id=ids["m2"])


@pytest.mark.every_version("the gateway and its errors differ")
def test_only_the_leader_moves_leadership(three):
    """Only the leader accepts it."""
    with Probe.of(three) as probe:
        leader, (follower, _) = three.leader(), three.followers()
        refused = probe.fails("move", "FAILED", follower, id=leader.id)
        assert "not leader" in refused["error"]
        probe.fine("move", leader, id=follower.id)
        assert three.leader() is follower


def test_overlong_peer_url_is_an_error(one):
    """An error message instead of a truncated URL."""
    with Probe.of(one) as probe:
        probe.fails("add", "FAILED", one.members[0], url="http://" + "a" * 505)
        assert len(probe.fine("list", one.members[0])["members"]) == 1


# --- alarms

@pytest.mark.every_version("the gateway and its errors differ")
def test_nospace_alarm_is_listed_and_disarmed(version):
    """A small quota is filled; a write returns NOSPACE, and the alarm is listed."""
    with etcd.Cluster(1, version, arguments=["--quota-backend-bytes", str(300 << 10)]) as cluster:
        member, value = cluster.members[0], "eHh4" * 12000
        with Probe.of(cluster) as probe:
            assert probe.fine("alarms", member)["alarms"] == []

            def full():
                code, answer = member.post("/v3/kv/put", {"key": "YQ==", "value": value})
                return code != 200 and "space exceeded" in str(answer)
            wait.until("the database to be full", full)
            assert probe.fine("alarms", member)["alarms"] == [[member.id, 1]]
            assert probe.round(member)[0]["linearizable"], "reads go on"
            _make_room(probe, member)
            probe.fine("disarm", member, id=member.id)
            assert probe.fine("alarms", member)["alarms"] == []
            assert member.post("/v3/kv/put", {"key": "Yg==", "value": "Yg=="})[0] == 200
            probe.fine("disarm", member, id=member.id)


def _make_room(probe, member):
    """A compaction is not repeated, and a revision of the future is refused."""
    before, revision = member.status(), int(member.status()["header"]["revision"])
    probe.fine("compact", member, id=str(revision))
    probe.fails("compact", "EXISTS", member, id=str(revision))
    probe.fails("compact", "FAILED", member, id=str(revision + 1000))
    probe.fine("defragment", member)
    assert int(member.status()["dbSize"]) < int(before["dbSize"])


# --- TLS and users

@pytest.fixture
def secure(version):
    """One member that requires a client certificate."""
    with etcd.Cluster(1, version, tls=True) as cluster:
        yield cluster


def test_tls_verifies_the_name_and_connects_to_the_address(secure):
    """The URL's name is not resolved; a name that the certificate lacks is refused."""
    member = secure.members[0]
    with Probe.of(secure) as probe:
        assert probe.round(member)[0]["linearizable"]
        assert probe.round(member.endpoint("member.etcd.test"))[0]["linearizable"]
        other = probe.round(member.endpoint("other.etcd.test"))[0]
        assert other["trouble"] == "TLS" and not other["answers"], other
        assert probe.fine("list", member.endpoint("member.etcd.test"))["members"]


def test_tls_refuses_a_server_of_another_ca(secure):
    """Only the given CA is trusted, not those of the machine."""
    member = secure.members[0]
    with etcd.Cluster(1, secure.version, tls=True) as other:
        tls = secure.folder / "tls"
        with Probe(ca=other.ca, cert=tls / "tls.crt", key=tls / "tls.key") as probe:
            assert probe.round(member)[0]["trouble"] == "TLS"
            probe.fails("list", "TLS", member)


@pytest.mark.every_version("the gateway and its errors differ")
def test_tls_server_refuses_client_without_certificate(secure):
    """The server reports it only after the handshake (TLS 1.3)."""
    with Probe(ca=secure.ca) as probe:
        assert probe.round(secure.members[0])[0]["trouble"] == "TLS"


def test_plain_and_tls_mismatch_is_an_error(secure, one):
    """Neither hangs; both return an error."""
    with Probe.of(secure) as probe:
        plain = secure.members[0].endpoint()
        plain["url"] = plain["url"].replace("https", "http")
        tls = one.members[0].endpoint()
        tls["url"] = tls["url"].replace("http", "https")
        says_plain, says_tls = probe.round(plain, tls)
        assert says_plain["trouble"] == "UNREACHABLE", says_plain
        assert says_tls["trouble"] in ("TLS", "UNREACHABLE"), says_tls  # it closes the connection


@pytest.mark.every_version("the gateway and its errors differ")
def test_user_authentication_survives_an_etcd_restart(one, version):
    """With auth enabled, root may do all, no user nothing; a restart of etcd invalidates tokens."""
    member = one.members[0]
    with Probe.of(one, user="root", password='p"ä\\ss') as early:
        assert early.fine("list", member), "a user is no trouble where nobody is asked for one"
        one.ctl("user", "add", 'root:p"ä\\ss')
        one.ctl("user", "grant-role", "root", "root")
        one.ctl("user", "add", "plain:plain")
        one.ctl("auth", "enable")
        until_fine(early, "add", member, url="http://localhost:1")
        member.stop()
        member.start()
        wait.until("a token to be had again",
                   lambda: early.ask("alarms", member)["trouble"] == "FINE")
        assert early.round(member)[0]["linearizable"]
    with Probe.of(one) as nobody:
        refused = nobody.fails("remove", "AUTH", member, id="1")
        assert "user name is empty" in refused["error"]
        health = nobody.round(member)[0]
        if version == "3.4":
            assert health["linearizable"], "the quorum answered all the same"
        else:  # the status is only for users
            assert health["trouble"] == "AUTH" and not health["answers"], health
    with Probe.of(one, user="plain", password="plain") as plain:
        assert plain.round(member)[0]["linearizable"]
        plain.fails("remove", "AUTH", member, id="1")
    with Probe.of(one, user="root", password="wr0ng") as wrong:
        refused = wrong.fails("alarms", "AUTH", member)
        assert "wr0ng" not in str(refused)


class Scripted:
    """An HTTP server with a fixed response for each path."""

    def __init__(self, answers, host="127.0.0.1", context=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            """The requests of one connection."""
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                """Sends the response for the path."""
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = answers.get(self.path, b"x" * (2 << 20))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Logs nothing."""

        class Server(http.server.ThreadingHTTPServer):
            """Listens on the address family of `host`."""
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = True

        self.server = Server((host, 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if context else "http"
        self.at = {"url": f"{scheme}://member.etcd.test:{self.server.server_port}", "address": host}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self.at

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_non_etcd_server_is_an_error():
    """A server that is not an etcd: an error, without a hang."""
    answers = {"/v3/maintenance/status": b"<html>", "/v3/kv/range": b'{"header":{}}'}
    with Scripted(answers) as at, Probe(timeout_ms=2000) as probe:
        begin = time.monotonic()
        assert probe.round(at)[0]["trouble"] == "FAILED"
        assert "over 65536 bytes" in probe.fails("list", "FAILED", at)["error"]
        assert time.monotonic() - begin < 2


@pytest.mark.parametrize("kind", endless.START)
def test_endless_response_head_is_limited(kind):
    """Heads, interim responses and trailers are not kept beyond a limit."""
    with endless.Endless(kind) as server, Probe(timeout_ms=10000) as probe:
        at = {"url": server.url, "address": "127.0.0.1"}
        assert probe.round(at)[0]["trouble"] == "FAILED"
        assert "the head or the trailers" in probe.fails("list", "FAILED", at)["error"]
        assert server.sent < server.most


STATUS = {"header": {"cluster_id": "1", "member_id": "2"}}


def test_overlong_answer_is_not_kept():
    """A round keeps the answers of all members until its end."""
    for size, trouble in ((12000, "FINE"), (20000, "FAILED")):
        status = json.dumps({**STATUS, "more": "x" * size}).encode()
        with Scripted({"/v3/maintenance/status": status, "/v3/kv/range": b"{}"}) as at, Probe() as probe:
            assert probe.round(at)[0]["trouble"] == trouble, size


def test_long_certificate_chain_is_refused(tmp_path):
    """Each connection keeps the certificates of its server."""
    ca = dbserver.make_ca(tmp_path)
    dbserver.make_pair(tmp_path, tmp_path, names="DNS:member.etcd.test")
    leaf = (tmp_path / "tls.crt").read_text("ascii")
    answers = {"/v3/maintenance/status": json.dumps(STATUS).encode(), "/v3/kv/range": b"{}"}
    for more, trouble in ((3, "FINE"), (100, "TLS")):
        chain = tmp_path / "chain.pem"
        chain.write_text(leaf + ca.read_text("ascii") * more, encoding="ascii")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, tmp_path / "tls.key")
        with Scripted(answers, context=context) as at, Probe(ca=ca) as probe:
            assert probe.round(at)[0]["trouble"] == trouble, more


def test_kept_connections_have_a_limit():
    """Of one call, and of all together: a quarter of the base, of 32 MiB without a memory limit."""
    answers = {"/v3/maintenance/status": json.dumps(STATUS).encode(), "/v3/kv/range": b"{}"}
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(Scripted(answers)) for _ in range(16)]
        probe = stack.enter_context(Probe())
        assert [one["trouble"] for one in probe.round(*members)] == ["FINE"] * 16
        assert len(_connections(probe.process.pid)) == 9
        probe.ask("threads", *members, count=16)
        assert 100 < len(_connections(probe.process.pid)) <= 128
        assert [one["trouble"] for one in probe.round(*members)] == ["FINE"] * 16


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_ipv4_and_ipv6_addresses_are_used(host):
    """The names cannot be resolved; the address is given separately."""
    status = json.dumps({"header": {"cluster_id": "1", "member_id": "2"}}).encode()
    with Scripted({"/v3/maintenance/status": status, "/v3/kv/range": b"{}"}, host) as at:
        with Probe() as probe:
            assert probe.round(at)[0]["linearizable"]
            assert probe.round({**at, "address": None})[0]["trouble"] == "UNREACHABLE"
            for wrong in ("nowhere", "::1::", "127.0.0.1:1", "x" * 100, ""):
                assert not probe.round({**at, "address": wrong})[0]["answers"], wrong


def test_invalid_url_is_an_error():
    """An invalid URL is an error; no request is sent."""
    with Probe() as probe:
        for url in ("", "x" * 600, "file:///etc/hostname", "ftp://127.0.0.1", "http://", "::"):
            health = probe.round({"url": url[:500], "address": "127.0.0.1"})[0]
            assert health["trouble"] != "FINE" and not health["answers"] and health["error"], url
