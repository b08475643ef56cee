/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/certificate.h"

#include "base/base64.h"
#include "certs/issue.h"
#include "kube/secret.h"

enum { CERT, KEY, CA, PARTS };

/* The keys of one form, and which of them have a value. */
struct form {
    char keys[PARTS][64];
    bool there[PARTS];
    int count; /* of those there */
};

static bool has_value(const struct stw_secret *s, const char *key)
{
    struct stw_json entry = stw_secret_entry(stw_json_root(&s->doc), key);
    return stw_json_type(entry) == STW_JSON_STRING && !stw_json_is(entry, "");
}

static void find_values(const struct stw_secret *s, struct form *f)
{
    for (int i = 0; i < PARTS; i++) {
        f->there[i] = has_value(s, f->keys[i]);
        f->count += f->there[i];
    }
}

/* The keys of these forms that are there, or those that are not. */
static int pick_keys(const struct form *const *forms, int count, bool there,
                     const char *ret[static 2 * PARTS])
{
    int found = 0;
    for (int i = 0; i < count * PARTS; i++)
        if (forms[i / PARTS]->there[i % PARTS] == there)
            ret[found++] = forms[i / PARTS]->keys[i % PARTS];
    return found;
}

/* "a, b and c" */
static void name_keys(const struct form *const *forms, int count, bool there, struct stw_buf *out)
{
    const char *keys[2 * PARTS];
    int found = pick_keys(forms, count, there, keys);
    for (int i = 0; i < found; i++)
        stw_buf_addf(out, "%s%s", i == 0 ? "" : i + 1 == found ? " and " : ", ", keys[i]);
}

/* Of two halves none is known to be the wanted one. */
static int fail_incomplete(const struct form *own, const struct form *common, const char *name,
                           struct stw_error *err)
{
    stw_autobuf struct stw_buf has = STW_BUF_INIT(512), lacks = STW_BUF_INIT(512);
    const struct form *const both[] = {own, common};
    bool none = own->count + common->count == 0;
    name_keys(both, 2, true, &has);
    for (int i = 0; i < 2; i++)
        if (both[i]->count > 0 || none) {
            stw_buf_adds(&lacks, lacks.len > 0 ? ", or " : "");
            name_keys(both + i, 1, false, &lacks);
        }
    return none ? stw_fail(err, STW_ERR_NOT_FOUND, "Secret \"%s\" needs %s", name,
                           stw_buf_str(&lacks))
                : stw_fail(err, STW_ERR_NOT_FOUND, "Secret \"%s\" has %s, but lacks %s", name,
                           stw_buf_str(&has), stw_buf_str(&lacks));
}

/* NULL: the error says why. */
static char *read_value(const struct stw_secret *s, const char *name, const char *key,
                        struct stw_error *err)
{
    stw_autobuf struct stw_buf value = {.max = STW_SECRET_DATA_MAX, .secret = true};
    int rc = stw_base64_json(stw_secret_entry(stw_json_root(&s->doc), key), &value);
    if (rc == 0 && value.len > STW_CERTIFICATE_MAX)
        (void)stw_fail(err, STW_ERR_TOO_LARGE,
                       "%s of Secret \"%s\" has %zu bytes; it may have at most %u", key, name,
                       value.len, STW_CERTIFICATE_MAX);
    else if (rc == 0 && memchr(value.data, '\0', value.len)) /* where OpenSSL would stop */
        (void)stw_fail(err, STW_ERR_INVALID,
                       "%s of Secret \"%s\" has a NUL byte, after which programs disagree on what "
                       "it is",
                       key, name);
    else if (rc == 0)
        return stw_buf_take(&value);
    else
        (void)stw_fail(err, STW_ERR_INVALID, "%s of Secret \"%s\" cannot be decoded", key, name);
    return NULL;
}

static bool is_certificate(const char *pem, const char *name, const char *key,
                           struct stw_error *err)
{
    struct stw_cert_info info;
    if (stw_cert_info(pem, &info, NULL) == 0)
        return true;
    (void)stw_fail(err, STW_ERR_INVALID, "%s of Secret \"%s\" holds no certificate in PEM", key,
                   name);
    return false;
}

int stw_certificate_check_authorities(const char *pem, struct stw_error *err)
{
    return stw_error_pass_over(stw_bundle_check(pem, err), STW_ERR_TOO_LARGE, err);
}

static bool are_authorities(const char *pem, const char *name, const char *key,
                            struct stw_error *err)
{
    if (stw_certificate_check_authorities(pem, err) == 0)
        return true;
    (void)stw_error_wrap(err, "%s of Secret \"%s\"", key, name);
    return false;
}

int stw_certificate_read(const struct stw_secret *s, const char *name, const char *prefix,
                         struct stw_certificate *ret, struct stw_error *err)
{
    struct form own = {0}, common = {.keys = {"tls.crt", "tls.key", "ca.crt"}};
    stw_format(own.keys[CERT], sizeof(own.keys[CERT]), "%s.crt", prefix);
    stw_format(own.keys[KEY], sizeof(own.keys[KEY]), "%s.key", prefix);
    stw_format(own.keys[CA], sizeof(own.keys[CA]), "%s-ca.crt", prefix);
    *ret = (struct stw_certificate){0};
    find_values(s, &own);
    find_values(s, &common);
    if (own.count < PARTS && common.count < PARTS)
        return fail_incomplete(&own, &common, name, err);
    const struct form *f = own.count == PARTS ? &own : &common;
    ret->common = f == &common;
    ret->cert = read_value(s, name, f->keys[CERT], err);
    ret->key = ret->cert ? read_value(s, name, f->keys[KEY], err) : NULL;
    ret->ca = ret->key ? read_value(s, name, f->keys[CA], err) : NULL;
    if (ret->ca && is_certificate(ret->cert, name, f->keys[CERT], err) &&
        are_authorities(ret->ca, name, f->keys[CA], err))
        return 0;
    stw_certificate_done(ret);
    return -1;
}

void stw_certificate_done(struct stw_certificate *c)
{
    stw_wipe_free(c->cert);
    stw_wipe_free(c->key);
    stw_wipe_free(c->ca);
    *c = (struct stw_certificate){0};
}
