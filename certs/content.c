/* SPDX-License-Identifier: Apache-2.0 */
#include "content_priv.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/util.h"

#include <assert.h>

const char *const stw_slot_names[] = {
    [STW_SLOT_TLS_CRT] = "tls.crt",      [STW_SLOT_TLS_KEY] = "tls.key",
    [STW_SLOT_CA_CRT] = "ca.crt",        [STW_SLOT_CA_KEY] = "ca.key",
    [STW_SLOT_NEXT_CRT] = "ca-next.crt", [STW_SLOT_NEXT_KEY] = "ca-next.key",
    [STW_SLOT_OLD_CRT] = "ca-old.crt",   [STW_SLOT_OLD_UNTIL] = "ca-old.until",
};
static_assert(STW_COUNT(stw_slot_names) == STW_SLOTS, "one name for each slot");

/* Set by cert-manager on every Secret that it manages. */
#define CERT_MANAGER_MARK "cert-manager.io/certificate-name"

void stw_content_done(struct stw_content *c)
{
    for (unsigned i = 0; i < STW_SLOTS; i++)
        stw_wipe_free(c->slot[i]);
    *c = (struct stw_content){0};
}

void stw_content_set(struct stw_content *c, enum stw_slot slot, char *value)
{
    stw_wipe_free(c->slot[slot]);
    c->slot[slot] = value;
}

void stw_content_move(struct stw_content *c, enum stw_slot from, enum stw_slot to)
{
    stw_content_set(c, to, stw_take(c->slot[from]));
}

static int slot_of(struct stw_json key)
{
    for (int i = 0; i < STW_SLOTS; i++)
        if (stw_json_is(key, stw_slot_names[i]))
            return i;
    return -1;
}

int stw_content_read(const char *json, size_t len, struct stw_content *ret, struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    struct stw_json key, value;
    if (stw_json_scan(&doc, json, len, err) < 0)
        return stw_error_wrap(err, "the Secret as answered by the API server");
    struct stw_content c = {.exists = true};
    struct stw_json root = stw_json_root(&doc), meta = stw_json_get(root, "metadata");
    if (stw_json_strcpy(stw_json_get(meta, "resourceVersion"), c.rv, sizeof(c.rv)) < 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "the Secret as answered by the API server has no resourceVersion");
    c.foreign = stw_json_there(stw_json_get(stw_json_get(meta, "annotations"), CERT_MANAGER_MARK));
    stw_json_foreach (stw_json_get(root, "data"), key, value) {
        int slot = slot_of(key);
        if (slot >= 0)
            stw_content_set(&c, (enum stw_slot)slot,
                            stw_base64_json_take(value, STW_SECRET_MAX_BYTES));
    }
    *ret = c;
    return 0;
}

static void add_raw(struct stw_buf *out, struct stw_json v)
{
    size_t len = 0;
    const char *raw = stw_json_raw(v, &len);
    if (raw)
        stw_buf_add(out, raw, len);
}

static void copy_member(struct stw_buf *out, bool *first, struct stw_json key,
                        struct stw_json value)
{
    if (!*first)
        stw_buf_addc(out, ',');
    *first = false;
    add_raw(out, key);
    stw_buf_addc(out, ':');
    add_raw(out, value);
}

/* kubernetes.io/tls requires tls.crt and tls.key to exist; they may be empty. */
static bool is_required_slot(unsigned slot)
{
    return slot == STW_SLOT_TLS_CRT || slot == STW_SLOT_TLS_KEY;
}

static void add_slots(const struct stw_content *c, bool *first, struct stw_buf *out)
{
    for (unsigned i = 0; i < STW_SLOTS; i++) {
        if (!c->slot[i] && !is_required_slot(i))
            continue;
        stw_buf_adds(out, *first ? "\"" : ",\"");
        *first = false;
        stw_buf_adds(out, stw_slot_names[i]);
        stw_buf_adds(out, "\":\"");
        if (c->slot[i])
            stw_base64_encode(c->slot[i], strlen(c->slot[i]), out);
        stw_buf_addc(out, '"');
    }
}

static void add_data(const struct stw_content *c, struct stw_json data, struct stw_buf *out)
{
    struct stw_json key, value;
    bool first = true;
    stw_buf_addc(out, '{');
    stw_json_foreach (data, key, value)
        if (slot_of(key) < 0)
            copy_member(out, &first, key, value);
    add_slots(c, &first, out);
    stw_buf_addc(out, '}');
}

/* Leaves out managedFields, which would only be sent back and forth. */
static void add_metadata(struct stw_json meta, struct stw_buf *out)
{
    struct stw_json key, value;
    bool first = true;
    stw_buf_addc(out, '{');
    stw_json_foreach (meta, key, value)
        if (!stw_json_is(key, "managedFields"))
            copy_member(out, &first, key, value);
    stw_buf_addc(out, '}');
}

static int write_update(const struct stw_content *c, const struct stw_buf *was, struct stw_buf *out,
                        struct stw_error *err)
{
    struct stw_json_doc stw_autojson doc = {0};
    struct stw_json key, value;
    bool first = true;
    if (stw_json_scan(&doc, stw_buf_str(was), was->len, err) < 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    stw_buf_addc(out, '{');
    stw_json_foreach (root, key, value)
        if (!stw_json_is(key, "metadata") && !stw_json_is(key, "data"))
            copy_member(out, &first, key, value);
    stw_buf_adds(out, first ? "\"metadata\":" : ",\"metadata\":");
    add_metadata(stw_json_get(root, "metadata"), out);
    stw_buf_adds(out, ",\"data\":");
    add_data(c, stw_json_get(root, "data"), out);
    stw_buf_addc(out, '}');
    return 0;
}

static void write_create(const struct stw_operator *op, const struct stw_content *c, const char *ns,
                         const char *name, struct stw_buf *out)
{
    stw_buf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"type\":\"kubernetes.io/tls\","
                      "\"metadata\":{\"name\":");
    stw_buf_json_strz(out, name);
    stw_buf_adds(out, ",\"namespace\":");
    stw_buf_json_strz(out, ns);
    stw_operator_expand(op,
                        ",\"labels\":{\"app.kubernetes.io/name\":\"{operator}\","
                        "\"app.kubernetes.io/component\":\"webhook\","
                        "\"app.kubernetes.io/managed-by\":\"{operator}\"}},\"data\":",
                        out);
    add_data(c, STW_JSON_NONE, out);
    stw_buf_addc(out, '}');
}

int stw_content_write(const struct stw_operator *op, const struct stw_content *c, const char *ns,
                      const char *name, const struct stw_buf *was, struct stw_buf *out,
                      struct stw_error *err)
{
    if (was && write_update(c, was, out, err) < 0)
        return -1;
    if (!was)
        write_create(op, c, ns, name, out);
    if (out->failed)
        return stw_fail(err, STW_ERR_TOO_LARGE, "the Secret %s/%s would become too large", ns,
                        name);
    return 0;
}
