/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/conversion.h"

#include "base/util.h"
#include "schema/conversion.h"
#include "webhook/skim_priv.h"

#include <assert.h>

#define REVIEW_VERSION "apiextensions.k8s.io/v1"
#define SCRATCH_KEEP_TOKENS 16384U

bool stw_conversion_needed(const struct stw_kind *const *kinds)
{
    for (; *kinds; kinds++)
        if ((*kinds)->versions && (*kinds)->versions->name)
            return true;
    return false;
}

/* --- the envelope */

static int fail_field(struct stw_error *err, const char *field, const char *must)
{
    return stw_fail(err, STW_ERR_INVALID, "%s: %s", field, must);
}

static int check_envelope(struct stw_json root, struct stw_error *err)
{
    struct stw_json request = stw_json_get(root, "request");
    struct stw_json uid = stw_json_get(request, "uid");
    if (stw_json_type(root) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "the body must be a ConversionReview, a JSON object");
    if (!stw_json_is(stw_json_get(root, "apiVersion"), REVIEW_VERSION))
        return fail_field(err, "apiVersion", "must be \"" REVIEW_VERSION "\"");
    if (!stw_json_is(stw_json_get(root, "kind"), "ConversionReview"))
        return fail_field(err, "kind", "must be \"ConversionReview\"");
    if (stw_json_type(request) != STW_JSON_OBJECT)
        return fail_field(err, "request", "must be an object");
    if (stw_json_type(uid) != STW_JSON_STRING || stw_json_size(uid) == 0 || stw_json_size(uid) > 64)
        return fail_field(err, "request.uid", "must be a string of 1 to 64 bytes");
    if (stw_json_type(stw_json_get(request, "desiredAPIVersion")) != STW_JSON_STRING)
        return fail_field(err, "request.desiredAPIVersion", "must be a string");
    if (stw_json_type(stw_json_get(request, "objects")) != STW_JSON_ARRAY)
        return fail_field(err, "request.objects", "must be a list");
    return 0;
}

/* --- the objects */

/* `request.objects[3] (Redirect "shop/web")`, as far as the object states it. */
static void name_object(size_t index, struct stw_json object, char *out, size_t size)
{
    char kind[64], ns[64], name[254];
    struct stw_json metadata = stw_json_get(object, "metadata");
    stw_json_cut(stw_json_get(object, "kind"), kind, sizeof(kind));
    stw_json_cut(stw_json_get(metadata, "namespace"), ns, sizeof(ns));
    stw_json_cut(stw_json_get(metadata, "name"), name, sizeof(name));
    stw_format(out, size, "request.objects[%zu] (%s \"%s%s%s\")", index, *kind ? kind : "no kind",
               ns, *ns ? "/" : "", name);
}

/* The kind and version of an apiVersion and a kind. */
static const struct stw_kind *find_kind(const struct stw_kind *const *kinds,
                                        struct stw_json api_version, struct stw_json kind,
                                        const char **ret_version)
{
    for (; *kinds; kinds++)
        if (stw_json_is(kind, (*kinds)->kind) && stw_kind_serves(*kinds, api_version, ret_version))
            return *kinds;
    return NULL;
}

static int fail_unknown_object(const struct stw_kind *const *kinds, struct stw_json object,
                               struct stw_error *err)
{
    stw_autobuf struct stw_buf versions = STW_BUF_INIT(1024);
    char is[320];
    stw_json_cut(stw_json_get(object, "apiVersion"), is, sizeof(is));
    for (; *kinds && !stw_json_is(stw_json_get(object, "kind"), (*kinds)->kind); kinds++)
        ;
    if (!*kinds)
        return stw_fail(err, STW_ERR_INVALID, "kind: this webhook does not have this kind");
    stw_kind_versions_text(*kinds, &versions);
    return stw_fail(err, STW_ERR_INVALID, "apiVersion: \"%.100s\" is not known; known are %s", is,
                    stw_buf_str(&versions));
}

