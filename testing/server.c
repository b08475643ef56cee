/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP side of the server, its record of requests, and the failures that tests ask for. */
#include "base/util.h"
#include "testing/server_priv.h"
#include "testing/tree_priv.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define MINOR_DEFAULT 37
#define BYTES_DEFAULT ((size_t)64 << 20)
#define CONNECTIONS_MAX 512u
#define STACK_BYTES ((size_t)512 << 10)
#define MANAGER "test"

/* --- the record of requests */

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void free_strings(struct stw_test_request *r)
{
    free((char *)(uintptr_t)r->verb);
    free((char *)(uintptr_t)r->ns);
    free((char *)(uintptr_t)r->name);
    free((char *)(uintptr_t)r->sub);
    free((char *)(uintptr_t)r->manager);
}

static void copy_strings(struct stw_test_request *r)
{
    r->verb = copy(r->verb);
    r->ns = copy(r->ns);
    r->name = copy(r->name);
    r->sub = copy(r->sub);
    r->manager = copy(r->manager);
}

static struct stw_test_log_entry *entry_at(struct stw_test_server *s, size_t i)
{
    return &s->log[(s->log_first + i) % STW_TEST_LOG_MAX];
}

static void drop_entry(struct stw_test_server *s)
{
    struct stw_test_log_entry *e = entry_at(s, 0);
    s->log_bytes -= e->bytes;
    free_strings(&e->request);
    json_decref((json_t *)(uintptr_t)e->request.body);
    *e = (struct stw_test_log_entry){0};
    s->log_first = (s->log_first + 1) % STW_TEST_LOG_MAX;
    s->log_count--;
}

static struct stw_test_request request_of(const struct stw_test_call *c)
{
    return (struct stw_test_request){.verb = c->verb,
                                     .resource = c->type->resource,
                                     .ns = c->ns,
                                     .name = c->name,
                                     .sub = c->sub,
                                     .manager = c->manager,
                                     .status = (int)c->status,
                                     .dry_run = c->dry_run};
}

static void record(struct stw_test_server *s, const struct stw_test_call *c, bool failed)
{
    struct stw_test_request r = request_of(c);
    r.failed_on_purpose = failed;
    r.body = json_incref(c->body);
    copy_strings(&r);
    size_t bytes = c->body ? json_dumpb(c->body, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
    pthread_mutex_lock(&s->lock);
    while (s->log_count == STW_TEST_LOG_MAX ||
           (s->log_count > 0 && s->log_bytes + bytes > STW_TEST_LOG_BYTES_MAX)) {
        drop_entry(s);
        s->log_left_out++;
    }
    *entry_at(s, s->log_count++) = (struct stw_test_log_entry){.request = r, .bytes = bytes};
    s->log_bytes += bytes;
    pthread_mutex_unlock(&s->lock);
}

static bool is_read(const char *verb)
{
    return stw_streq(verb, "get") || stw_streq(verb, "list") || stw_streq(verb, "watch");
}

static bool fits(const struct stw_test_request *p, const struct stw_test_request *r)
{
    bool verb = !p->verb || (stw_streq(p->verb, "write") ? !is_read(r->verb) && !r->dry_run
                                                         : stw_streq(p->verb, r->verb));
    return verb &&
           (!p->resource || (stw_streq(p->resource->plural, r->resource->plural) &&
                             stw_streq(p->resource->group, r->resource->group))) &&
           (!p->ns || stw_streq(p->ns, r->ns)) && (!p->name || stw_streq(p->name, r->name)) &&
           (!p->sub || stw_streq(p->sub, r->sub)) &&
           (!p->manager || stw_streq(p->manager, r->manager));
}

static bool fits_record(const struct stw_test_request *p, const struct stw_test_request *r)
{
    return fits(p, r) && (p->status == 0 || p->status == r->status) &&
           (!p->dry_run || r->dry_run) && (!p->failed_on_purpose || r->failed_on_purpose);
}

size_t stw_test_server_requests(struct stw_test_server *s, const struct stw_test_request *pattern)
{
    size_t count = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->log_count; i++)
        count += fits_record(pattern, &entry_at(s, i)->request);
    pthread_mutex_unlock(&s->lock);
    return count;
}

