/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/discovery.h"

#include "base/json.h"

void stw_discovery_path(const struct stw_resource *r, struct stw_buf *out)
{
    stw_buf_adds(out, "/apis/");
    stw_url_escape(r->group, out);
}

static bool has_version(struct stw_json versions, const char *version)
{
    struct stw_json key, v;
    stw_json_foreach (versions, key, v)
        if (stw_json_is(stw_json_get(v, "version"), version))
            return true;
    return false;
}

const struct stw_resource *stw_discovery_pick(const struct stw_resource *const *alternatives,
                                              const struct stw_buf *answer)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) != 0)
        return NULL;
    struct stw_json versions = stw_json_get(stw_json_root(&doc), "versions");
    for (; *alternatives; alternatives++)
        if (has_version(versions, (*alternatives)->version))
            return *alternatives;
    return NULL;
}
