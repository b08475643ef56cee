/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/target/targets.h"

#include "base/log.h"
#include "base/process/notify.h"
#include "base/thread.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>

#define STACK_BYTES ((size_t)256 * 1024)
#define FILE_MAX_BYTES (1u << 20)
#define SETTLE_MS 100
#define POLL_MS 60000
#define LISTENERS_MAX 8

struct listener {
    dbu_target_change_fn *fn;
    void *ctx;
};

struct dbu_target_store {
    char *path, *folder;
    void (*on_text)(void *ctx, const char *text, size_t len);
    void *text_ctx;

    pthread_mutex_t lock; /* guards `now` */
    struct stw_targets *now;

    pthread_mutex_t listening; /* guards the listeners; held while they are called */
    struct listener listeners[LISTENERS_MAX];

    /* Used by the thread only. */
    struct stw_hash taken, seen, refused; /* contents: in use, last seen, reported as invalid */
    struct stw_hash passed;               /* content that was last passed to on_text */
    struct stw_hash fingerprint;          /* of the list in use */

    struct stw_notify notify;
    int wake;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    struct stw_series *good, *bad, *count;
};

struct stw_targets *dbu_target_store_get(void *store)
{
    struct dbu_target_store *s = store;
    STW_LOCKED(&s->lock);
    return stw_targets_ref(s->now);
}

/* --- listeners */

int dbu_target_store_on_change(struct dbu_target_store *s, dbu_target_change_fn *fn, void *ctx)
{
    int rc = -1;
    STW_LOCKED(&s->listening);
    for (size_t i = 0; i < LISTENERS_MAX && rc < 0; i++)
        if (!s->listeners[i].fn) {
            s->listeners[i] = (struct listener){fn, ctx};
            rc = 0;
        }
    return rc;
}

void dbu_target_store_forget(struct dbu_target_store *s, dbu_target_change_fn *fn, void *ctx)
{
    STW_LOCKED(&s->listening);
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fn == fn && s->listeners[i].ctx == ctx)
            s->listeners[i] = (struct listener){0};
}

static void notify_listeners(struct dbu_target_store *s)
{
    struct stw_targets *now = dbu_target_store_get(s);
    pthread_mutex_lock(&s->listening);
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fn)
            s->listeners[i].fn(s->listeners[i].ctx, now);
    pthread_mutex_unlock(&s->listening);
    stw_targets_unref(now);
}

/* --- the file */

static void log_lines(enum stw_log_level level, const char *message, const struct stw_buf *lines)
{
    for (const char *p = stw_buf_str(lines); *p;) {
        char line[1024];
        size_t len = strcspn(p, "\n");
        stw_format(line, sizeof(line), "%.*s", (int)STW_MIN(len, sizeof(line) - 1), p);
        stw_log(level, message, STW_STR("detail", line));
        p += len + (p[len] == '\n');
    }
}

static void replace_targets(struct dbu_target_store *s, struct dbu_target_file *file)
{
    pthread_mutex_lock(&s->lock);
    struct stw_targets *old = s->now;
    s->now = stw_take(file->targets);
    pthread_mutex_unlock(&s->lock);
    stw_targets_unref(old);
    s->fingerprint = file->fingerprint;
    stw_series_set(s->count, (double)stw_targets_count(s->now));
    log_lines(STW_LOG_WARN, "database targets: warning", &file->warnings);
    stw_log(STW_LOG_INFO, "database targets read", STW_STR("file", s->path),
            STW_INT("targets", stw_targets_count(s->now)));
}

static void report_refused_file(struct dbu_target_store *s, const struct dbu_target_file *file,
                                const struct stw_error *err)
{
    stw_series_add(s->bad, 1);
    if (file->errors.len)
        log_lines(STW_LOG_ERROR, "database targets refused, the old ones stay", &file->errors);
    else
        stw_log(STW_LOG_ERROR, "database targets refused, the old ones stay",
                STW_STR("detail", err->text));
}

/* Returns 1 if the list has changed. */
static int load_targets(struct dbu_target_store *s, const char *text, size_t len,
                        struct stw_error *err)
{
    dbu_autotargetfile struct dbu_target_file file = {0};
    if (dbu_target_file_parse(s->path, text, len, &file, err) < 0) {
        report_refused_file(s, &file, err);
        return -1;
    }
    stw_series_add(s->good, 1);
    if (s->now && stw_hash_equal(s->fingerprint, file.fingerprint))
        return 0; /* another part of the file has changed */
    replace_targets(s, &file);
    return 1;
}

static void report_unreadable_file(struct dbu_target_store *s, const struct stw_error *err)
{
    const struct dbu_target_file none = {0};
    report_refused_file(s, &none, err);
}

static void pass_on(struct dbu_target_store *s, struct stw_hash hash, const char *text, size_t len)
{
    if (s->on_text && text && !stw_hash_equal(hash, s->passed))
        s->on_text(s->text_ctx, text, len);
    s->passed = hash;
}

/* A content is used once two consecutive checks found it.  A file that is written in place is
 * incomplete for a while, and half a list of targets can be valid. */