bool stw_test_server_request(struct stw_test_server *s, const struct stw_test_request *pattern,
                             size_t i, struct stw_test_request *ret)
{
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (size_t k = 0; k < s->log_count && !found; k++) {
        if (!fits_record(pattern, &entry_at(s, k)->request) || i-- > 0)
            continue;
        *ret = entry_at(s, k)->request;
        found = true;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void stw_test_server_forget_requests(struct stw_test_server *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->log_count > 0)
        drop_entry(s);
    s->log_left_out = 0;
    pthread_mutex_unlock(&s->lock);
}

void stw_test_server_tell(struct stw_test_server *s, struct stw_buf *out)
{
    pthread_mutex_lock(&s->lock);
    if (s->log_left_out)
        stw_buf_addf(out, "  (%llu requests before)\n", (unsigned long long)s->log_left_out);
    for (size_t i = 0; i < s->log_count; i++) {
        const struct stw_test_request *r = &entry_at(s, i)->request;
        if (is_read(r->verb))
            continue;
        stw_buf_addf(out, "  %-6s %s %s%s%s%s%s: %d%s%s\n", r->verb, r->resource->plural, r->ns,
                     *r->ns ? "/" : "", r->name, *r->sub ? " " : "", r->sub, r->status,
                     r->dry_run ? ", dry run" : "", r->failed_on_purpose ? ", on purpose" : "");
    }
    pthread_mutex_unlock(&s->lock);
}

/* --- failures */

int stw_test_server_fail(struct stw_test_server *s, const struct stw_test_fault *fault)
{
    struct stw_test_fault f = *fault;
    pthread_mutex_lock(&s->lock);
    bool room = s->fault_count < STW_TEST_FAULTS_MAX;
    if (room) {
        copy_strings(&f.at);
        f.reason = copy(f.reason);
        f.times = f.times ? f.times : 1;
        s->faults[s->fault_count++] = f;
    }
    pthread_mutex_unlock(&s->lock);
    return room ? 0 : -1;
}

static void drop_fault(struct stw_test_server *s, size_t i)
{
    free_strings(&s->faults[i].at);
    free((char *)(uintptr_t)s->faults[i].reason);
    s->fault_count--;
    memmove(&s->faults[i], &s->faults[i + 1], (s->fault_count - i) * sizeof(s->faults[0]));
}

uint32_t stw_test_server_faults_left(struct stw_test_server *s)
{
    uint32_t left = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->fault_count; i++)
        left += s->faults[i].times;
    pthread_mutex_unlock(&s->lock);
    return left;
}

void stw_test_server_forget_faults(struct stw_test_server *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->fault_count > 0)
        drop_fault(s, s->fault_count - 1);
    pthread_mutex_unlock(&s->lock);
}

