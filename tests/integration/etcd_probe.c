/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives lib/etcd against real members, for test_etcd_*.py: reads commands from standard
 * input, one JSON object a line, and answers each with one line of JSON.
 *
 *     {"op": "round", "at": [ENDPOINT, ...]}
 *     {"op": "list" | "alarms", "at": [ENDPOINT]}
 *     {"op": "add", "at": [ENDPOINT], "url": PEER_URL}
 *     {"op": "promote" | "remove" | "move" | "disarm", "at": [ENDPOINT], "id": "ID"}
 *     {"op": "defragment", "at": [ENDPOINT]}
 *     {"op": "compact", "at": [ENDPOINT], "id": REVISION}
 *     {"op": "snapshot", "at": [ENDPOINT], "file": PATH, "timeout_ms": N, "fail_after": BYTES}
 *     {"op": "check", "file": PATH}
 *     {"op": "threads", "at": [ENDPOINT, ...], "count": N}   N threads with some rounds each
 *     {"op": "cancel", "after_ms": N}                         another thread cancels then
 *
 * ENDPOINT is {"url": URL, "address": IP or null}.  The only argument is the configuration, as
 * JSON:
 * {"ca", "cert", "key": FILE, "user", "password", "timeout_ms", "stall_ms"}. */
#include "base/clock.h"
#include "base/json.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <stdio.h>

#define ENDPOINTS_MAX 16
#define THREADS_MAX 16
#define ROUNDS_OF_A_THREAD 5

static struct stw_etcd *etcd;
static pthread_t canceller;
static bool cancels;

struct command {
    struct stw_json root;
    struct stw_etcd_endpoint at[ENDPOINTS_MAX];
    char urls[ENDPOINTS_MAX][STW_ETCD_URL_MAX], addresses[ENDPOINTS_MAX][64];
    size_t count;
    struct stw_buf out;
};

static uint64_t number(struct stw_json root, const char *key)
{
    uint64_t n = 0;
    (void)stw_etcd_read_u64(stw_json_get(root, key), &n);
    return n;
}

static void read_endpoints(struct command *c)
{
    struct stw_json key, value;
    stw_json_foreach (stw_json_get(c->root, "at"), key, value) {
        size_t i = c->count;
        if (i == ENDPOINTS_MAX)
            return;
        (void)stw_json_strcpy(stw_json_get(value, "url"), c->urls[i], sizeof(c->urls[i]));
        bool address = stw_json_strcpy(stw_json_get(value, "address"), c->addresses[i],
                                       sizeof(c->addresses[i])) == 0;
        c->at[i] = (struct stw_etcd_endpoint){.url = c->urls[i],
                                              .address = address ? c->addresses[i] : NULL};
        c->count++;
    }
}

/* --- answers */

static const char *const troubles[] = {
    [STW_ETCD_FINE] = "FINE",
    [STW_ETCD_UNREACHABLE] = "UNREACHABLE",
    [STW_ETCD_TLS] = "TLS",
    [STW_ETCD_AUTH] = "AUTH",
    [STW_ETCD_NO_LEADER] = "NO_LEADER",
    [STW_ETCD_NOT_READY] = "NOT_READY",
    [STW_ETCD_UNHEALTHY] = "UNHEALTHY",
    [STW_ETCD_EXISTS] = "EXISTS",
    [STW_ETCD_NOT_FOUND] = "NOT_FOUND",
    [STW_ETCD_TOO_MANY_LEARNERS] = "TOO_MANY_LEARNERS",
    [STW_ETCD_NO_SPACE] = "NO_SPACE",
    [STW_ETCD_CORRUPT] = "CORRUPT",
    [STW_ETCD_UNSUPPORTED] = "UNSUPPORTED",
    [STW_ETCD_FAILED] = "FAILED",
};

static void add_text(struct command *c, const char *key, const char *value)
{
    stw_buf_addf(&c->out, ",\"%s\":", key);
    stw_buf_json_strz(&c->out, value);
}

