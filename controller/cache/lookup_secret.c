/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about a value in a Secret, for admission.  The caches hold no Secrets, so the Secret is
 * read from the API server, and wiped once the facts are extracted. */
#include "base/util.h"
#include "controller/lookup_lists.h"
#include "controller/manager/manager_priv.h"
#include "kube/secret.h"

/* The webhook's caller waits 3 s for the whole review. */
#define TIMEOUT_MS 1500

static int request_secret(struct stw_client *client, const char *ns, const char *name,
                          struct stw_buf *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_resource_path(&stw_res_secret, ns, name, NULL, &path);
    struct stw_request request = {.method = "GET",
                                  .path = stw_buf_str(&path),
                                  .timeout_ms = TIMEOUT_MS,
                                  .no_retry = true,
                                  .secret = true};
    return stw_client_do(client, &request, ret, err);
}

static bool is_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return true;
}

void stw_secret_describe(struct stw_json secret, const char *key, struct stw_secret_facts *ret)
{
    stw_autobuf struct stw_buf value = {.max = STW_SECRET_DATA_MAX, .secret = true};
    struct stw_json encoded = stw_secret_entry(secret, key);
    *ret = (struct stw_secret_facts){.secret_there = true};
    if (!stw_json_there(encoded))
        return;
    ret->key_there = true;
    if (stw_base64_json(encoded, &value) != 0)
        return;
    size_t bare = stw_bare_len(stw_buf_str(&value), value.len);
    ret->len = (uint32_t)value.len;
    ret->bare_len = (uint32_t)bare;
    ret->ends_in_newline = bare < value.len;
    ret->is_text = is_text(stw_buf_str(&value), bare);
}

int stw_secret_look(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_secret_facts *ret)
{
    stw_autosecret struct stw_secret s = {.text = {.max = STW_SECRET_DATA_MAX, .secret = true}};
    struct stw_error err = {0};
    if (request_secret(client, ns, name, &s.text, &err) != 0) {
        *ret = (struct stw_secret_facts){0};
        return err.code == STW_ERR_NOT_FOUND ? 0 : -1;
    }
    if (stw_json_scan(&s.doc, stw_buf_str(&s.text), s.text.len, &err) != 0)
        return -1;
    stw_secret_describe(stw_json_root(&s.doc), key, ret);
    return 0;
}

int stw_manager_secret(void *ctx, const char *ns, const char *name, const char *key,
                       struct stw_secret_facts *ret)
{
    const struct stw_manager *m = ctx;
    return stw_secret_look(m->config.client, ns, name, key, ret);
}