/* Whether this request is to fail; then the caller owns ret->reason. */
static bool take_fault(struct stw_test_server *s, const struct stw_test_call *c,
                       struct stw_test_fault *ret)
{
    struct stw_test_request r = request_of(c);
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->fault_count && !found; i++) {
        struct stw_test_fault *f = &s->faults[i];
        if (!fits(&f->at, &r))
            continue;
        found = f->skip == 0;
        if (!found) {
            f->skip--;
            continue;
        }
        *ret = *f;
        ret->reason = copy(f->reason);
        if (--f->times == 0)
            drop_fault(s, i);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* --- paths */

static size_t split(char *path, const char *parts[], size_t max)
{
    size_t count = 0;
    char *at, *save = NULL;
    for (at = strtok_r(path, "/", &save); at && count < max; at = strtok_r(NULL, "/", &save))
        parts[count++] = at;
    return at ? max + 1 : count;
}

/* "api/v1/namespaces/NS/PLURAL/NAME/SUB", "apis/GROUP/VERSION/PLURAL" */
static void read_path(struct stw_test_server *s, const char *url, struct stw_test_call *c)
{
    char path[2048];
    const char *parts[8];
    if (stw_format_whole(path, sizeof(path), "%s", url) != 0)
        return;
    size_t count = split(path, parts, STW_COUNT(parts)), at = 2;
    bool core = count > 0 && stw_streq(parts[0], "api");
    if (count > STW_COUNT(parts) || count < 3 || (!core && !stw_streq(parts[0], "apis")))
        return;
    const char *group = core ? "" : parts[1], *version = parts[core ? 1 : 2];
    at = core ? 2 : 3;
    bool in_namespace = count >= at + 3 && stw_streq(parts[at], "namespaces") &&
                        !(core && stw_streq(parts[at + 2], "status"));
    if (in_namespace) {
        stw_format(c->ns, sizeof(c->ns), "%s", parts[at + 1]);
        at += 2;
    }
    if (count <= at)
        return;
    stw_format(c->name, sizeof(c->name), "%s", count > at + 1 ? parts[at + 1] : "");
    stw_format(c->sub, sizeof(c->sub), "%s", count > at + 2 ? parts[at + 2] : "");
    struct stw_test_type *t = stw_test_store_type(&s->store, group, version, parts[at]);
    if (t && count <= at + 3 && (t->resource->namespaced || !in_namespace))
        c->type = t;
}

static const char *argument(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static bool is_on(const char *value)
{
    return value && (stw_streq(value, "1") || stw_streq(value, "true") || !*value);
}

static const char *verb_of(const struct stw_test_call *c)
{
    if (stw_streq(c->method, "GET"))
        return c->watch ? "watch" : *c->name ? "get" : "list";
    if (stw_streq(c->method, "POST"))
        return "create";
    if (stw_streq(c->method, "PUT"))
        return "update";
    if (stw_streq(c->method, "PATCH"))
        return strstr(c->content_type, "apply-patch") ? "apply" : "patch";
    return stw_streq(c->method, "DELETE") ? "delete" : "";
}

/* Without fieldManager, the user agent up to its first slash. */
static void read_manager(struct MHD_Connection *connection, struct stw_test_call *c)
{
    const char *given = argument(connection, "fieldManager");
    const char *agent =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_USER_AGENT);
    if (given)
        stw_format(c->manager, sizeof(c->manager), "%s", given);
    else if (agent && !strstr(c->content_type, "apply-patch"))
        stw_format(c->manager, sizeof(c->manager), "%.*s", (int)strcspn(agent, "/"), agent);
}

static void read_call(struct MHD_Connection *connection, struct stw_test_call *c)
{
    const char *type =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *accept =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    const char *dry_run = argument(connection, "dryRun");
    c->content_type = type ? type : "application/json";
    c->labels = argument(connection, "labelSelector");
    c->fields = argument(connection, "fieldSelector");
    c->limit = argument(connection, "limit");
    c->next = argument(connection, "continue");
    c->version = argument(connection, "resourceVersion");
    c->timeout = argument(connection, "timeoutSeconds");
    c->dry_run = dry_run && stw_streq(dry_run, "All");
    c->force = is_on(argument(connection, "force"));
    c->watch = is_on(argument(connection, "watch"));
    c->bookmarks = is_on(argument(connection, "allowWatchBookmarks"));
    c->metadata_only = accept && strstr(accept, "as=PartialObjectMetadata");
    read_manager(connection, c);
    c->verb = verb_of(c);
}

/* --- answers */

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status, char *text)
{
    struct MHD_Response *r =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (status == 429)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    enum MHD_Result result = MHD_queue_response(connection, status, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, const struct stw_test_call *c)
{
    return send_text(connection, c->status, json_dumps(c->answer, JSON_COMPACT));
}

/* The versions of a group, by which clients choose one. */
static char *describe_group(const struct stw_test_server *s, const char *group)
{
    json_auto_t *versions = json_array();
    for (size_t i = 0; i < s->store.type_count; i++) {
        const struct stw_resource *r = s->store.types[i].resource;
        if (stw_streq(r->group, group))
            json_array_append_new(versions, json_pack("{s:o,s:s}", "groupVersion",
                                                      json_sprintf("%s/%s", group, r->version),
                                                      "version", r->version));
    }
    if (json_array_size(versions) == 0)
        return NULL;
    json_auto_t *answer =
        json_pack("{s:s,s:s,s:s,s:O,s:O}", "kind", "APIGroup", "apiVersion", "v1", "name", group,
                  "versions", versions, "preferredVersion", json_array_get(versions, 0));
    return json_dumps(answer, JSON_COMPACT);
}

/* "/api/v1/...", "/apis/GROUP/VERSION/..." */
static bool names_served_group(const struct stw_test_server *s, const char *url)
{
    for (size_t i = 0; i < s->store.type_count; i++) {
        const struct stw_resource *r = s->store.types[i].resource;
        char top[600];
        stw_format(top, sizeof(top), "/api%s%s/%s/", *r->group ? "s/" : "", r->group, r->version);
        if (strncmp(url, top, strlen(top)) == 0)
            return true;
    }
    return false;
}

static enum MHD_Result answer_other(const struct stw_test_server *s,
                                    struct MHD_Connection *connection, const char *url)
{
    char *group = strncmp(url, "/apis/", 6) == 0 ? describe_group(s, url + 6) : NULL;
    struct stw_test_call c = {0};
    if (group)
        return send_text(connection, 200, group);
    if (stw_streq(url, "/version"))
        return send_text(connection, 200, strdup(s->version));
    if (!names_served_group(s, url))
        return send_text(connection, 404, strdup("404 page not found\n"));
    stw_test_call_refuse_unknown(&c);
    enum MHD_Result result = send_answer(connection, &c);
    json_decref(c.answer);
    return result;
}

static enum MHD_Result answer_watch(struct stw_test_server *s, struct MHD_Connection *connection,
                                    const struct stw_test_call *c)
{
    struct MHD_Response *r = stw_test_watch_open(s, c, connection);
    if (!r)
        return MHD_NO;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    enum MHD_Result result = MHD_queue_response(connection, 200, r);
    MHD_destroy_response(r);
    return result;
}

static void carry_out(struct stw_test_server *s, struct stw_test_call *c,
                      const struct stw_buf *body)
{
    json_error_t why;
    if (body->failed) {
        stw_test_call_refuse(c, 413, "RequestEntityTooLarge",
                             "Request entity too large: limit is %u", STW_TEST_BODY_MAX);
        return;
    }
    c->body = body->len ? json_loadb(body->data, body->len, JSON_REJECT_DUPLICATES, &why) : NULL;
    bool needs_body = stw_streq(c->method, "POST") || stw_streq(c->method, "PUT") ||
                      stw_streq(c->method, "PATCH");
    if (!c->body && (needs_body || body->len > 0))
        stw_test_call_refuse(c, 400, "BadRequest", "the body is not JSON: %s",
                             body->len ? why.text : "it is empty");
    else
        stw_test_call_run(s, c);
}

static enum MHD_Result answer(struct stw_test_server *s, struct MHD_Connection *connection,
                              const char *url, const char *method, const struct stw_buf *body)
{
    struct stw_test_call c = {.method = method};
    struct stw_test_fault fault = {0};
    enum MHD_Result result;
    read_path(s, url, &c);
    if (!c.type)
        return answer_other(s, connection, url);
    read_call(connection, &c);
    bool fails = take_fault(s, &c, &fault);
    if (c.watch && !fails) {
        c.status = 200;
        record(s, &c, false);
        return answer_watch(s, connection, &c);
    }
    if (!fails || fault.done)
        carry_out(s, &c, body);
    if (fails && fault.status > 0)
        stw_test_call_refuse(&c, (unsigned)fault.status,
                             fault.reason ? fault.reason : stw_test_reason((unsigned)fault.status),
                             "the test wants this request to fail");
    record(s, &c, fails);
    result = fails && fault.status == 0 ? MHD_NO : send_answer(connection, &c);
    free((char *)(uintptr_t)fault.reason);
    json_decref(c.body);
    json_decref(c.answer);
    return result;
}

/* --- libmicrohttpd */

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *http_version, const char *data,
                              size_t *len, void **state)
{
    struct stw_buf *body = *state;
    (void)http_version;
    if (!body) {
        body = calloc(1, sizeof(*body));
        if (!body)
            return MHD_NO;
        *body = STW_BUF_INIT(STW_TEST_BODY_MAX);
        *state = body;
        return MHD_YES;
    }
    if (*len > 0) {
        stw_buf_add(body, data, *len);
        *len = 0;
        return MHD_YES;
    }
    return answer(ctx, connection, url, method, body);
}