static int fail_desired(const struct stw_kind *k, struct stw_json desired, struct stw_error *err)
{
    stw_autobuf struct stw_buf versions = STW_BUF_INIT(1024);
    char text[128];
    stw_json_cut(desired, text, sizeof(text));
    stw_kind_versions_text(k, &versions);
    return stw_fail(err, STW_ERR_INVALID,
                    "request.desiredAPIVersion: \"%s\" is not a version of %s; its versions are %s",
                    text, k->kind, stw_buf_str(&versions));
}

static int convert_object(const struct stw_conversion_review *r, struct stw_json object,
                          struct stw_json desired, struct stw_buf *out,
                          struct stw_conversion_result *ret, struct stw_error *err)
{
    const struct stw_kind *k =
        find_kind(r->kinds, stw_json_get(object, "apiVersion"), stw_json_get(object, "kind"), NULL);
    if (stw_json_type(object) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "must be an object");
    if (!k)
        return fail_unknown_object(r->kinds, object, err);
    ret->kind = k;
    if (!stw_kind_serves(k, desired, &ret->version))
        return fail_desired(k, desired, err);
    return stw_convert(r->op, k, object, ret->version, out, err);
}

/* `doc` is for one object after the other. */
static int convert_element(const struct stw_conversion_review *r, struct stw_piece element,
                           struct stw_json desired, struct stw_json_doc *doc, struct stw_buf *out,
                           struct stw_conversion_result *ret, struct stw_error *err)
{
    char name[512];
    struct stw_json object = STW_JSON_NONE;
    if (*element.at == '{') {
        if (stw_json_scan(doc, element.at, element.len, err) != 0) {
            (void)stw_error_wrap(err, "request.objects[%zu]", ret->objects);
            ret->unreadable = true;
            return -1;
        }
        object = stw_json_root(doc);
    }
    if (convert_object(r, object, desired, out, ret, err) == 0)
        return 0;
    name_object(ret->objects, object, name, sizeof(name));
    return stw_error_wrap(err, "%s", name);
}

static int convert_objects(const struct stw_conversion_review *r, struct stw_piece objects,
                           struct stw_json request, struct stw_json_doc *doc, struct stw_buf *out,
                           struct stw_conversion_result *ret, struct stw_error *err)
{
    struct stw_json desired = stw_json_get(request, "desiredAPIVersion");
    struct stw_piece element;
    int more;
    while ((more = stw_skim_element(&objects, &element)) > 0) {
        if (ret->objects > 0)
            stw_buf_addc(out, ',');
        if (convert_element(r, element, desired, doc, out, ret, err) != 0)
            return -1;
        ret->objects++;
    }
    ret->unreadable = more < 0;
    return more == 0
               ? 0
               : stw_fail(err, STW_ERR_INVALID,
                          "request.objects: no comma or bracket after element %zu", ret->objects);
}

/* --- the reply */

static void begin_reply(struct stw_json request, struct stw_buf *out)
{
    size_t len = 0;
    const char *uid = stw_json_raw(stw_json_get(request, "uid"), &len);
    stw_buf_clear(out);
    stw_buf_adds(out, "{\"apiVersion\":\"" REVIEW_VERSION "\",\"kind\":\"ConversionReview\","
                      "\"response\":{\"uid\":");
    stw_buf_add(out, uid, len);
    stw_buf_adds(out, ",\"convertedObjects\":[");
}

static int write_status(struct stw_buf *reply, int code, const struct stw_error *err)
{
    stw_buf_clear(reply);
    stw_status_write(reply, code, code == 500 ? "InternalError" : "BadRequest", err->text);
    return code;
}

static int refuse_body(struct stw_buf *reply, struct stw_conversion_result *ret, const char *why,
                       struct stw_error *err)
{
    (void)stw_error_wrap(err, "%s", why);
    stw_format(ret->why, sizeof(ret->why), "%s", err->text);
    return write_status(reply, err->code == STW_ERR_INTERNAL ? 500 : 400, err);
}

#define NO_JSON "the body is not valid JSON, or too complex"

