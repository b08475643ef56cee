/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict parsing of the AdmissionReview envelope. An invalid member is reported by name; the object
 * inside is not checked here. */
#include "base/util.h"
#include "webhook/review_priv.h"

#include <stdio.h>

#define REVIEW_VERSION "admission.k8s.io/v1"

static const struct {
    const char *name;
    enum stw_operation operation;
    bool object, old_object; /* required members */
} operations[] = {
    {"CREATE", STW_CREATE, true, false},
    {"UPDATE", STW_UPDATE, true, true},
    {"DELETE", STW_DELETE, false, true},
    {"CONNECT", STW_CONNECT, false, false},
};

static int fail_field(struct stw_error *err, const char *field, const char *must)
{
    return stw_fail(err, STW_ERR_INVALID, "%s: %s", field, must);
}

static int check_version(struct stw_json root, struct stw_error *err)
{
    struct stw_json version = stw_json_get(root, "apiVersion");
    if (stw_json_is(version, "admission.k8s.io/v1beta1"))
        return fail_field(err, "apiVersion",
                          "admission.k8s.io/v1beta1 is not served; set admissionReviewVersions: "
                          "[\"v1\"] in the webhook configuration");
    if (!stw_json_is(version, REVIEW_VERSION))
        return fail_field(err, "apiVersion", "must be \"" REVIEW_VERSION "\"");
    if (!stw_json_is(stw_json_get(root, "kind"), "AdmissionReview"))
        return fail_field(err, "kind", "must be \"AdmissionReview\"");
    return 0;
}

/* "group/version, Thing" of a request's kind or resource, for a message. */
static void format_subject(struct stw_json node, const char *last, char *out, size_t size)
{
    char group[128], version[64], name[64];
    if (stw_json_strcpy(stw_json_get(node, "group"), group, sizeof(group)) != 0)
        stw_format(group, sizeof(group), "?");
    if (stw_json_strcpy(stw_json_get(node, "version"), version, sizeof(version)) != 0)
        stw_format(version, sizeof(version), "?");
    if (stw_json_strcpy(stw_json_get(node, last), name, sizeof(name)) != 0)
        stw_format(name, sizeof(name), "?");
    stw_format(out, size, "%s/%s %s", group, version, name);
}

/* With matchPolicy Equivalent the API server converts to the version in the rule. So request.kind
 * and request.resource are ours even where requestKind and requestResource are not. */
static int check_subject(const struct stw_kind *k, struct stw_json request, const char *field,
                         const char *last, const char *name, struct stw_error *err)
{
    struct stw_json node = stw_json_get(request, field);
    if (stw_json_type(node) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID,
                        "request.%s: must be an object of group, version and %s", field, last);
    if (stw_json_is(stw_json_get(node, "group"), k->group) &&
        stw_json_is(stw_json_get(node, "version"), k->version) &&
        stw_json_is(stw_json_get(node, last), name))
        return 0;
    char got[260];
    format_subject(node, last, got, sizeof(got));
    return stw_fail(
        err, STW_ERR_INVALID,
        "request.%s: this path answers for %s/%s %s, not for %s; correct the rules or the "
        "path in the webhook configuration",
        field, k->group, k->version, name, got);
}

/* An optional string; null counts as absent. */
static int read_string(struct stw_json request, const char *field, char *out, size_t size,
                       struct stw_error *err)
{
    struct stw_json node = stw_json_get(request, field);
    if (!stw_json_there(node)) {
        out[0] = '\0';
        return 0;
    }
    if (stw_json_type(node) != STW_JSON_STRING)
        return stw_fail(err, STW_ERR_INVALID, "request.%s: must be a string", field);
    if (stw_json_strcpy(node, out, size) != 0)
        return stw_fail(err, STW_ERR_INVALID, "request.%s: must be at most %zu bytes without NUL",
                        field, size - 1);
    return 0;
}

