/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/commands.h"

#include "base/util.h"
#include "cmd/steward.h"
#include "hostile/admission.h"
#include "hostile/server.h"
#include "hostile/surroundings.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#define ERRORS "errors"
#define UNREADABLE_MAX 16 /* files of one run */
#define REPORT_MAX ((size_t)256 << 20)

struct hostile_commands {
    const struct stw_kind *kind;
    char objects[96], kubeconfig[96], config[96], report[96], errors[96];
    uint32_t files, runs, readable;
    struct stw_buf list; /* the objects that an API server can have, separated by commas */
};

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "we");
    HOSTILE_EXPECT(f && fwrite(text, 1, len, f) == len && fclose(f) == 0);
}

struct hostile_commands *hostile_commands_create(const struct stw_kind *k, const char *folder)
{
    static const char config[] = "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
                                 "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
                                 "clusters: [{name: a, cluster: {server: "
                                 "'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n";
    struct hostile_commands *c = calloc(1, sizeof(*c));
    HOSTILE_EXPECT(c);
    *c = (struct hostile_commands){.kind = k, .list = STW_BUF_INIT(REPORT_MAX)};
    stw_format(c->objects, sizeof(c->objects), "%s/objects", folder);
    stw_format(c->kubeconfig, sizeof(c->kubeconfig), "%s/kubeconfig", folder);
    stw_format(c->config, sizeof(c->config), "%s/config", folder);
    stw_format(c->report, sizeof(c->report), "%s/report", folder);
    stw_format(c->errors, sizeof(c->errors), "%s/" ERRORS, folder);
    HOSTILE_EXPECT(mkdir(c->objects, 0700) == 0);
    write_file(c->kubeconfig, config, strlen(config));
    write_file(c->config, hostile_config, strlen(hostile_config));
    return c;
}

static void path_of(const struct hostile_commands *c, uint32_t index, char out[160])
{
    stw_format(out, 160, "%s/%06u.json", c->objects, index);
}

/* As `kubectl get -o json` prints them. */
static void write_list(const struct hostile_commands *c, struct stw_buf *out)
{
    stw_buf_adds(out, "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[");
    stw_buf_add(out, stw_buf_str(&c->list), c->list.len);
    stw_buf_adds(out, "]}");
}

static void add_file(struct hostile_commands *c, const struct stw_buf *text)
{
    char path[160];
    path_of(c, c->files++, path);
    write_file(path, stw_buf_str(text), text->len);
}

/* What cannot be read ends the reading of its file, so it has a file of its own. */
void hostile_commands_add(struct hostile_commands *c, const struct stw_buf *object)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_json_scan(&doc, stw_buf_str(object), object->len, NULL) != 0) {
        if (c->files < UNREADABLE_MAX)
            add_file(c, object);
        return;
    }
    stw_buf_adds(&c->list, c->list.len > 0 ? "," : "");
    stw_buf_add(&c->list, stw_buf_str(object), object->len);
    c->readable++;
}

/* Runs the program with its output in a file, which `ret` gets. */
static int run_program(const struct hostile_commands *c, int argc, const char *const *argv,
                       struct stw_buf *ret)
{
    struct stw_error err = {0};
    char *text = NULL;
    size_t len = 0;
    HOSTILE_EXPECT(fflush(stdout) == 0);
    int kept = dup(STDOUT_FILENO);
    int file = open(c->report, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int errors = open(c->errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HOSTILE_EXPECT(kept >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0);
    int status = stw_steward_main(argc, (char **)(uintptr_t)argv);
    HOSTILE_EXPECT(fflush(stdout) == 0 && dup2(kept, STDOUT_FILENO) >= 0 &&
                   dup2(hostile_stderr, STDERR_FILENO) >= 0);
    HOSTILE_EXPECT(close(kept) == 0 && close(file) == 0 && close(errors) == 0);
    if (stw_read_file(c->report, REPORT_MAX, &text, &len, &err) != 0)
        hostile_fail("%s", err.text);
    stw_buf_add(ret, text, len);
    free(text);
    return status;
}

/* Every file and every object is in the report. */
static void validate(const struct hostile_commands *c)
{
    static const char *const forms[] = {"json", "text", "junit", "sarif"};
    const char *form = forms[c->runs % STW_COUNT(forms)];
    const char *const argv[] = {"steward",  "validate", "--config", c->config,
                                "--output", form,       c->objects, NULL};
    stw_autobuf struct stw_buf report = STW_BUF_INIT(REPORT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, number;
    int64_t sum = 0, n;
    int status = run_program(c, (int)STW_COUNT(argv) - 1, argv, &report);
    if (status < 0 || status > 2)
        hostile_fail("validate ended with status %d", status);
    if (stw_streq(form, "json") || stw_streq(form, "sarif"))
        HOSTILE_EXPECT(stw_json_scan(&doc, stw_buf_str(&report), report.len, NULL) == 0);
    if (!stw_streq(form, "json"))
        return;
    stw_json_foreach (stw_json_get(stw_json_root(&doc), "summary"), key, number)
        sum += stw_json_int(number, &n) == 0 ? n : 0;
    HOSTILE_EXPECT(sum >= (int64_t)c->files - 1 + (int64_t)c->readable);
}

/* The list of the kind has the objects; nothing else is there. */
static int answer(void *ctx, const struct stw_request *req, struct stw_buf *out)
{
    const struct hostile_commands *c = ctx;
    char path[512];
    stw_format(path, sizeof(path), "/apis/%s/%s/%s?", c->kind->group, c->kind->version,
               c->kind->plural);
    if (!strchr(req->path, '?'))
        return 404;
    bool own = strncmp(req->path, path, strlen(path)) == 0;
    if (own)
        write_list(c, out);
    else
        stw_buf_adds(out, "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}");
    return 200;
}

static void audit(struct hostile_commands *c)
{
    const char *const argv[] = {"steward",         "audit",   "--kubeconfig", c->kubeconfig,
                                "--config",        c->config, "--output",     "json",
                                c->kind->singular, NULL};
    stw_autobuf struct stw_buf report = STW_BUF_INIT(REPORT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    int status = run_program(c, (int)STW_COUNT(argv) - 1, argv, &report);
    if (status < 0 || status > 2)
        hostile_fail("audit ended with status %d", status);
    if (stw_json_scan(&doc, stw_buf_str(&report), report.len, NULL) != 0)
        hostile_fail("the report of audit is not JSON: %s", stw_buf_str(&report));
}

void hostile_commands_run(struct hostile_commands *c)
{
    stw_autobuf struct stw_buf list = STW_BUF_INIT(REPORT_MAX);
    char path[160];
    write_list(c, &list);
    add_file(c, &list);
    validate(c);
    struct hostile_server before = hostile_serve(answer, c);
    audit(c);
    (void)hostile_serve(before.fn, before.ctx);
    for (uint32_t i = 0; i < c->files; i++) {
        path_of(c, i, path);
        (void)unlink(path);
    }
    c->files = c->readable = 0;
    c->runs++;
    stw_buf_clear(&c->list);
}

void hostile_commands_destroy(struct hostile_commands *c)
{
    (void)unlink(c->errors);
    stw_buf_done(&c->list);
    free(c);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void hostile_commands_clean(const char *folder, bool print)
{
    struct stw_error err = {0};
    stw_autofree char *text = NULL;
    char path[96];
    size_t len;
    stw_format(path, sizeof(path), "%s/" ERRORS, folder);
    if (print && stw_read_file(path, REPORT_MAX, &text, &len, &err) == 0)
        (void)fwrite(text, 1, len, stderr);
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
