/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward snapshot`: the snapshot operations of EtcdBackup and EtcdRestore, for agent pods with a
 * volume, and for users. */
#include "cmd/snapshot.h"

#include "base/log.h"
#include "base/process/sandbox.h"
#include "base/thread.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/extension.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#define RESULT_MAX_BYTES 4096 /* the kubelet's limit for a termination message */

static const char usage[] =
    "Usage: steward snapshot save --endpoints=URL,URL STORE [OPTIONS]\n"
    "       steward snapshot fetch STORE [--newest] --to=FILE\n"
    "       steward snapshot verify STORE [--newest] | FILE\n"
    "       steward snapshot list STORE\n"
    "       steward snapshot prune STORE --max-backups=N | --max-age=DURATION\n\n"
    "Takes snapshots of an etcd and keeps them in a store, which is --s3=BUCKET/PATH or\n"
    "--folder=FOLDER/NAME.  Each is named PATH_v<revision>_<time>.  Every snapshot is checked by "
    "the\n"
    "SHA-256 that etcd puts at its end: when it is taken, when it was written, when it is "
    "fetched.\n"
    "Secrets are read from files and from the environment, never from the command line.\n";

/* --- printing */

static void write_result(const char *path, const struct stw_buf *text)
{
    stw_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len)
        stw_print_line(stderr, "steward snapshot: cannot write %s: %s", path,
                       strerrordesc_np(errno));
}

static void print_snapshot(const struct eb_snapshot *s)
{
    char revision[48] = "";
    if (s->revision)
        stw_format(revision, sizeof(revision), ", revision %llu", (unsigned long long)s->revision);
    stw_print_line(stdout, "%s: %llu bytes, sha256 %s%s, %s", s->key,
                   (unsigned long long)s->size_bytes, *s->sha256 ? s->sha256 : "not known",
                   revision, s->verified ? "verified" : "not verified");
    if (s->pruned)
        stw_print_line(stdout, "%u older ones removed", s->pruned);
    if (*s->prune_error)
        stw_print_line(stderr, "steward snapshot: older ones could not be removed: %s",
                       s->prune_error);
}

static int report_snapshot(const struct stw_snapshot_work *w, const struct eb_snapshot *s)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(RESULT_MAX_BYTES);
    const struct stw_snapshot_options *o = &w->options;
    bool ok = s->fault == EB_SNAPSHOT_FINE;
    eb_snapshot_write(s, &text);
    if (o->result && *o->result)
        write_result(o->result, &text);
    if (stw_streq(o->output, "json")) {
        stw_print_json(stdout, stw_buf_str(&text), text.len);
        putchar('\n');
    } else if (ok)
        print_snapshot(s);
    if (!ok)
        stw_print_line(stderr, "steward snapshot: %s", s->err.text);
    return ok ? STW_EXIT_OK : STW_EXIT_REFUSED;
}

/* Writes a result also if the command could not start, for clients that read only the result. */
static int give_up(const struct stw_snapshot_work *w, const struct stw_error *err)
{
    struct eb_snapshot s = {.fault = EB_SNAPSHOT_OTHER, .reason = "InternalError", .err = *err};
    if (err->code == STW_ERR_INVALID)
        return stw_usage_error("snapshot", "%s", err->text);
    return report_snapshot(w, &s);
}

static int give_up_store(const struct stw_snapshot_work *w, enum stw_store_trouble t,
                         const struct stw_error *err)
{
    struct eb_snapshot s = {.fault = EB_SNAPSHOT_STORE, .err = *err};
    stw_format(s.reason, sizeof(s.reason), "%s", stw_store_trouble_name(t));
    return report_snapshot(w, &s);
}

/* --- early end: cancels the running operation, which then cleans up */

static void *await_signal(void *ctx)
{
    struct stw_snapshot_work *w = ctx;
    sigset_t set;
    int number;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (sigwait(&set, &number) != 0)
        return NULL;
    if (w->etcd)
        stw_etcd_cancel(w->etcd);
    stw_store_cancel(w->store);
    return NULL;
}

static int heed_signals(struct stw_snapshot_work *w, struct stw_error *err)
{
    pthread_t thread;
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (stw_thread_start(&thread, "signals", 0, await_signal, w, err) != 0)
        return -1;
    return pthread_detach(thread) == 0 ? 0 : stw_fail(err, STW_ERR_INTERNAL, "no thread");
}

/* --- commands */

static struct eb_snapshot_retention make_retention(const struct stw_snapshot_options *o)
{
    return (struct eb_snapshot_retention){.max_backups = o->max_backups,
                                          .max_age_s = o->max_age_ms / 1000,
                                          .keep = o->keep && *o->keep ? o->keep : NULL,
                                          .owner = o->owner};
}

static int save_snapshot(struct stw_snapshot_work *w)
{
    const struct stw_snapshot_options *o = &w->options;
    struct stw_error err = {0};
    struct eb_snapshot s;
    if (stw_snapshot_open_etcd(w, &err) != 0 || stw_snapshot_open_store(w, &err) != 0 ||
        heed_signals(w, &err) != 0)
        return give_up(w, &err);
    const struct eb_snapshot_request request = {
        .etcd = w->etcd,
        .endpoints = w->endpoints,
        .endpoint_count = w->endpoint_count,
        .store = w->store,
        .path = w->path,
        .named = o->exact,
        .verify = !o->no_verify,
        .timeout_s = (o->timeout_ms + 999) / 1000,
        .retention = make_retention(o),
        .clock = &stw_clock_system,
    };
    (void)eb_snapshot_save(&request, &s);
    return report_snapshot(w, &s);
}

/* The newest one that is not dated in the future, or the first one if all are. */
static const struct eb_snapshot_entry *find_newest(const struct eb_snapshot_list *list)
{
    int64_t now = stw_wall_us(&stw_clock_system) / 1000000;
    size_t i = 0;
    while (i < list->count && list->all[i].name.time > now)
        i++;
    if (i == list->count)
        return &list->all[0];
    if (i > 0)
        stw_print_line(stderr,
                       "steward snapshot: skipped %zu whose names have a time in the future", i);
    return &list->all[i];
}

/* Selects the key. With --newest, also sets the revision and time from its name. */
static int find_key(struct stw_snapshot_work *w, struct eb_snapshot *s,
                    enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct eb_snapshot_list list;
    *trouble = STW_STORE_FAILED;
    if (!w->options.newest) {
        if (stw_format_whole(s->key, sizeof(s->key), "%s", w->path) != 0)
            return stw_fail(err, STW_ERR_INVALID, "PATH is too long");
        return 0;
    }
    if (eb_snapshot_list(w->store, w->path, NULL, &list, trouble, err) != 0)
        return -1;
    int rc = 0;
    if (list.count > 0) {
        const struct eb_snapshot_entry *newest = find_newest(&list);
        stw_format(s->key, sizeof(s->key), "%s", newest->key);
        s->revision = newest->name.revision;
        s->time = newest->name.time;
    } else {
        *trouble = STW_STORE_NOT_FOUND;
        rc = stw_fail(err, STW_ERR_NOT_FOUND,
                      "there is no snapshot whose name begins with \"%s_v\"", w->path);
    }
    eb_snapshot_list_done(&list);
    return rc;
}

static int open_and_find(struct stw_snapshot_work *w, const char *file, struct eb_snapshot *s,
                         int *ret_exit)
{
    struct stw_error err = {0};
    enum stw_store_trouble trouble = STW_STORE_FAILED;
    if (w->options.sha256 &&
        stw_format_whole(s->sha256, sizeof(s->sha256), "%s", w->options.sha256) != 0) {
        (void)stw_fail(&err, STW_ERR_INVALID, "--sha256 is longer than a SHA-256");
        *ret_exit = give_up(w, &err);
        return -1;
    }
    if ((file ? stw_snapshot_open_file(w, file, &err) : stw_snapshot_open_store(w, &err)) != 0 ||
        heed_signals(w, &err) != 0) {
        *ret_exit = give_up(w, &err);
        return -1;
    }
    if (find_key(w, s, &trouble, &err) != 0) {
        *ret_exit = give_up_store(w, trouble, &err);
        return -1;
    }
    return 0;
}

static int verify_snapshot(struct stw_snapshot_work *w, const char *file)
{
    struct eb_snapshot s = {0};
    int status;
    if (open_and_find(w, file, &s, &status) != 0)
        return status;
    (void)eb_snapshot_check(w->store, s.key, NULL, NULL, &s);
    return report_snapshot(w, &s);
}

static int to_file(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    int fd = *(const int *)ctx;
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return stw_fail(err, STW_ERR_UNAVAILABLE, "cannot write the snapshot: %s",
                            strerrordesc_np(errno));
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int file_fault(struct eb_snapshot *s, const char *what, const char *path)
{
    s->fault = EB_SNAPSHOT_OTHER;
    stw_format(s->reason, sizeof(s->reason), "WriteFailed");
    return stw_fail(&s->err, STW_ERR_UNAVAILABLE, "cannot %s %s: %s", what, path,
                    strerrordesc_np(errno));
}

/* The file is renamed into place when it is complete, verified and on disk. */
static int fetch_into(struct stw_snapshot_work *w, struct eb_snapshot *s)
{
    stw_autofree char *partial = NULL;
    const char *to = w->options.to;
    if (asprintf(&partial, "%s.partial", to) < 0)
        return file_fault(s, "name", to);
    stw_autoclose int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return file_fault(s, "create", partial);
    int rc = eb_snapshot_check(w->store, s->key, to_file, &fd, s);
    if (rc == 0 && (fsync(fd) != 0 || rename(partial, to) != 0))
        rc = file_fault(s, "finish", to);
    if (rc != 0)
        (void)unlink(partial);
    return rc;
}

static int fetch_snapshot(struct stw_snapshot_work *w)
{
    struct eb_snapshot s = {0};
    int status;
    if (!w->options.to || !*w->options.to)
        return stw_usage_error("snapshot", "fetch: say where to: --to");
    if (open_and_find(w, NULL, &s, &status) != 0)
        return status;
    (void)fetch_into(w, &s);
    return report_snapshot(w, &s);
}

static void print_entry(const struct eb_snapshot_entry *e, bool json, bool first)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(16 * 1024);
    char when[STW_TIME_LEN];
    stw_time_format(e->name.time * 1000000, when);
    if (!json) {
        stw_print_line(stdout, "%s  revision %llu  %s  %llu bytes", e->key,
                       (unsigned long long)e->name.revision, when,
                       (unsigned long long)e->size_bytes);
        return;
    }
    stw_buf_adds(&text, first ? "{\"key\":" : ",{\"key\":");
    stw_buf_json_strz(&text, e->key);
    stw_buf_addf(&text, ",\"revision\":%llu,\"time\":\"%s\",\"sizeBytes\":%llu}",
                 (unsigned long long)e->name.revision, when, (unsigned long long)e->size_bytes);
    stw_print_json(stdout, stw_buf_str(&text), text.len);
}

static void print_list(const struct stw_snapshot_work *w, const struct eb_snapshot_list *list,
                       const bool *only)
{
    bool json = stw_streq(w->options.output, "json"), first = true;
    if (json)
        putchar('[');
    for (size_t i = 0; i < list->count; i++) {
        if (only && !only[i])
            continue;
        print_entry(&list->all[i], json, first);
        first = false;
    }
    if (json)
        puts("]");
}

static int list_snapshots(struct stw_snapshot_work *w, bool old_ones)
{
    struct eb_snapshot_list all;
    struct stw_error err = {0};
    enum stw_store_trouble trouble;
    const struct eb_snapshot_retention r = make_retention(&w->options);
    if (stw_snapshot_open_store(w, &err) != 0)
        return give_up(w, &err);
    if (eb_snapshot_list(w->store, w->path, old_ones ? &r : NULL, &all, &trouble, &err) != 0)
        return give_up_store(w, trouble, &err);
    stw_autofree bool *goes = calloc(all.count + 1, sizeof(*goes));
    if (old_ones && goes)
        eb_snapshot_choose_old(&all, &r, stw_wall_us(&stw_clock_system) / 1000000, goes);
    if (goes)
        print_list(w, &all, old_ones ? goes : NULL);
    eb_snapshot_list_done(&all);
    if (!goes) {
        (void)stw_fail_memory(&err);
        return give_up(w, &err);
    }
    return STW_EXIT_OK;
}

static int prune_snapshots(struct stw_snapshot_work *w)
{
    struct stw_error err = {0};
    enum stw_store_trouble trouble;
    unsigned count;
    const struct eb_snapshot_retention r = make_retention(&w->options);
    if (r.max_backups <= 0 && r.max_age_s <= 0)
        return stw_usage_error("snapshot", "prune: say what to remove: --max-backups, --max-age");
    if (w->options.dry_run)
        return list_snapshots(w, true);
    if (stw_snapshot_open_store(w, &err) != 0 || heed_signals(w, &err) != 0)
        return give_up(w, &err);
    const struct eb_snapshot_pruning p = {&r, NULL, stw_wall_us(&stw_clock_system) / 1000000};
    if (eb_snapshot_prune(w->store, w->path, &p, &count, &trouble, &err) != 0)
        return give_up_store(w, trouble, &err);
    printf(stw_streq(w->options.output, "json") ? "{\"ok\":true,\"pruned\":%u}\n" : "%u removed\n",
           count);
    return STW_EXIT_OK;
}

static int run_snapshot_command(struct stw_snapshot_work *w, const char *command,
                                const char *operand)
{
    if (operand && !stw_streq(command, "verify"))
        return stw_usage_error("snapshot", "unexpected argument \"%s\"", operand);
    if (!stw_streq(w->options.output, "text") && !stw_streq(w->options.output, "json"))
        return stw_usage_error("snapshot", "--output must be text or json");
    if (stw_streq(command, "save"))
        return save_snapshot(w);
    if (stw_streq(command, "fetch"))
        return fetch_snapshot(w);
    if (stw_streq(command, "verify"))
        return verify_snapshot(w, operand);
    if (stw_streq(command, "list"))
        return list_snapshots(w, false);
    if (stw_streq(command, "prune"))
        return prune_snapshots(w);
    return stw_usage_error("snapshot", "unknown command \"%s\"", command);
}

static int run_snapshot(const struct stw_call *call, void *settings, int count, char **operands)
{
    (void)call;
    const struct stw_snapshot_options *o = settings;
    struct stw_snapshot_work w = {.options = *o};
    if (count == 0)
        return stw_usage_error("snapshot", "say what to do: save, fetch, verify, list, prune");
    if (count > 2)
        return stw_usage_error("snapshot", "unexpected argument \"%s\"", operands[2]);
    int status = run_snapshot_command(&w, operands[0], count > 1 ? operands[1] : NULL);
    stw_snapshot_close(&w);
    return status;
}

static int start_snapshot(const struct stw_call *call)
{
    struct stw_snapshot_options options = {0};
    stw_sandbox_no_dumps(); /* keys of stores and of etcd */
    return stw_flags_run(call, &options, run_snapshot);
}

const struct stw_command stw_command_snapshot = {
    .name = "snapshot",
    .summary = "take, fetch, verify, list and remove snapshots of an etcd",
    .usage = usage,
    .operands = "save|fetch|verify|list|prune",
    .flags = stw_snapshot_flags,
    .run = start_snapshot,
};
