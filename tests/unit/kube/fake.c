/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "base/util.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

static void spawn(struct fake *f)
{
    int in[2], out[2];
    char line[32] = "";
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        if (f->cert[0])
            (void)execlp("python3", "python3", FAKE_API, "--cert", f->cert, "--key", f->key,
                         (char *)NULL);
        else
            (void)execlp("python3", "python3", FAKE_API, (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    f->in = in[1];
    FILE *port = fdopen(out[0], "r");
    assert_non_null(fgets(line, sizeof(line), port));
    (void)fclose(port);
    (void)snprintf(f->server, sizeof(f->server), "%s://127.0.0.1:%d", f->cert[0] ? "https" : "http",
                   (int)strtol(line, NULL, 10));
    struct stw_kubeconfig config = {.insecure = f->cert[0] != '\0'};
    f->control = fake_client(f, &config, NULL);
    f->client = fake_client(f, NULL, NULL);
}

void fake_start(struct fake *f)
{
    *f = (struct fake){0};
    spawn(f);
}

void fake_start_tls(struct fake *f, const char *name)
{
    char command[1200];
    *f = (struct fake){0};
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/steward-fake-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->cert, sizeof(f->cert), "%s/tls.crt", f->dir);
    (void)snprintf(f->key, sizeof(f->key), "%s/tls.key", f->dir);
    (void)snprintf(command, sizeof(command),
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                   "-keyout %s -out %s -days 2 -subj /CN=fake -addext subjectAltName=DNS:%s "
                   "2>/dev/null",
                   f->key, f->cert, name);
    if (system(command) != 0)
        skip(); /* the openssl program is not installed */
    spawn(f);
}

void fake_stop(struct fake *f)
{
    stw_client_destroy(f->client);
    stw_client_destroy(f->control);
    (void)close(f->in);
    (void)kill(f->pid, SIGKILL);
    (void)waitpid(f->pid, NULL, 0);
    if (f->dir[0]) {
        (void)unlink(f->cert);
        (void)unlink(f->key);
        (void)rmdir(f->dir);
    }
}

struct fake fake;

int fake_set_up(void **state)
{
    (void)state;
    fake_start(&fake);
    return 0;
}

int fake_tear_down(void **state)
{
    (void)state;
    fake_stop(&fake);
    return 0;
}

const struct stw_operator fake_operator = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward", .version = "1.2.3"};

struct stw_client *fake_client(struct fake *f, const struct stw_kubeconfig *config,
                               struct stw_metrics *metrics)
{
    return fake_client_of(f, &fake_operator, config, metrics);
}

struct stw_client *fake_client_of(struct fake *f, const struct stw_operator *op,
                                  const struct stw_kubeconfig *config, struct stw_metrics *metrics)
{
    struct stw_kubeconfig c = config ? *config : (struct stw_kubeconfig){0};
    struct stw_client *client = NULL;
    struct stw_error err;
    c.server = f->server;
    if (stw_client_create(op, &c, &stw_clock_system, metrics, &client, &err) < 0)
        fail_msg("%s", err.text);
    return client;
}

static void control(struct fake *f, const char *method, const char *path, const char *body,
                    struct stw_buf *ret)
{
    struct stw_error err;
    struct stw_request req = {
        .method = method, .path = path, .body = body, .body_len = body ? strlen(body) : 0};
    if (stw_client_do(f->control, &req, ret, &err) < 0)
        fail_msg("%s %s: %s", method, path, err.text);
}

void fake_steps(struct fake *f, const char *json)
{
    stw_autofree char *copy = strdup(json);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    control(f, "POST", "/_steps", copy, NULL);
}

void fake_go(struct fake *f, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/_go/%s", name);
    control(f, "POST", path, "", NULL);
}

json_t *fake_log(struct fake *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    control(f, "GET", "/_log", NULL, &text);
    return json_loadb(text.data, text.len, 0, NULL);
}

unsigned fake_count(struct fake *f, const char *part)
{
    unsigned n = 0;
    size_t i;
    json_t *one;
    json_auto_t *log = fake_log(f);
    json_array_foreach (json_object_get(log, "requests"), i, one) {
        char line[16384];
        (void)snprintf(line, sizeof(line), "%s %s %s %s",
                       json_string_value(json_object_get(one, "request")),
                       json_string_value(json_object_get(one, "body")),
                       json_string_value(json_object_get(one, "authorization")),
                       json_string_value(json_object_get(one, "host")));
        n += strstr(line, part) != NULL;
    }
    return n;
}