static void add_id(struct command *c, const char *key, uint64_t n)
{
    stw_buf_addf(&c->out, ",\"%s\":\"%llu\"", key, (unsigned long long)n);
}

static void add_flag(struct command *c, const char *key, bool value)
{
    stw_buf_addf(&c->out, ",\"%s\":%s", key, value ? "true" : "false");
}

static void add_verdict(struct command *c, enum stw_etcd_trouble trouble,
                        const struct stw_error *err)
{
    add_text(c, "trouble", troubles[trouble]);
    add_text(c, "code", stw_err_name(err->code));
    add_text(c, "error", err->text);
}

static void add_health(struct command *c, const struct stw_etcd_health *h)
{
    char version[STW_SEMVER_LEN];
    stw_semver_text(h->version, version);
    stw_buf_adds(&c->out, "{\"health\":true");
    add_verdict(c, h->trouble, &h->err);
    add_flag(c, "answers", h->answers);
    add_flag(c, "linearizable", h->linearizable);
    add_flag(c, "learner", h->learner);
    add_id(c, "cluster", h->cluster_id);
    add_id(c, "member", h->member_id);
    add_id(c, "leader", h->leader_id);
    add_id(c, "term", h->raft_term);
    add_id(c, "index", h->raft_index);
    add_id(c, "applied", h->raft_applied_index);
    add_id(c, "size", (uint64_t)h->db_size);
    add_id(c, "in_use", (uint64_t)h->db_size_in_use);
    add_text(c, "version", version);
    stw_buf_addc(&c->out, '}');
}

static void add_members(struct command *c, const struct stw_etcd_members *m)
{
    add_id(c, "cluster", m->cluster_id);
    add_id(c, "revision", m->revision);
    stw_buf_adds(&c->out, ",\"members\":[");
    for (size_t i = 0; i < m->count; i++) {
        stw_buf_adds(&c->out, i > 0 ? ",{\"member\":true" : "{\"member\":true");
        add_id(c, "id", m->all[i].id);
        add_text(c, "name", m->all[i].name);
        add_text(c, "url", m->all[i].peer_url);
        add_flag(c, "learner", m->all[i].learner);
        stw_buf_addc(&c->out, '}');
    }
    stw_buf_addc(&c->out, ']');
}

/* --- commands */

static void do_round(struct command *c)
{
    struct stw_etcd_health health[ENDPOINTS_MAX];
    stw_etcd_round(etcd, c->at, c->count, health);
    stw_buf_adds(&c->out, ",\"round\":[");
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0)
            stw_buf_addc(&c->out, ',');
        add_health(c, &health[i]);
    }
    stw_buf_addc(&c->out, ']');
}

static int do_list(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    static struct stw_etcd_members m;
    if (stw_etcd_member_list(etcd, c->at, &m, trouble, err) != 0)
        return -1;
    add_members(c, &m);
    return 0;
}

static int do_add(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    char url[STW_ETCD_URL_MAX + 64] = "";
    uint64_t id = 0;
    (void)stw_json_strcpy(stw_json_get(c->root, "url"), url, sizeof(url));
    if (stw_etcd_member_add(etcd, c->at, url, &id, trouble, err) != 0)
        return -1;
    add_id(c, "id", id);
    return 0;
}

static int do_promote(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return stw_etcd_member_promote(etcd, c->at, number(c->root, "id"), trouble, err);
}

static int do_remove(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return stw_etcd_member_remove(etcd, c->at, number(c->root, "id"), trouble, err);
}

static int do_move(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return stw_etcd_move_leader(etcd, c->at, number(c->root, "id"), trouble, err);
}

static int do_alarms(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_alarms alarms;
    if (stw_etcd_alarms(etcd, c->at, &alarms, trouble, err) != 0)
        return -1;
    stw_buf_adds(&c->out, ",\"alarms\":[");
    for (size_t i = 0; i < alarms.count; i++)
        stw_buf_addf(&c->out, "%s[\"%llu\",%u]", i > 0 ? "," : "",
                     (unsigned long long)alarms.all[i].member_id, alarms.all[i].alarm);
    stw_buf_addc(&c->out, ']');
    return 0;
}

