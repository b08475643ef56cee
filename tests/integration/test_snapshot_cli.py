# SPDX-License-Identifier: Apache-2.0
"""steward snapshot: real etcd members, a real store, and errors of both."""

import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from support import etcd, paths, s3, s3double, wait


@pytest.fixture(scope="module")
def members(version):
    with etcd.Cluster(size=3, version=version) as cluster:
        for i in range(50):
            cluster.ctl("put", f"k{i}", "v" * 1000)
        yield cluster


@pytest.fixture
def proxy(bucket):
    proxy = s3.Proxy(bucket)
    yield proxy
    proxy.close()


@pytest.fixture
def s3_flags(proxy, tmp_path):
    (tmp_path / "credentials").write_text(s3.CREDENTIALS)
    return [f"--s3-endpoint={proxy.url}", "--s3-path-style",
            f"--credentials={tmp_path / 'credentials'}", f"--s3={s3.BUCKET}/dir/db"]


def run(*command, fails=False, env=None):
    """Runs `steward snapshot -o json`; returns the parsed output."""
    done = subprocess.run([paths.steward_binary(), "snapshot", *map(str, command), "-o", "json"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(env or {})})
    assert done.returncode == (1 if fails else 0), done.stdout + done.stderr
    assert s3.SECRET_KEY not in done.stderr
    return json.loads(done.stdout)


def urls(cluster):
    return "--endpoints=" + ",".join(m.client_url for m in cluster.members)


def leader(cluster):
    """URL of the leader."""
    for member in cluster.members:
        status = member.post("/v3/maintenance/status")[1]
        if status["leader"] == status["header"]["member_id"]:
            return member.client_url
    raise AssertionError("no leader")


@pytest.mark.parametrize("where", ["s3", "folder"])
def test_snapshot_is_saved_listed_verified_and_fetched(members, s3_flags, tmp_path, where):
    store = s3_flags if where == "s3" else [f"--folder={tmp_path}/new/folder/db"]
    saved = run("save", urls(members), *store)
    assert saved["ok"] and saved["verified"] and saved["endpoint"] != leader(members)
    assert saved["etcdVersion"].startswith(members.members[0].version)
    name = re.fullmatch(r"(?:dir/)?db_v(\d{12})_\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d", saved["key"])
    assert name and int(name[1]) == saved["revision"] >= 51
    assert saved["key"] in [e["key"] for e in run("list", *store)]
    assert run("verify", "--newest", *store)["sha256"] == saved["sha256"]
    fetched = run("fetch", "--newest", f"--to={tmp_path / 'snap.db'}", *store,
                  f"--sha256={saved['sha256']}")
    assert fetched["revision"] == saved["revision"]
    assert (tmp_path / "snap.db").stat().st_size == saved["sizeBytes"]
    status = members.snapshot_status(tmp_path / "snap.db")
    assert status["revision"] == saved["revision"] and status["totalKey"] >= 50


def test_dead_endpoints_are_skipped(members, tmp_path):
    saved = run("save", "--endpoints=http://127.0.0.1:1," + urls(members).split("=")[1],
                f"--folder={tmp_path}/db")
    assert saved["ok"] and saved["endpoint"] != "http://127.0.0.1:1"


def test_learners_are_skipped(version, tmp_path):
    """They serve no snapshot, and may lag."""
    with etcd.Cluster(size=1, version=version) as cluster:
        learner = wait.until("a learner to be added", lambda: added(cluster), 15)
        wait.until("it to answer", learner.status)
        saved = run("save", urls(cluster), f"--folder={tmp_path}/db")
        assert saved["endpoint"] == cluster.members[0].client_url
        said = run("save", f"--endpoints={learner.client_url}", f"--folder={tmp_path}/db",
                   fails=True)
        assert (said["fault"], said["error"]) == (
            "Source", "none of 1 endpoints is a voter that serves reads: they answer, but are "
            "learners")


def added(cluster):
    """A running learner, or None while the strict check refuses it."""
    try:
        return cluster.add()
    except AssertionError as error:
        assert "unhealthy cluster" in str(error)
        return None


def test_unreachable_endpoints_are_an_error(tmp_path):
    said = run("save", "--endpoints=http://127.0.0.1:1", f"--folder={tmp_path}/db", fails=True)
    assert said["fault"] == "Source" and said["reason"] == "NoHealthyEndpoint"
    assert os.listdir(tmp_path) == []


def test_member_without_quorum_is_not_used(version, tmp_path):
    with etcd.Cluster(size=3, version=version) as cluster:
        for member in cluster.members[1:]:
            member.kill()
        said = run("save", urls(cluster), f"--folder={tmp_path}/db", fails=True)
    assert said["fault"] == "Source" and os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode, reason", [("down", "ConnectFailed"), ("denied", "AccessDenied"),
                                          ("full", "StoreFull"), ("cut", "ConnectFailed"),
                                          ("broken", "ConnectFailed")])
