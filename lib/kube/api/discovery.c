/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api/discovery.h"

#include "base/hex.h"
#include "base/json.h"
#include "base/util.h"

#include <stdlib.h>

int stw_discovery_minor(const struct stw_buf *answer)
{
    stw_autojson struct stw_json_doc doc = {0};
    char minor[16] = "", *end; /* "24", or "24+" of a provider's build */
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) != 0 ||
        !stw_json_is(stw_json_get(stw_json_root(&doc), "major"), "1") ||
        stw_json_strcpy(stw_json_get(stw_json_root(&doc), "minor"), minor, sizeof(minor)) != 0)
        return -1;
    long n = strtol(minor, &end, 10);
    return end == minor || n < 0 || n > 10000 ? -1 : (int)n;
}

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