static int do_disarm(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return stw_etcd_alarm_disarm(etcd, c->at, number(c->root, "id"), STW_ETCD_ALARM_NOSPACE,
                                 trouble, err);
}

static int do_defragment(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return stw_etcd_defragment(etcd, c->at, trouble, err);
}

static int do_compact(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    return stw_etcd_compact(etcd, c->at, number(c->root, "id"), trouble, err);
}

struct sink {
    FILE *file;
    uint64_t fail_after, size;
};

static int sink(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    struct sink *s = ctx;
    s->size += len;
    if (s->fail_after > 0 && s->size > s->fail_after)
        return stw_fail(err, STW_ERR_INVALID, "the store is full");
    return fwrite(data, 1, len, s->file) == len ? 0 : stw_fail(err, STW_ERR_INTERNAL, "write");
}

static int do_snapshot(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    char path[1024] = "", version[STW_SEMVER_LEN];
    struct stw_etcd_snapshot snapshot;
    uint64_t timeout_ms = number(c->root, "timeout_ms");
    (void)stw_json_strcpy(stw_json_get(c->root, "file"), path, sizeof(path));
    struct sink s = {fopen(path, "wb"), number(c->root, "fail_after"), 0};
    if (!s.file)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot open the file");
    const struct stw_etcd_sink to = {sink, &s, timeout_ms ? (uint32_t)timeout_ms : 60000};
    int r = stw_etcd_snapshot(etcd, c->at, &to, &snapshot, trouble, err);
    (void)fclose(s.file);
    if (r != 0)
        return -1;
    stw_semver_text(snapshot.version, version);
    add_id(c, "size", snapshot.size_bytes);
    add_id(c, "revision", snapshot.revision);
    add_text(c, "sha256", snapshot.sha256);
    add_text(c, "version", version);
    return 0;
}

static int do_check(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    char path[1024] = "", block[4096], sha256[65];
    uint64_t size = 0;
    struct stw_etcd_check *check = stw_etcd_check_create();
    (void)stw_json_strcpy(stw_json_get(c->root, "file"), path, sizeof(path));
    FILE *file = fopen(path, "rb");
    *trouble = STW_ETCD_FINE;
    for (size_t n; file && (n = fread(block, 1, sizeof(block), file)) > 0;)
        (void)stw_etcd_check_add(check, block, n);
    if (file)
        (void)fclose(file);
    int r = stw_etcd_check_end(check, &size, sha256, err);
    stw_etcd_check_destroy(check);
    if (r != 0)
        return -1;
    add_id(c, "size", size);
    add_text(c, "sha256", sha256);
    return 0;
}

static void *run_rounds(void *ctx)
{
    const struct command *c = ctx;
    struct stw_etcd_health health[ENDPOINTS_MAX];
    size_t fine = 0;
    for (int i = 0; i < ROUNDS_OF_A_THREAD; i++) {
        stw_etcd_round(etcd, c->at, c->count, health);
        for (size_t at = 0; at < c->count; at++)
            fine += health[at].linearizable ? 1 : 0;
    }
    return (void *)(uintptr_t)fine; /* NOLINT */
}

static void do_threads(struct command *c)
{
    pthread_t threads[THREADS_MAX];
    size_t count = STW_MIN(number(c->root, "count"), (uint64_t)THREADS_MAX), fine = 0;
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run_rounds, c) != 0)
            abort();
    for (size_t i = 0; i < count; i++) {
        void *ret = NULL;
        (void)pthread_join(threads[i], &ret);
        fine += (size_t)(uintptr_t)ret;
    }
    add_id(c, "fine", fine);
    add_id(c, "asked", count * ROUNDS_OF_A_THREAD * c->count);
}

