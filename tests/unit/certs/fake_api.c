/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_api.h"

#include "base/base64.h"
#include "base/util.h"
#include "schema/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const paths[FAKE_OBJECTS] = {
    "/api/v1/namespaces/ns/secrets/pair",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hooks",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org",
};
#define SECRETS "/api/v1/namespaces/ns/secrets"

static const struct stw_kind one = {.group = "example", .singular = "one"},
                             two = {.group = "example", .singular = "two"};
const struct stw_kind *const fake_kinds[] = {&one, &two, NULL};

void fake_init(struct fake_api *f)
{
    *f = (struct fake_api){.fail_code = STW_ERR_UNAVAILABLE};
}

void fake_done(struct fake_api *f)
{
    for (unsigned i = 0; i < FAKE_OBJECTS; i++)
        json_decref(f->objects[i]);
}

void fake_copy(struct fake_api *f, const struct fake_api *from)
{
    for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
        json_decref(f->objects[i]);
        f->objects[i] = json_deep_copy(from->objects[i]);
    }
    f->version = from->version;
}

static json_t *meta(const struct fake_api *f, enum fake_object which)
{
    return json_object_get(f->objects[which], "metadata");
}

static void stamp(struct fake_api *f, enum fake_object which)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%u", ++f->version);
    json_object_set_new(meta(f, which), "resourceVersion", json_string(text));
}

static void put(struct fake_api *f, enum fake_object which, json_t *object)
{
    char uid[32];
    json_decref(f->objects[which]);
    f->objects[which] = object;
    (void)snprintf(uid, sizeof(uid), "uid-%u", f->version + 1);
    if (!json_object_get(meta(f, which), "uid"))
        json_object_set_new(meta(f, which), "uid", json_string(uid));
    stamp(f, which);
}

void fake_add_hook(struct fake_api *f, enum fake_object which)
{
    put(f, which,
        json_pack("{s:{s:s,s:[{s:s}]}, s:[{s:s,s:{s:{s:s}},s:s},{s:s,s:{s:s}},{s:s,s:{s:s}}]}",
                  "metadata", "name", "hooks", "managedFields", "manager", "helm", "webhooks",
                  "name", "vone.example", "clientConfig", "service", "name", "steward",
                  "sideEffects", "None", "name", "vtwo.example", "clientConfig", "url",
                  "https://127.0.0.1/", "name", "vother.example", "clientConfig", "url",
                  "https://127.0.0.2/"));
}

void fake_add_crd(struct fake_api *f, const char *strategy)
{
    json_t *conversion = json_pack("{s:s}", "strategy", strategy);
    if (stw_streq(strategy, "Webhook"))
        json_object_set_new(conversion, "webhook",
                            json_pack("{s:{s:s},s:[s]}", "clientConfig", "url",
                                      "https://127.0.0.1/convert", "conversionReviewVersions",
                                      "v1"));
    put(f, FAKE_CRD,
        json_pack("{s:{s:s},s:{s:s,s:o}}", "metadata", "name", "things.example.org", "spec",
                  "group", "example.org", "conversion", conversion));
}

void fake_remove(struct fake_api *f, enum fake_object which)
{
    json_decref(f->objects[which]);
    f->objects[which] = NULL;
    f->version++;
}

static json_t *encode(const char *value)
{
    struct stw_buf stw_autobuf out = STW_BUF_INIT(1 << 20);
    stw_base64_encode(value, strlen(value), &out);
    return json_string(stw_buf_str(&out));
}

static char *decode(const json_t *value)
{
    struct stw_buf stw_autobuf out = STW_BUF_INIT(1 << 20);
    const char *text = json_string_value(value);
    if (!text)
        return NULL;
    assert_int_equal(stw_base64_decode(text, strlen(text), &out), 0);
    return stw_buf_take(&out);
}

char *fake_data(const struct fake_api *f, const char *key)
{
    return decode(json_object_get(json_object_get(f->objects[FAKE_SECRET], "data"), key));
}