static int answer_review(const struct stw_conversion_review *r, struct stw_piece objects,
                         struct stw_json request, struct stw_json_doc *doc, struct stw_buf *reply,
                         struct stw_conversion_result *ret)
{
    struct stw_error err = {0};
    begin_reply(request, reply);
    (void)stw_buf_reserve(reply, r->len);
    ret->converted = convert_objects(r, objects, request, doc, reply, ret, &err) == 0;
    if (ret->converted) {
        stw_buf_adds(reply, "],\"result\":{\"status\":\"Success\"}}}");
    } else if (ret->unreadable) {
        return refuse_body(reply, ret, NO_JSON, &err);
    } else if (err.code == STW_ERR_INTERNAL) {
        stw_format(ret->why, sizeof(ret->why), "%s", err.text);
        return write_status(reply, 500, &err);
    } else {
        begin_reply(request, reply);
        stw_buf_adds(reply, "],\"result\":{\"status\":\"Failure\",\"message\":");
        stw_buf_json_strz(reply, err.text);
        stw_buf_adds(reply, "}}}");
    }
    stw_format(ret->why, sizeof(ret->why), "%s", err.text);
    if (!reply->failed)
        return 200;
    ret->converted = false;
    (void)stw_fail(&err, STW_ERR_INTERNAL, "no memory for the converted objects; try again");
    stw_format(ret->why, sizeof(ret->why), "%s", err.text);
    return write_status(reply, 500, &err);
}

static struct stw_piece find_objects(const char *body, size_t len)
{
    return stw_skim_member(stw_skim_member((struct stw_piece){body, len}, "request"), "objects");
}

static bool is_list(struct stw_piece v)
{
    return v.len >= 2 && v.at[0] == '[' && v.at[v.len - 1] == ']';
}

/* The text of the review without its objects, which are read one by one. */
static void write_envelope(const struct stw_conversion_review *r, struct stw_piece objects,
                           struct stw_buf *out)
{
    const char *from = r->body;
    if (is_list(objects)) {
        stw_buf_add(out, from, (size_t)(objects.at + 1 - from));
        from = objects.at + objects.len - 1;
    }
    stw_buf_add(out, from, (size_t)(r->body + r->len - from));
}

static int read_envelope(const struct stw_buf *text, struct stw_json_doc *doc,
                         struct stw_buf *reply, struct stw_conversion_result *ret)
{
    struct stw_error err = {0};
    doc->max = STW_CONVERSION_VALUES_MAX;
    if (stw_json_scan(doc, stw_buf_str(text), text->len, &err) != 0)
        return refuse_body(reply, ret, NO_JSON, &err);
    if (check_envelope(stw_json_root(doc), &err) != 0)
        return refuse_body(reply, ret, "the body is not a ConversionReview that can be answered",
                           &err);
    return 0;
}

size_t stw_conversion_memory(const char *body, size_t len)
{
    struct stw_piece list = find_objects(body, len), element;
    size_t most = 0;
    if (!is_list(list))
        return 2 * len + stw_skim_memory((struct stw_piece){body, len});
    const char *behind = list.at + list.len;
    size_t envelope = len - list.len + 2,
           scan = stw_skim_memory((struct stw_piece){body, (size_t)(list.at - body)}) +
                  stw_skim_memory((struct stw_piece){behind, (size_t)(body + len - behind)});
    while (stw_skim_element(&list, &element) > 0)
        most = STW_MAX(most, stw_skim_memory(element));
    return len + envelope + scan + most; /* the first: the reply */
}

int stw_conversion_handle(const struct stw_conversion_review *r, struct stw_review_scratch *scratch,
                          struct stw_buf *reply, struct stw_conversion_result *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(r->len + 1);
    stw_autojson struct stw_json_doc envelope = {0};
    struct stw_piece objects = find_objects(r->body, r->len);
    struct stw_json_doc *doc = &scratch->doc;
    assert(r->op && r->kinds);
    *ret = (struct stw_conversion_result){0};
    doc->max = STW_CONVERSION_VALUES_MAX;
    write_envelope(r, objects, &text);
    int status = read_envelope(&text, &envelope, reply, ret);
    if (status == 0)
        status = answer_review(r, objects, stw_json_get(stw_json_root(&envelope), "request"), doc,
                               reply, ret);
    if (doc->cap > SCRATCH_KEEP_TOKENS || r->len > STW_SMALL_BODY)
        stw_json_done(doc);
    return status;
}