static void *cancel_later(void *ctx)
{
    (void)usleep((useconds_t)(uintptr_t)ctx * 1000);
    stw_etcd_cancel(etcd);
    return NULL;
}

static void do_cancel(struct command *c)
{
    /* NOLINTNEXTLINE */
    void *ms = (void *)(uintptr_t)number(c->root, "after_ms");
    if (cancels || pthread_create(&canceller, NULL, cancel_later, ms) != 0)
        abort();
    cancels = true;
}

static const struct {
    const char *name;
    int (*ask)(struct command *c, enum stw_etcd_trouble *trouble, struct stw_error *err);
    void (*run)(struct command *c);
} ops[] = {
    {"round", NULL, do_round},       {"list", do_list, NULL},
    {"add", do_add, NULL},           {"promote", do_promote, NULL},
    {"remove", do_remove, NULL},     {"move", do_move, NULL},
    {"alarms", do_alarms, NULL},     {"disarm", do_disarm, NULL},
    {"snapshot", do_snapshot, NULL}, {"defragment", do_defragment, NULL},
    {"compact", do_compact, NULL},   {"check", do_check, NULL},
    {"threads", NULL, do_threads},   {"cancel", NULL, do_cancel},
};

static void ask(struct command *c, size_t op)
{
    enum stw_etcd_trouble trouble = STW_ETCD_FAILED;
    struct stw_error err = {0};
    int r = ops[op].ask(c, &trouble, &err);
    stw_buf_addf(&c->out, ",\"result\":%d", r);
    add_verdict(c, trouble, &err);
}

static void run_command(const char *line, size_t len)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct command c = {.out = STW_BUF_INIT(1u << 20)};
    uint64_t begin = stw_now_ms(&stw_clock_system);
    if (stw_json_scan(&doc, line, len, NULL) != 0)
        abort();
    c.root = stw_json_root(&doc);
    read_endpoints(&c);
    stw_buf_adds(&c.out, "{\"ok\":true");
    for (size_t i = 0; i < STW_COUNT(ops); i++) {
        if (!stw_json_is(stw_json_get(c.root, "op"), ops[i].name))
            continue;
        if (ops[i].run)
            ops[i].run(&c);
        else
            ask(&c, i);
    }
    add_id(&c, "ms", stw_now_ms(&stw_clock_system) - begin);
    stw_buf_addc(&c.out, '}');
    (void)puts(stw_buf_str(&c.out));
    (void)fflush(stdout);
    stw_buf_done(&c.out);
}

/* --- configuration */

static char *file_of(struct stw_json root, const char *key)
{
    char path[1024], *text = NULL;
    size_t len = 0;
    if (stw_json_strcpy(stw_json_get(root, key), path, sizeof(path)) != 0)
        return NULL;
    if (stw_read_file(path, 1u << 20, &text, &len, NULL) != 0)
        return NULL;
    return text;
}

static int open_etcd(const char *text)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    if (stw_json_scan(&doc, text, strlen(text), &err) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    stw_autofree char *ca = file_of(root, "ca"), *cert = file_of(root, "cert");
    stw_autofree char *key = file_of(root, "key");
    stw_autofree char *user = stw_json_strdup(stw_json_get(root, "user"));
    stw_autofree char *password = stw_json_strdup(stw_json_get(root, "password"));
    struct stw_etcd_config config = {.tls = {ca, cert, key},
                                     .user = user,
                                     .password = password,
                                     .timeout_ms = (uint32_t)number(root, "timeout_ms")};
    if (stw_etcd_create(&config, &etcd, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    if (number(root, "stall_ms") > 0)
        etcd->stall_ms = (uint32_t)number(root, "stall_ms");
    return 0;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;
    if (argc != 2 || open_etcd(argv[1]) != 0)
        return 2;
    for (ssize_t len; (len = getline(&line, &cap, stdin)) > 0;)
        run_command(line, (size_t)len);
    free(line);
    if (cancels)
        (void)pthread_join(canceller, NULL);
    stw_etcd_destroy(etcd);
    return 0;
}