void fake_set_data(struct fake_api *f, const char *key, const char *value)
{
    json_t *data = json_object_get(f->objects[FAKE_SECRET], "data");
    if (value)
        json_object_set_new(data, key, encode(value));
    else
        json_object_del(data, key);
    stamp(f, FAKE_SECRET);
}

static json_t *client_config(const struct fake_api *f, enum fake_object which, size_t index)
{
    json_t *hooks = json_object_get(f->objects[which], "webhooks");
    if (which == FAKE_CRD)
        return json_object_get(
            json_object_get(
                json_object_get(json_object_get(f->objects[which], "spec"), "conversion"),
                "webhook"),
            "clientConfig");
    return json_object_get(json_array_get(hooks, index), "clientConfig");
}

char *fake_bundle(const struct fake_api *f, enum fake_object which, size_t index)
{
    json_t *value = json_object_get(client_config(f, which, index), "caBundle");
    return value ? decode(value) : strdup("");
}

void fake_set_bundle(struct fake_api *f, enum fake_object which, const char *value)
{
    for (size_t i = 0; i < 2; i++)
        json_object_set_new(client_config(f, which, i), "caBundle", encode(value));
    stamp(f, which);
}

/* --- the server's side */

static bool same(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    return !x || json_equal(x, y);
}

static int check_version(struct fake_api *f, enum fake_object which, const json_t *body,
                         struct stw_error *err)
{
    const json_t *given = json_object_get(body, "metadata");
    assert_non_null(json_object_get(given, "resourceVersion"));
    if (!f->objects[which])
        return stw_fail(err, STW_ERR_NOT_FOUND, "not found");
    if (!same(given, meta(f, which), "resourceVersion") || !same(given, meta(f, which), "uid"))
        return stw_fail(err, STW_ERR_CONFLICT, "the object has been modified");
    return 0;
}

static int create(struct fake_api *f, const json_t *body, struct stw_error *err)
{
    if (f->objects[FAKE_SECRET])
        return stw_fail(err, STW_ERR_EXISTS, "already exists");
    put(f, FAKE_SECRET, json_deep_copy(body));
    return 0;
}

static int update(struct fake_api *f, enum fake_object which, const json_t *body,
                  struct stw_error *err)
{
    if (check_version(f, which, body, err) < 0)
        return -1;
    put(f, which, json_deep_copy(body));
    return 0;
}

/* The field manager of a patch gets the fields that it changes. */
static void own(struct fake_api *f, enum fake_object which)
{
    json_t *managed = json_object_get(meta(f, which), "managedFields");
    if (fake_owned(f, which))
        return;
    if (!managed)
        json_object_set_new(meta(f, which), "managedFields", managed = json_array());
    json_array_append_new(managed, json_pack("{s:s}", "manager", "steward-certs"));
}

bool fake_owned(const struct fake_api *f, enum fake_object which)
{
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(meta(f, which), "managedFields"), i, entry)
        if (stw_streq(json_string_value(json_object_get(entry, "manager")), "steward-certs"))
            return true;
    return false;
}

/* One operation of a JSON patch.  It may change the caBundle of a webhook, or take an entry out of
 * managedFields. */
static void patch_one(struct fake_api *f, enum fake_object which, const json_t *operation)
{
    const char *path = json_string_value(json_object_get(operation, "path"));
    const char *op = json_string_value(json_object_get(operation, "op"));
    json_t *value = json_object_get(operation, "value"), *config;
    json_t *managed = json_object_get(meta(f, which), "managedFields");
    unsigned index = 0;
    int end = 0;
    if (sscanf(path, "/metadata/managedFields/%u%n", &index, &end) == 1 && !path[end]) {
        assert_string_equal(op, "remove");
        assert_string_equal(
            json_string_value(json_object_get(json_array_get(managed, index), "manager")),
            "steward-certs");
        json_array_remove(managed, index);
    } else if (stw_streq(path, "/metadata/managedFields")) {
        assert_string_equal(op, "replace");
        json_object_del(meta(f, which), "managedFields");
    } else {
        bool crd = stw_streq(path, "/spec/conversion/webhook/clientConfig/caBundle");
        assert_int_equal(crd, which == FAKE_CRD);
        assert_true(crd ||
                    (sscanf(path, "/webhooks/%u/clientConfig/caBundle%n", &index, &end) == 1 &&
                     end && !path[end]));
        config = client_config(f, which, index);
        assert_string_equal(op, "add");
        assert_non_null(config);
        json_object_set(config, "caBundle", value);
        own(f, which);
    }
}