static void end_request(void *ctx, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code)
{
    (void)ctx, (void)connection, (void)code;
    if (*state)
        stw_buf_done(*state);
    free(*state);
    *state = NULL;
}

static int listen_on_loopback(struct stw_test_server *s, struct stw_error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                                     MHD_USE_POLL | MHD_USE_ITC,
                                 0, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR,
                                 (struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT,
                                 CONNECTIONS_MAX, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES,
                                 MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info || info->port == 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot listen on 127.0.0.1");
    stw_format(s->url, sizeof(s->url), "http://127.0.0.1:%u", info->port);
    return 0;
}

int stw_test_server_start(const struct stw_test_server_config *config, struct stw_test_server **ret,
                          struct stw_error *err)
{
    int minor = config->minor ? config->minor : MINOR_DEFAULT;
    struct stw_test_server *s = calloc(1, sizeof(*s));
    if (!s)
        return stw_fail_memory(err);
    s->config = *config;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)stw_cond_init(&s->moved);
    s->log = calloc(STW_TEST_LOG_MAX, sizeof(*s->log));
    stw_format(s->version, sizeof(s->version),
               "{\"major\":\"1\",\"minor\":\"%d\",\"gitVersion\":\"v1.%d.0\"}", minor, minor);
    int rc = s->log ? stw_test_store_init(&s->store, config->resources,
                                          config->clock ? config->clock : &stw_clock_system,
                                          config->bytes_max ? config->bytes_max : BYTES_DEFAULT)
                    : -1;
    if (rc != 0 ? stw_fail_memory(err) : listen_on_loopback(s, err)) {
        stw_test_server_stop(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void stw_test_server_stop(struct stw_test_server *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    stw_test_server_forget_requests(s);
    stw_test_server_forget_faults(s);
    stw_test_store_done(&s->store);
    free(s->log);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const char *stw_test_server_url(const struct stw_test_server *s)
{
    return s->url;
}

uint64_t stw_test_server_version(struct stw_test_server *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t version = s->store.version;
    pthread_mutex_unlock(&s->lock);
    return version;
}

/* --- as another client */

static struct stw_test_type *type_of_object(struct stw_test_server *s, const json_t *object)
{
    const char *api_version = stw_test_text_of(object, "apiVersion");
    for (size_t i = 0; i < s->store.type_count; i++) {
        stw_autobuf struct stw_buf own = STW_BUF_INIT(600);
        const struct stw_resource *r = s->store.types[i].resource;
        stw_resource_api_version(r, &own);
        if (stw_streq(stw_buf_str(&own), api_version) &&
            stw_streq(r->kind, stw_test_text_of(object, "kind")))
            return &s->store.types[i];
    }
    return NULL;
}

static int run_own(struct stw_test_server *s, struct stw_test_call *c, struct stw_error *err)
{
    stw_format(c->manager, sizeof(c->manager), "%s", MANAGER);
    c->content_type = "application/json";
    c->verb = verb_of(c);
    stw_test_call_run(s, c);
    int rc = 0;
    if (c->status >= 300)
        rc = stw_fail(err,
                      c->status == 404   ? STW_ERR_NOT_FOUND
                      : c->status == 409 ? STW_ERR_CONFLICT
                      : c->status == 403 ? STW_ERR_FORBIDDEN
                                         : STW_ERR_INVALID,
                      "%s", stw_test_text_of(c->answer, "message"));
    json_decref(c->answer);
    json_decref(c->body);
    return rc;
}

/* The object as a whole, whatever version of it the caller has seen. */
static json_t *without_versions(const json_t *object)
{
    json_t *copy = json_deep_copy(object), *metadata = stw_test_member(copy, "metadata");
    json_object_del(metadata, "resourceVersion");
    json_object_del(metadata, "uid");
    json_object_del(metadata, "managedFields");
    return copy;
}

int stw_test_server_put(struct stw_test_server *s, const json_t *object, struct stw_error *err)
{
    struct stw_test_call c = {.type = type_of_object(s, object)}, status;
    const char *name = stw_test_text_at(object, "metadata.name");
    const char *ns = stw_test_text_at(object, "metadata.namespace");
    if (!c.type)
        return stw_fail(err, STW_ERR_INVALID, "the server has no resource for %s %s",
                        stw_test_text_of(object, "apiVersion"), stw_test_text_of(object, "kind"));
    if (c.type->resource->namespaced)
        stw_format(c.ns, sizeof(c.ns), "%s", *ns ? ns : "default");
    status = c;
    json_auto_t *there = stw_test_server_get(s, c.type->resource, c.ns, name);
    c.method = there ? "PUT" : "POST";
    c.body = without_versions(object);
    stw_format(c.name, sizeof(c.name), "%s", there ? name : "");
    if (run_own(s, &c, err) != 0 || !c.type->has_status || !json_object_get(object, "status"))
        return c.status < 300 ? 0 : -1;
    status.method = "PUT";
    status.body = without_versions(object);
    stw_format(status.name, sizeof(status.name), "%s", name);
    stw_format(status.sub, sizeof(status.sub), "status");
    return run_own(s, &status, err);
}

json_t *stw_test_server_get(struct stw_test_server *s, const struct stw_resource *r, const char *ns,
                            const char *name)
{
    char key[STW_KEY_LEN];
    pthread_mutex_lock(&s->lock);
    struct stw_test_type *t = stw_test_store_type(&s->store, r->group, NULL, r->plural);
    stw_key_make(r->namespaced ? ns : NULL, name, key);
    json_t *found = t ? json_deep_copy(stw_test_store_get(t, key)) : NULL;
    pthread_mutex_unlock(&s->lock);
    return found;
}

int stw_test_server_delete(struct stw_test_server *s, const struct stw_resource *r, const char *ns,
                           const char *name, struct stw_error *err)
{
    struct stw_test_call c = {.method = "DELETE",
                              .type = stw_test_store_type(&s->store, r->group, NULL, r->plural)};
    if (!c.type)
        return stw_fail(err, STW_ERR_INVALID, "the server does not have %s", r->plural);
    stw_format(c.ns, sizeof(c.ns), "%s", r->namespaced && ns ? ns : "");
    stw_format(c.name, sizeof(c.name), "%s", name);
    return run_own(s, &c, err);
}

json_t *stw_test_server_list(struct stw_test_server *s, const struct stw_resource *r,
                             const char *ns)
{
    const char *key;
    json_t *object, *all = json_array();
    pthread_mutex_lock(&s->lock);
    const struct stw_test_type *t = stw_test_store_type(&s->store, r->group, NULL, r->plural);
    if (t)
        json_object_foreach (t->objects, key, object)
            if (!ns || stw_streq(ns, stw_test_text_at(object, "metadata.namespace")))
                json_array_append_new(all, json_deep_copy(object));
    pthread_mutex_unlock(&s->lock);
    return all;
}
