/* SPDX-License-Identifier: Apache-2.0
 *
 * `as`, `as-uid`, `as-groups` and `as-user-extra` of a kubeconfig's user, as headers.  The rules are
 * those of client-go. */
#include "kube/client/impersonate_priv.h"

#include <ctype.h>

static bool is_header_value(struct stw_json v)
{
    stw_autofree char *text = stw_json_strdup(v);
    if (!text || !*text || strlen(text) != stw_json_size(v))
        return false;
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            return false;
    return true;
}

static int add_line(struct stw_buf *out, const char *name, const char *key, struct stw_json v,
                    struct stw_error *err)
{
    if (!is_header_value(v))
        return stw_fail(err, STW_ERR_INVALID, "%s must be texts of one line", key);
    stw_buf_addf(out, "%s: ", name);
    stw_json_str(v, out);
    stw_buf_addc(out, '\n');
    return 0;
}

/* A string, or none. */
static int add_one(struct stw_buf *out, struct stw_json user, const char *key, const char *name,
                   struct stw_error *err)
{
    struct stw_json v = stw_json_get(user, key);
    bool empty = stw_json_type(v) == STW_JSON_STRING && stw_json_size(v) == 0;
    return !stw_json_there(v) || empty ? 0 : add_line(out, name, key, v, err);
}

static int add_list(struct stw_buf *out, struct stw_json list, const char *key, const char *name,
                    struct stw_error *err)
{
    struct stw_json none, v;
    if (stw_json_there(list) && stw_json_type(list) != STW_JSON_ARRAY)
        return stw_fail(err, STW_ERR_INVALID, "%s must be a list", key);
    stw_json_foreach (list, none, v)
        if (add_line(out, name, key, v, err) != 0)
            return -1;
    return 0;
}

/* A key may have any character: those that a header's name may not have are percent-encoded, and
 * so is '%' itself. */
static void add_escaped_key(struct stw_buf *out, const char *key)
{
    for (const char *c = key; *c; c++) {
        if (isalnum((unsigned char)*c) || strchr("!#$&'*+-.^_`|~", *c))
            stw_buf_addc(out, *c);
        else
            stw_buf_addf(out, "%%%02X", (unsigned)(unsigned char)*c);
    }
}

static int add_extra(struct stw_buf *out, struct stw_json extra, struct stw_error *err)
{
    struct stw_json key, list;
    if (stw_json_there(extra) && stw_json_type(extra) != STW_JSON_OBJECT)
        return stw_fail(err, STW_ERR_INVALID, "as-user-extra must be a map of lists");
    stw_json_foreach (extra, key, list) {
        stw_autobuf struct stw_buf name = STW_BUF_INIT(4096);
        stw_autofree char *text = stw_json_strdup(key);
        stw_buf_adds(&name, "Impersonate-Extra-");
        add_escaped_key(&name, text ? text : "");
        if (!text || !*text || name.failed)
            return stw_fail(err, STW_ERR_INVALID,
                            "as-user-extra has a key that is empty or too long");
        if (add_list(out, list, "as-user-extra", stw_buf_str(&name), err) != 0)
            return -1;
    }
    return 0;
}

int stw_impersonation_parse(struct stw_json user, char **ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(STW_IMPERSONATION_MAX_BYTES);
    if (add_one(&out, user, "as", "Impersonate-User", err) != 0)
        return -1;
    bool named = out.len > 0;
    if (add_one(&out, user, "as-uid", "Impersonate-Uid", err) != 0 ||
        add_list(&out, stw_json_get(user, "as-groups"), "as-groups", "Impersonate-Group", err) !=
            0 ||
        add_extra(&out, stw_json_get(user, "as-user-extra"), err) != 0)
        return -1;
    if (out.len > 0 && !named)
        return stw_fail(err, STW_ERR_INVALID,
                        "as-uid, as-groups and as-user-extra need `as`, the name of the user");
    if (out.failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "the user to act as has more than %u bytes",
                        STW_IMPERSONATION_MAX_BYTES);
    if (out.len == 0)
        return 0;
    *ret = stw_buf_take(&out);
    return *ret ? 0 : stw_fail_memory(err);
}