static int read_uid(struct stw_json request, struct stw_envelope *e, struct stw_review_result *v,
                    struct stw_error *err)
{
    e->uid = stw_json_get(request, "uid");
    if (stw_json_type(e->uid) != STW_JSON_STRING || stw_json_size(e->uid) == 0 ||
        stw_json_strcpy(e->uid, v->uid, sizeof(v->uid)) != 0)
        return fail_field(err, "request.uid", "must be a string of 1 to 64 bytes");
    return 0;
}

static int check_object(struct stw_json object, const char *field, bool needed,
                        const char *operation, struct stw_error *err)
{
    if (stw_json_type(object) == STW_JSON_OBJECT || (!needed && !stw_json_there(object)))
        return 0;
    return stw_fail(err, STW_ERR_INVALID,
                    "request.%s: must be an object%s when request.operation is %s", field,
                    needed ? "" : " or null", operation);
}

static int read_operation(struct stw_json request, struct stw_envelope *e,
                          struct stw_review_result *v, struct stw_error *err)
{
    struct stw_json node = stw_json_get(request, "operation");
    for (size_t i = 0; i < STW_COUNT(operations); i++) {
        if (!stw_json_is(node, operations[i].name))
            continue;
        v->operation = operations[i].name;
        e->admission.operation = operations[i].operation;
        e->admission.object = stw_json_get(request, "object");
        e->admission.old_object = stw_json_get(request, "oldObject");
        if (check_object(e->admission.object, "object", operations[i].object, v->operation, err) !=
            0)
            return -1;
        return check_object(e->admission.old_object, "oldObject", operations[i].old_object,
                            v->operation, err);
    }
    return fail_field(err, "request.operation", "must be CREATE, UPDATE, DELETE or CONNECT");
}

static int read_dry_run(struct stw_json request, struct stw_review_result *v, struct stw_error *err)
{
    struct stw_json node = stw_json_get(request, "dryRun");
    enum stw_json_type type = stw_json_type(node);
    if (type != STW_JSON_TRUE && type != STW_JSON_FALSE && stw_json_there(node))
        return fail_field(err, "request.dryRun", "must be true or false");
    v->dry_run = type == STW_JSON_TRUE;
    return 0;
}

static int read_sub_resource(struct stw_json request, struct stw_envelope *e, struct stw_error *err)
{
    struct stw_json node = stw_json_get(request, "subResource");
    if (stw_json_there(node) && stw_json_type(node) != STW_JSON_STRING)
        return fail_field(err, "request.subResource", "must be a string");
    e->bypass = stw_json_size(node) > 0 || e->admission.operation == STW_CONNECT;
    return 0;
}

/* Only for the log, so a name that is too long does not cause a refusal. */
static void read_user(struct stw_json request, struct stw_review_result *v)
{
    struct stw_json user = stw_json_get(stw_json_get(request, "userInfo"), "username");
    if (stw_json_strcpy(user, v->user, sizeof(v->user)) != 0)
        v->user[0] = '\0';
}

int stw_envelope_read(const struct stw_kind *kind, const struct stw_json_doc *doc,
                      struct stw_envelope *e, struct stw_review_result *v, struct stw_error *err)
{
    struct stw_json root = stw_json_root(doc), request = stw_json_get(root, "request");
    if (stw_json_type(root) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "the body must be an AdmissionReview, a JSON object");
    if (check_version(root, err) != 0)
        return -1;
    if (stw_json_type(request) != STW_JSON_OBJECT)
        return fail_field(err, "request", "must be an object");
    if (read_uid(request, e, v, err) != 0 ||
        check_subject(kind, request, "kind", "kind", kind->kind, err) != 0 ||
        check_subject(kind, request, "resource", "resource", kind->plural, err) != 0 ||
        read_string(request, "name", v->name, sizeof(v->name), err) != 0 ||
        read_string(request, "namespace", v->ns, sizeof(v->ns), err) != 0 ||
        read_operation(request, e, v, err) != 0 || read_dry_run(request, v, err) != 0)
        return -1;
    read_user(request, v);
    e->admission.kind = kind;
    e->admission.ns = v->ns;
    e->admission.name = v->name;
    return read_sub_resource(request, e, err);
}
