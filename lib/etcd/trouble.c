/* SPDX-License-Identifier: Apache-2.0
 *
 * What a refusal means.  Only the text distinguishes etcd's errors: many of them share one gRPC
 * code (api/v3rpc/rpctypes/error.go), and 3.4 and 3.5 use different HTTP statuses for one code. */
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <assert.h>
#include <stdio.h>

#define COMMON_NAME "CommonName of client"

/* By a part of the text; the first row that matches counts. */
static const struct {
    const char *part;
    enum stw_etcd_trouble trouble;
    bool login;
} known[] = {
    {"learner member which is in sync with leader", STW_ETCD_NOT_READY, false},
    {"can only promote a learner member", STW_ETCD_EXISTS, false}, /* it is a voter already */
    {"too many learner", STW_ETCD_TOO_MANY_LEARNERS, false},
    {"not enough started members", STW_ETCD_UNHEALTHY, false},
    {"unhealthy cluster", STW_ETCD_UNHEALTHY, false},
    {"Peer URLs already exists", STW_ETCD_EXISTS, false},
    {"member ID already exist", STW_ETCD_EXISTS, false},
    {"required revision has been compacted", STW_ETCD_EXISTS, false},
    {"member not found", STW_ETCD_NOT_FOUND, false},
    {"has a downgrade job in progress", STW_ETCD_NOT_READY, false}, /* soon visible in its status */
    {"no inflight downgrade job", STW_ETCD_NOT_FOUND, false},
    {"database space exceeded", STW_ETCD_NO_SPACE, false},
    {"corrupt", STW_ETCD_CORRUPT, false},
    {"no leader", STW_ETCD_NO_LEADER, false},
    {"leader changed", STW_ETCD_NO_LEADER, false},
    {"request timed out", STW_ETCD_NO_LEADER, false},
    {"deadline exceeded", STW_ETCD_NO_LEADER, false},
    {"not supported for learner", STW_ETCD_UNSUPPORTED, false},
    {"invalid auth token", STW_ETCD_AUTH, true},
    {"auth store is old", STW_ETCD_AUTH, true},
    {"user name is empty", STW_ETCD_AUTH, true},
    {"authentication failed", STW_ETCD_AUTH, false},
    {"permission denied", STW_ETCD_AUTH, false},
    /* With authentication, the gateway accepts no certificate with a CommonName, which could be a
     * user (server/embed/serve.go). */
    {COMMON_NAME, STW_ETCD_AUTH, false},
    {"server stopped", STW_ETCD_UNREACHABLE, false},
};

/* If the text is not known: by the gRPC code. */
static const struct {
    int code;
    enum stw_etcd_trouble trouble;
} by_code[] = {
    {4, STW_ETCD_NO_LEADER},    /* DeadlineExceeded */
    {7, STW_ETCD_AUTH},         /* PermissionDenied */
    {12, STW_ETCD_UNSUPPORTED}, /* Unimplemented */
    {14, STW_ETCD_UNREACHABLE}, /* Unavailable: the gateway does not reach its own server */
    {15, STW_ETCD_CORRUPT},     /* DataLoss */
    {16, STW_ETCD_AUTH},        /* Unauthenticated */
};

static void classify_refusal(int http, struct stw_etcd_refusal *r)
{
    r->trouble = STW_ETCD_FAILED;
    for (size_t i = 0; i < STW_COUNT(known); i++)
        if (strstr(r->text, known[i].part)) {
            r->trouble = known[i].trouble;
            r->login = known[i].login;
            return;
        }
    for (size_t i = 0; i < STW_COUNT(by_code); i++)
        if (by_code[i].code == r->code)
            r->trouble = by_code[i].trouble;
    if (http == 404 && r->trouble == STW_ETCD_FAILED)
        r->trouble = STW_ETCD_UNSUPPORTED; /* no such path */
}

/* Copies one line of printable ASCII, truncated to `size`. */
static void copy_text(const char *text, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < size; i++) {
        unsigned char c = (unsigned char)text[i];
        out[n++] = c < ' ' || c >= 127 ? ' ' : (char)c;
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

static void take_text(struct stw_json from, struct stw_etcd_refusal *r)
{
    struct stw_buf text = STW_BUF_INIT(4096);
    struct stw_json message = stw_json_get(from, "message");
    stw_json_str(stw_json_type(message) == STW_JSON_STRING ? message : stw_json_get(from, "error"),
                 &text);
    copy_text(stw_buf_str(&text), text.len, r->text, sizeof(r->text));
    stw_buf_done(&text);
}

static void take_code(struct stw_json v, struct stw_etcd_refusal *r)
{
    int64_t code = 0;
    if (stw_json_int(v, &code) == 0 && code > 0 && code < 100)
        r->code = (int)code;
}

void stw_etcd_refusal_read(int http, const char *text, size_t len, struct stw_etcd_refusal *ret)
{
    stw_autojson struct stw_json_doc doc = {.max = STW_ETCD_LINE_VALUES_MAX};
    *ret = (struct stw_etcd_refusal){0};
    if (stw_json_scan(&doc, text, len, NULL) == 0) {
        struct stw_json root = stw_json_root(&doc), inner = stw_json_get(root, "error");
        bool stream = stw_json_type(inner) == STW_JSON_OBJECT;
        take_text(stream ? inner : root, ret);
        take_code(stw_json_get(stream ? inner : root, "code"), ret);
        take_code(stw_json_get(inner, "grpc_code"), ret);
    } else {
        copy_text(text, STW_MIN(len, sizeof(ret->text)), ret->text, sizeof(ret->text));
    }
    if (!ret->text[0])
        stw_format(ret->text, sizeof(ret->text), "HTTP status %d without a reason", http);
    classify_refusal(http, ret);
}

static const char *const words[] = {
    [STW_ETCD_UNREACHABLE] = "it cannot be reached, or does not answer in time",
    [STW_ETCD_TLS] = "TLS fails: one of the two certificates is not trusted",
    [STW_ETCD_AUTH] = "the user or the password was refused, or is missing",
    [STW_ETCD_NO_LEADER] = "it answers, but has no quorum",
    [STW_ETCD_NO_SPACE] = "its alarm NOSPACE is on",
    [STW_ETCD_CORRUPT] = "its alarm CORRUPT is on",
    [STW_ETCD_UNSUPPORTED] = "the server there does not support this call of etcd",
    [STW_ETCD_FAILED] = "the server there is not etcd, or refused the call",
};
static_assert(STW_COUNT(words) == STW_ETCD_TROUBLES, "one text for each trouble");

const char *stw_etcd_words(const struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                           enum stw_etcd_trouble trouble, const struct stw_error *err)
{
    bool ours = !e->reach || at->address || trouble == STW_ETCD_NOT_ALLOWED ||
                trouble == STW_ETCD_FINE || err->code == STW_ERR_CANCELLED ||
                err->code == STW_ERR_INTERNAL;
    if (ours)
        return err->text;
    if (trouble == STW_ETCD_AUTH && strstr(err->text, COMMON_NAME))
        return "with users, etcd takes no client certificate that has a CommonName: use one "
               "without";
    return (size_t)trouble < STW_COUNT(words) && words[trouble] ? words[trouble]
                                                                : words[STW_ETCD_FAILED];
}

int stw_etcd_refuse(struct stw_etcd_exchange *x, enum stw_etcd_trouble trouble, enum stw_err code,
                    const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    x->trouble = trouble;
    (void)stw_vfail(&x->err, code, fmt, ap);
    va_end(ap);
    return -1;
}