def test_store_error_is_reported(members, bucket, proxy, s3_flags, mode, reason):
    before = set(bucket.objects())
    proxy.mode, proxy.cut_bytes = mode, 1000
    said = run("save", urls(members), *s3_flags, fails=True)
    assert (said["fault"], said["reason"]) == ("Store", reason)
    assert set(bucket.objects()) == before


@pytest.mark.parametrize("mode, reason", [("short", "SizeMismatch"), ("flipped", "HashMismatch")])
def test_corrupted_upload_is_detected(members, bucket, proxy, s3_flags, mode, reason):
    own = [*s3_flags[:-1], f"--s3={s3.BUCKET}/lies/{mode}"]
    run("save", urls(members), *own)
    members.ctl("put", "more", mode)  # else the next one could get the same name within a second
    before = set(bucket.objects())
    proxy.mode = mode
    said = run("save", urls(members), *own, "--max-backups=1", fails=True)
    assert (said["fault"], said["reason"]) == ("Content", reason) and not said["verified"]
    # A damaged object must not be taken for a backup, and pruning only follows a verified backup.
    assert set(bucket.objects()) == before


def spoil(path, how):
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[-1:]
    elif how == "no hash":
        del data[-32:]
    elif how == "empty":
        data.clear()
    else:
        data[{"first": 0, "middle": len(data) // 2, "last": len(data) - 1}[how]] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "no hash", "empty", "first", "middle", "last"])
def test_damaged_snapshot_is_detected(members, tmp_path, how):
    saved = run("save", urls(members), f"--folder={tmp_path}/db", "--exact")
    assert saved["key"] == "db"
    assert run("verify", tmp_path / "db")["sha256"] == saved["sha256"]
    spoil(tmp_path / "db", how)
    assert run("verify", tmp_path / "db", fails=True)["reason"] == "HashMismatch"
    said = run("fetch", f"--folder={tmp_path}/db", f"--to={tmp_path}/out", fails=True)
    assert said["fault"] == "Content" and sorted(os.listdir(tmp_path)) == ["db"]


def test_wrong_sha256_is_detected(members, tmp_path):
    run("save", urls(members), f"--folder={tmp_path}/db", "--exact")
    assert run("verify", f"--folder={tmp_path}/db", f"--sha256={'0' * 64}",
               fails=True)["reason"] == "HashMismatch"


def test_retention_deletes_own_snapshots_by_time(members, tmp_path):
    others = ["db_v000000000001_2020-01-01-00:00:00_00000000000000aa_an-uid",
              "db_v5_2020-01-01-00:00:00", "db_vx", "db2_v000000000001_2020-01-01-00:00:00", "db"]
    old = [f"db_v{revision:012}_2020-01-01-00:00:0{second}"  # of a cluster that was restored
           for second, revision in enumerate((11, 10, 9))]
    for name in others + old:
        (tmp_path / name).write_text("x")
    dry = run("prune", "--max-backups=2", "--dry-run", f"--folder={tmp_path}/db")
    assert [e["key"] for e in dry] == [old[0]]
    saved = run("save", urls(members), f"--folder={tmp_path}/db", "--max-backups=2",
                f"--keep={old[0]}")
    assert saved["pruned"] == 1
    assert set(os.listdir(tmp_path)) == {*others, old[0], old[2], saved["key"]}
    run("prune", "--max-age=1h", f"--folder={tmp_path}/db")
    assert set(os.listdir(tmp_path)) == {*others, saved["key"]}


def test_retention_compares_revisions_as_numbers(tmp_path):
    """With one digit more than steward's names have: compared as text, it would be the oldest."""
    names = [f"db_v{revision}_2020-01-01-00:00:00" for revision in (10**12 - 1, 10**12)]
    for name in names:
        (tmp_path / name).write_text("x")
    assert [e["key"] for e in run("list", f"--folder={tmp_path}/db")] == names[::-1]
    run("prune", "--max-backups=1", f"--folder={tmp_path}/db")
    assert os.listdir(tmp_path) == names[1:]


def test_new_snapshot_with_low_revision_is_kept(members, tmp_path):
    """A restored cluster may begin with lower revisions: the newest is determined by time."""
    high = "db_v999999999999_2020-01-01-00:00:00"
    (tmp_path / high).write_text("x")
    saved = run("save", urls(members), f"--folder={tmp_path}/db", "--max-backups=1")
    assert set(os.listdir(tmp_path)) == {saved["key"]}


def test_new_snapshot_with_earlier_time_is_kept(members, tmp_path):
    """The clock of another writer may have been ahead."""
    ahead = "db_v000000000001_2099-01-01-00:00:00"
    (tmp_path / ahead).write_text("x")
    saved = run("save", urls(members), f"--folder={tmp_path}/db", "--max-backups=1")
    assert set(os.listdir(tmp_path)) == {ahead, saved["key"]}


def test_snapshots_dated_in_the_future_are_ignored(members, tmp_path):
    """They are neither counted nor removed, and not taken for the newest."""
    ahead = [f"db_v00000000000{n}_2099-01-01-00:00:00" for n in (1, 2)]
    old = [f"db_v00000000000{n}_202{n}-01-01-00:00:00" for n in (3, 4)]
    for name in ahead + old:
        (tmp_path / name).write_text("x")
    saved = run("save", urls(members), f"--folder={tmp_path}/db", "--max-backups=2")
    assert saved["pruned"] == 1
    assert set(os.listdir(tmp_path)) == {*ahead, old[1], saved["key"]}
    run("prune", "--max-backups=1", "--max-age=1h", f"--folder={tmp_path}/db")
    assert set(os.listdir(tmp_path)) == {*ahead, saved["key"]}
    assert run("verify", "--newest", f"--folder={tmp_path}/db")["key"] == saved["key"]


def test_result_file_is_written(members, tmp_path):
    out = tmp_path / "termination"
    run("save", urls(members), f"--folder={tmp_path}/db", "--exact", f"--result={out}")
    assert json.loads(out.read_text())["ok"] is True
    run("save", "--endpoints=http://127.0.0.1:1", f"--folder={tmp_path}/db", f"--result={out}",
        fails=True)
    assert json.loads(out.read_text())["reason"] == "NoHealthyEndpoint"


def test_sigterm_aborts_the_upload(version, tmp_path):
    double = s3double.S3Double()
    try:
        with etcd.Cluster(size=1, version=version) as cluster:
            for i in range(120):
                cluster.ctl("put", f"big{i}", "x" * 100_000)
            (tmp_path / "credentials").write_text(s3double.CREDENTIALS)
            held = []

            def hold(request):
                if "partNumber" in request.path:
                    held.append(1)
                    time.sleep(3)

            double.fault = hold
            with subprocess.Popen(
                    [paths.steward_binary(), "snapshot", "save", urls(cluster),
                     f"--s3-endpoint={double.url}", "--s3-path-style", "--s3=backups/db",
                     f"--credentials={tmp_path / 'credentials'}"], stderr=subprocess.PIPE,
                    text=True) as process:
                wait.until("a part to go up", lambda: held, 20)
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) == 1
                assert "stopped" in process.stderr.read()
        assert not double.uploads and not double.objects
    finally:
        double.close()


@pytest.fixture
def double():
    with s3double.S3Double() as server:
        yield server


@pytest.fixture
def gone():
    """Set at the end of the test: what the double holds, it holds until then."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def to_double(double, tmp_path):
    (tmp_path / "credentials").write_text(s3double.CREDENTIALS)
    return [f"--s3-endpoint={double.url}", "--s3-path-style", "--s3=backups/db",
            f"--credentials={tmp_path / 'credentials'}"]


@pytest.mark.parametrize("size, reason", [(256 << 10, "SizeMismatch"), (1 << 10, "ConnectFailed")])
def test_endless_answer_is_limited(members, double, to_double, gone, size, reason):
    """20 pieces a second: at first more bytes than were written, then too slow for the timeout."""
    for n in range(10):
        members.ctl("put", f"large-{n}", "x" * 100_000)
    double.fault = s3double.drip(gone, size)
    said = run("save", urls(members), *to_double, "--timeout=4s", fails=True)
    assert said["reason"] == reason and not said["verified"]


def test_unreadable_upload_is_deleted(members, double, to_double):
    """Credentials that may write and delete, but not read."""
    double.fault = lambda r: (403, "AccessDenied") if s3double.reads(r) else None
    for attempt in range(3):
        members.ctl("put", "more", f"read-{attempt}")  # else two could get one name within a second
        said = run("save", urls(members), *to_double, fails=True)
        assert (said["fault"], said["reason"]) == ("Store", "AccessDenied")
        assert not double.objects


def test_sigterm_ends_the_cleanup_of_uploads(members, double, to_double, gone):
    """A thousand, and the store answers no request to abort one."""
    for _ in range(1000):
        double.begin("db_v000000000001_2020-01-01-00:00:00", age_s=172800)
    held = []

    def hold(request):
        if "uploadId" in request.path and request.command == "DELETE":
            held.append(request.path)
            gone.wait(120)
            return "close"
        return None

    double.fault = hold
    with subprocess.Popen([paths.steward_binary(), "snapshot", "save", urls(members), *to_double],
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            wait.until("an upload to be aborted", lambda: held, 20)
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0  # the backup itself is good
        finally:
            process.kill()
        assert "older ones could not be removed: stopped" in process.stderr.read()
    assert len(held) == 1


def test_wrong_arguments_are_an_error():
    for command in (["save"], ["list"], ["fetch", "--folder=/tmp/x"], ["nonsense"], [],
                    ["list", "--s3=bucket"], ["prune", "--folder=/tmp/x"],
                    ["list", "--s3=a/b", "--folder=/tmp/x"]):
        done = subprocess.run([paths.steward_binary(), "snapshot", *command], capture_output=True,
                              text=True)
        assert done.returncode == 2 and "steward snapshot" in done.stderr, command
    done = subprocess.run([paths.steward_binary(), "snapshot", "--help"], capture_output=True,
                          text=True)
    assert done.returncode == 0 and "--credentials=FILE" in done.stdout
