/* SPDX-License-Identifier: Apache-2.0
 *
 * The AdmissionReview response, and metav1.Status for errors that are not decisions. */
#include "base/util.h"
#include "base/visible.h"
#include "webhook/review_priv.h"

/* The API server passes on 256 characters of each warning and 4096 in all; it truncates or drops
 * the rest (k8s.io/apiserver/pkg/endpoints/filters/warning.go). Truncating here shows the reader
 * that something is missing. */
#define WARNING_MAX 256U
#define WARNINGS_MAX 4096U
#define MORE_MAX 64U

void stw_status_write(struct stw_buf *out, int code, const char *reason, const char *message)
{
    stw_buf_adds(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                      "\"Failure\",\"message\":");
    stw_buf_json_strz(out, message);
    stw_buf_adds(out, ",\"reason\":");
    stw_buf_json_strz(out, reason);
    stw_buf_adds(out, ",\"code\":");
    stw_buf_addi(out, code);
    stw_buf_addc(out, '}');
}

static void add_string_member(struct stw_buf *out, const char *key, const char *value)
{
    stw_buf_adds(out, key);
    stw_buf_json_strz(out, value);
}

/* kubectl prints these members as they are. */
static void add_visible_member(struct stw_buf *out, const char *key, const char *value)
{
    stw_autobuf struct stw_buf shown = STW_BUF_INIT(out->max);
    stw_visible_add(&shown, value, strlen(value));
    add_string_member(out, key, stw_buf_str(&shown));
    out->failed |= shown.failed;
}

static void add_cause(const struct stw_finding *f, struct stw_buf *detail, struct stw_buf *out)
{
    stw_buf_clear(detail);
    stw_finding_detail(f, detail);
    add_string_member(out, "{\"reason\":", stw_finding_cause(f->code));
    stw_buf_adds(out, ",\"message\":");
    stw_buf_json_str(out, stw_buf_str(detail), detail->len);
    add_visible_member(out, ",\"field\":", f->path);
    stw_buf_addc(out, '}');
    out->failed |= detail->failed;
}

static void add_details(const struct stw_envelope *e, const struct stw_review_result *v,
                        struct stw_buf *out)
{
    stw_autobuf struct stw_buf detail = STW_BUF_INIT(out->max);
    stw_buf_adds(out, ",\"details\":{");
    if (v->name[0])
        add_visible_member(out, "\"name\":", v->name);
    add_string_member(out, v->name[0] ? ",\"group\":" : "\"group\":", e->admission.kind->group);
    add_string_member(out, ",\"kind\":", e->admission.kind->kind);
    stw_buf_adds(out, ",\"causes\":[");
    for (size_t i = 0; i < v->findings.error_count; i++) {
        if (i > 0)
            stw_buf_addc(out, ',');
        add_cause(&v->findings.errors[i], &detail, out);
    }
    stw_buf_adds(out, "]}");
}

static void add_denial(const struct stw_envelope *e, const struct stw_review_result *v,
                       struct stw_buf *out)
{
    stw_autobuf struct stw_buf message = STW_BUF_INIT(out->max);
    stw_kind_denial(&e->admission, &v->findings, &message);
    stw_buf_adds(out, ",\"status\":{\"metadata\":{},\"status\":\"Failure\",\"message\":");
    stw_buf_json_str(out, stw_buf_str(&message), message.len);
    stw_buf_adds(out, ",\"reason\":\"Invalid\"");
    add_details(e, v, out);
    stw_buf_adds(out, ",\"code\":422}");
    out->failed |= message.failed;
}

/* At most WARNING_MAX bytes: the text is sent in an HTTP header.  It is one line already. */
static void trim_warning(const char *text, char out[WARNING_MAX + 1])
{
    size_t len = strnlen(text, WARNING_MAX);
    memcpy(out, text, len);
    if (text[len]) {
        len = WARNING_MAX - 3;
        while (len > 0 && ((unsigned char)out[len] & 0xc0U) == 0x80U)
            len--; /* not inside a UTF-8 sequence */
        memcpy(out + len, "...", 3);
        len += 3;
    }
    out[len] = '\0';
}

static void add_warnings(const struct stw_findings *f, struct stw_buf *out)
{
    char line[WARNING_MAX + 1];
    size_t used = 0, i;
    if (f->warning_count == 0)
        return;
    stw_buf_adds(out, ",\"warnings\":[");
    for (i = 0; i < f->warning_count; i++) {
        trim_warning(f->warnings[i], line);
        used += strlen(line);
        if (used > WARNINGS_MAX - MORE_MAX)
            break;
        if (i > 0)
            stw_buf_addc(out, ',');
        stw_buf_json_strz(out, line);
    }
    if (i < f->warning_count)
        stw_buf_addf(out, ",\"%zu more warnings are not shown\"", f->warning_count - i);
    stw_buf_addc(out, ']');
}

void stw_reply_write(const struct stw_envelope *e, const struct stw_review_result *v,
                     const struct stw_patch *patch, struct stw_buf *out)
{
    size_t len;
    const char *uid = stw_json_raw(e->uid, &len);
    stw_buf_adds(out, "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                      "\"response\":{\"uid\":");
    stw_buf_add(out, uid, len);
    stw_buf_adds(out, v->allowed ? ",\"allowed\":true" : ",\"allowed\":false");
    if (!v->allowed)
        add_denial(e, v, out);
    if (patch && patch->count > 0) {
        stw_buf_adds(out, ",\"patchType\":\"JSONPatch\",\"patch\":\"");
        stw_patch_base64(patch, out);
        stw_buf_addc(out, '"');
    }
    add_warnings(&v->findings, out);
    stw_buf_adds(out, "}}");
}