static int patch(struct fake_api *f, enum fake_object which, const json_t *body,
                 struct stw_error *err)
{
    const json_t *first = json_array_get(body, 0);
    if (!f->objects[which])
        return stw_fail(err, STW_ERR_NOT_FOUND, "not found");
    assert_string_equal(json_string_value(json_object_get(first, "op")), "replace");
    assert_string_equal(json_string_value(json_object_get(first, "path")),
                        "/metadata/resourceVersion");
    if (!json_equal(json_object_get(first, "value"),
                    json_object_get(meta(f, which), "resourceVersion")))
        return stw_fail(err, STW_ERR_CONFLICT, "the object has been modified");
    assert_true(json_array_size(body) > 1);
    for (size_t i = 1; i < json_array_size(body); i++)
        patch_one(f, which, json_array_get(body, i));
    stamp(f, which);
    return 0;
}

static int answer(const struct fake_api *f, enum fake_object which, struct stw_buf *ret,
                  struct stw_error *err)
{
    if (!f->objects[which])
        return stw_fail(err, STW_ERR_NOT_FOUND, "not found");
    if (ret) {
        stw_autofree char *text = json_dumps(f->objects[which], JSON_COMPACT);
        stw_buf_adds(ret, text);
    }
    return 0;
}

static int serve(struct fake_api *f, const struct stw_request *req, struct stw_buf *ret,
                 struct stw_error *err)
{
    size_t len = strcspn(req->path, "?");
    if (stw_streq(req->method, "GET")) {
        for (unsigned i = 0; i < FAKE_OBJECTS; i++)
            if (stw_streq(req->path, paths[i]))
                return answer(f, i, ret, err);
        fail_msg("GET %s", req->path);
    }
    json_t *body = json_loads(req->body, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(body);
    int rc = -1;
    if (stw_streq(req->method, "POST") && stw_streq(req->path, SECRETS))
        rc = create(f, body, err);
    else if (stw_streq(req->method, "PUT") && stw_streq(req->path, paths[FAKE_SECRET]))
        rc = update(f, FAKE_SECRET, body, err);
    else if (stw_streq(req->method, "PATCH") &&
             stw_streq(req->content_type, "application/json-patch+json") &&
             stw_streq(req->path + len, "?fieldManager=steward-certs"))
        rc = patch(f,
                   strncmp(req->path, paths[FAKE_MUTATING], len) == 0 ? FAKE_MUTATING
                   : strncmp(req->path, paths[FAKE_CRD], len) == 0    ? FAKE_CRD
                                                                      : FAKE_VALIDATING,
                   body, err);
    else
        fail_msg("%s %s", req->method, req->path);
    json_decref(body);
    f->writes += rc == 0;
    if (rc == 0 && f->wrote)
        f->wrote(f->ctx);
    return rc;
}

int fake_call(void *ctx, const struct stw_request *req, struct stw_buf *ret, struct stw_error *err)
{
    struct fake_api *f = ctx;
    unsigned call = ++f->calls;
    if (call == f->intrude_at)
        f->intrude(f->ctx);
    if (call == f->fail_call)
        return stw_fail(err, f->fail_code, "made to fail");
    if (f->down) {
        *err = *f->down;
        return -1;
    }
    unsigned writes = f->writes;
    int rc = serve(f, req, ret, err);
    if (f->writes > writes && f->writes == f->fail_write) {
        if (ret)
            stw_buf_clear(ret);
        return stw_fail(err, f->fail_code, "made to fail, afterwards");
    }
    return rc;
}