uint64_t dbu_target_store_look(struct dbu_target_store *s)
{
    stw_autofree char *text = NULL;
    size_t len = 0;
    struct stw_error err = {0};
    int rc = stw_read_file(s->path, FILE_MAX_BYTES, &text, &len, &err);
    struct stw_hash hash =
        rc < 0 ? stw_hash_bytes(err.text, strlen(err.text)) : stw_hash_bytes(text, len);
    if (stw_hash_equal(hash, s->taken)) {
        pass_on(s, hash, text, len); /* the content in between was refused */
        s->seen = s->refused = hash;
        return POLL_MS;
    }
    if (!stw_hash_equal(hash, s->seen)) {
        s->seen = hash;
        return SETTLE_MS;
    }
    if (stw_hash_equal(hash, s->refused))
        return POLL_MS; /* reported already */
    s->refused = hash;
    if (rc < 0) {
        report_unreadable_file(s, &err);
        return POLL_MS;
    }
    pass_on(s, hash, text, len);
    rc = load_targets(s, text, len, &err);
    if (rc >= 0)
        s->taken = hash;
    if (rc > 0)
        notify_listeners(s);
    return POLL_MS;
}

static int first_look(struct dbu_target_store *s, struct stw_error *err)
{
    stw_autofree char *text = NULL;
    size_t len = 0;
    if (stw_read_file(s->path, FILE_MAX_BYTES, &text, &len, err) != 0 ||
        load_targets(s, text, len, err) < 0)
        return -1;
    s->taken = s->seen = s->refused = s->passed = stw_hash_bytes(text, len);
    return 0;
}

/* --- the thread */

static void wait_for_file(struct dbu_target_store *s, uint64_t ms)
{
    struct pollfd fds[] = {{.fd = s->wake, .events = POLLIN},
                           {.fd = s->notify.fd, .events = POLLIN}};
    (void)poll(fds, STW_COUNT(fds), (int)ms);
}

/* Sets up the watch before reading the file, so that later changes are reported. */
static void *targets_thread(void *arg)
{
    struct dbu_target_store *s = arg;
    struct stw_error err = {0};
    while (!atomic_load(&s->stop)) {
        stw_notify_drain(&s->notify);
        if (stw_notify_folder(&s->notify, s->folder, &err) != 0)
            stw_log(STW_LOG_DEBUG, "the configuration is only looked at each minute",
                    STW_STR("error", err.text));
        wait_for_file(s, dbu_target_store_look(s));
    }
    return NULL;
}

int dbu_target_store_start(struct dbu_target_store *s, struct stw_error *err)
{
    if (!s->path)
        return 0;
    if (stw_thread_start(&s->thread, "targets", STACK_BYTES, targets_thread, s, err) != 0)
        return -1;
    s->running = true;
    return 0;
}

void dbu_target_store_stop(struct dbu_target_store *s)
{
    uint64_t one = 1;
    if (!s || !s->running)
        return;
    atomic_store(&s->stop, true);
    ssize_t n = write(s->wake, &one, sizeof(one)); /* a full eventfd wakes the thread, too */
    (void)n;
    (void)pthread_join(s->thread, NULL);
    s->running = false;
}

/* --- create and destroy */

static void register_target_metrics(struct dbu_target_store *s, struct stw_metrics *m)
{
    struct stw_family *reloads =
        stw_metrics_family(m, STW_COUNTER, "_config_reloads_total",
                           "How often the database targets were read from the configuration file.",
                           (const char *const[]){"result", NULL}, NULL);
    s->good = STW_SERIES(reloads, "success");
    s->bad = STW_SERIES(reloads, "error");
    s->count = STW_SERIES0(stw_metrics_family(m, STW_GAUGE, "_database_targets",
                                              "Database targets that are configured.", NULL, NULL));
}

static int copy_path(struct dbu_target_store *s, const char *path, struct stw_error *err)
{
    const char *slash = strrchr(path, '/');
    s->path = strdup(path);
    if (!slash)
        s->folder = strdup(".");
    else
        s->folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!s->path || !s->folder)
        return stw_fail_memory(err);
    return 0;
}

int dbu_target_store_create(const struct dbu_target_store_config *config,
                            struct dbu_target_store **ret, struct stw_error *err)
{
    struct dbu_target_store *s = calloc(1, sizeof(*s));
    if (!s)
        return stw_fail_memory(err);
    s->notify = STW_NOTIFY_INIT;
    s->on_text = config->text;
    s->text_ctx = config->text_ctx;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_mutex_init(&s->listening, NULL);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    register_target_metrics(s, config->metrics);
    int rc = 0;
    if (s->wake < 0)
        rc = stw_fail(err, STW_ERR_INTERNAL, "cannot make an eventfd: %s", strerrordesc_np(errno));
    if (rc == 0 && config->path && *config->path &&
        (copy_path(s, config->path, err) != 0 || first_look(s, err) != 0))
        rc = -1;
    if (rc != 0) {
        dbu_target_store_destroy(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void dbu_target_store_destroy(struct dbu_target_store *s)
{
    if (!s)
        return;
    dbu_target_store_stop(s);
    stw_notify_done(&s->notify);
    if (s->wake >= 0)
        (void)close(s->wake);
    stw_targets_unref(s->now);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_mutex_destroy(&s->listening);
    free(s->path);
    free(s->folder);
    free(s);
}
