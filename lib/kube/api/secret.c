/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/secret.h"

int stw_secret_get(struct stw_client *c, const char *ns, const char *name, struct stw_secret *ret,
                   struct stw_error *err)
{
    *ret = (struct stw_secret){.text = {.max = STW_SECRET_DATA_MAX, .secret = true}};
    if (stw_kube_get(c, &stw_res_secret, ns, name, &ret->text, err) != 0)
        return -1;
    return stw_json_scan(&ret->doc, stw_buf_str(&ret->text), ret->text.len, err);
}

void stw_secret_done(struct stw_secret *s)
{
    stw_json_done(&s->doc);
    stw_buf_done(&s->text);
}

char *stw_secret_value(const struct stw_secret *s, const char *key)
{
    stw_autobuf struct stw_buf value = {.max = STW_SECRET_DATA_MAX, .secret = true};
    struct stw_json entry = stw_secret_entry(stw_json_root(&s->doc), key);
    return stw_base64_json(entry, &value) == 0 ? stw_buf_take(&value) : NULL;
}

bool stw_secret_has_nul(const struct stw_secret *s, const char *key)
{
    stw_autobuf struct stw_buf value = {.max = STW_SECRET_DATA_MAX, .secret = true};
    struct stw_json entry = stw_secret_entry(stw_json_root(&s->doc), key);
    return stw_base64_json(entry, &value) == 0 && value.len > 0 &&
           memchr(value.data, '\0', value.len) != NULL;
}
