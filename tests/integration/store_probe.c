/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives lib/store against real servers, for test_store.py.
 *
 *     store_probe CONFIG put KEY FILE [CANCEL_AFTER_MS]
 *     store_probe CONFIG get KEY FILE | list PREFIX | delete KEY | clean PREFIX SECONDS
 *
 * CONFIG is a file: {"folder": PATH} or {"endpoint", "region", "bucket", "credentials": TEXT, "ca",
 * "sse", "path_style", "timeout_ms", "reach", "limit_ms"}; limit_ms is for all calls together.
 * Prints one line of JSON; exit status 1 on failure. */
#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/util.h"
#include "store/credentials.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PIECE 100000 /* does not divide the size of a part */

static struct {
    struct stw_store *store;
    struct stw_reach *reach;
    enum stw_store_trouble trouble;
    struct stw_error err;
    int64_t cancel_ms;
    char *kept[16];
    size_t kept_count;
} probe;

static const char *text(struct stw_json config, const char *key)
{
    char *value = stw_json_strdup(stw_json_get(config, key));
    return probe.kept[probe.kept_count++] = value;
}

static int open_store(struct stw_json config)
{
    struct stw_credentials c = {0};
    int64_t timeout_ms = 0;
    const char *folder = text(config, "folder"), *credentials = text(config, "credentials");
    if (folder)
        return stw_store_folder_create(folder, &probe.store, &probe.err);
    if (credentials &&
        stw_credentials_parse(credentials, strlen(credentials), NULL, &c, &probe.err) != 0)
        return -1;
    (void)stw_json_int(stw_json_get(config, "timeout_ms"), &timeout_ms);
    const char *reach = text(config, "reach");
    if (reach && stw_reach_parse(reach, &probe.reach, &probe.err) != 0)
        return -1;
    const struct stw_store_s3 s3 = {
        .endpoint = text(config, "endpoint"),
        .region = text(config, "region"),
        .bucket = text(config, "bucket"),
        .access_key = credentials ? c.access_key : NULL,
        .secret_key = c.secret_key,
        .session_token = *c.session_token ? c.session_token : NULL,
        .ca = text(config, "ca"),
        .sse = text(config, "sse"),
        .path_style = stw_json_bool(stw_json_get(config, "path_style"), false),
        .timeout_ms = (uint32_t)timeout_ms,
        .reach = probe.reach,
    };
    int rc = stw_store_s3_create(&s3, &probe.store, &probe.err);
    stw_credentials_wipe(&c);
    return rc;
}

static void *cancel(void *ctx)
{
    struct timespec wait = {probe.cancel_ms / 1000, probe.cancel_ms % 1000 * 1000000};
    (void)ctx;
    (void)nanosleep(&wait, NULL);
    stw_store_cancel(probe.store);
    return NULL;
}

static int put(const char *key, const char *path, const char *cancel_ms)
{
    static char piece[PIECE];
    struct stw_upload *u = NULL;
    pthread_t thread;
    FILE *f = fopen(path, "rb");
    int rc = f ? stw_upload_begin(probe.store, key, &u, &probe.trouble, &probe.err) : -1;
    if (cancel_ms && stw_parse_int(cancel_ms, 0, 60000, &probe.cancel_ms) == 0)
        if (stw_thread_start(&thread, "cancel", 0, cancel, NULL, &probe.err) != 0)
            abort();
    while (rc == 0) {
        size_t n = fread(piece, 1, sizeof(piece), f);
        if (n == 0)
            break;
        rc = stw_upload_write(u, piece, n, &probe.trouble, &probe.err);
    }
    if (rc == 0)
        rc = stw_upload_finish(u, &probe.trouble, &probe.err);
    else
        stw_upload_abort(u);
    if (cancel_ms)
        (void)pthread_join(thread, NULL);
    if (f)
        (void)fclose(f);
    return rc;
}

static int to_file(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    return fwrite(data, 1, len, ctx) == len ? 0 : stw_fail(err, STW_ERR_INTERNAL, "disk");
}

static int get(const char *key, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return stw_fail(&probe.err, STW_ERR_INTERNAL, "cannot write");
    int rc = stw_store_read(probe.store, key, to_file, f, &probe.trouble, &probe.err);
    (void)fclose(f);
    return rc;
}

static int show(void *ctx, const char *key, uint64_t size)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(65536);
    unsigned *count = ctx;
    stw_buf_json_strz(&out, key);
    printf("%s%s: %llu", (*count)++ ? ", " : "", stw_buf_str(&out), (unsigned long long)size);
    return 0;
}

static bool any_key(void *ctx, const char *key)
{
    (void)ctx;
    (void)key;
    return true;
}

static int run(int argc, char **argv)
{
    int64_t seconds;
    unsigned count = 0;
    const char *op = argv[2], *key = argv[3];
    if (stw_streq(op, "put") && argc >= 5)
        return put(key, argv[4], argc > 5 ? argv[5] : NULL);
    if (stw_streq(op, "get") && argc == 5)
        return get(key, argv[4]);
    if (stw_streq(op, "delete"))
        return stw_store_delete(probe.store, key, &probe.trouble, &probe.err);
    if (stw_streq(op, "list")) {
        printf("{\"objects\": {");
        int rc = stw_store_list(probe.store, key, show, &count, &probe.trouble, &probe.err);
        printf("}, ");
        return rc;
    }
    if (stw_streq(op, "clean") && argc == 5 && stw_parse_int(argv[4], 0, 1 << 30, &seconds) == 0) {
        const struct stw_store_filter all = {any_key, NULL};
        int64_t before = stw_wall_us(&stw_clock_system) - seconds * 1000000;
        int rc =
            stw_store_clean(probe.store, key, &all, before, &count, &probe.trouble, &probe.err);
        printf("{\"cleaned\": %u, ", count);
        return rc;
    }
    return stw_fail(&probe.err, STW_ERR_INVALID, "no such command");
}

/* Peak resident memory, in KiB. */
static long peak_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    return kb;
}

int main(int argc, char **argv)
{
    stw_autofree char *file = NULL;
    stw_autobuf struct stw_buf why = STW_BUF_INIT(65536);
    stw_autojson struct stw_json_doc doc = {0};
    size_t len;
    if (argc < 4 || stw_read_file(argv[1], 1 << 20, &file, &len, &probe.err) != 0 ||
        stw_json_scan(&doc, file, len, &probe.err) != 0)
        return 2;
    int64_t limit_ms = 0;
    int rc = open_store(stw_json_root(&doc));
    (void)stw_json_int(stw_json_get(stw_json_root(&doc), "limit_ms"), &limit_ms);
    if (rc == 0)
        stw_store_set_timeout(probe.store, (uint64_t)limit_ms);
    bool begun = rc == 0 && (stw_streq(argv[2], "list") || stw_streq(argv[2], "clean"));
    if (rc == 0)
        rc = run(argc, argv);
    stw_buf_json_strz(&why, rc == 0 ? "" : probe.err.text);
    printf("%s\"trouble\": \"%s\", \"code\": \"%s\", \"error\": %s, \"peak_kb\": %ld}\n",
           begun ? "" : "{", stw_store_trouble_name(probe.trouble),
           rc == 0 ? "" : stw_err_name(probe.err.code), stw_buf_str(&why), peak_kb());
    stw_store_destroy(probe.store);
    stw_reach_destroy(probe.reach);
    for (size_t i = 0; i < probe.kept_count; i++)
        free(probe.kept[i]);
    return rc == 0 ? 0 : 1;
}
