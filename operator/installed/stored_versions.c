/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/stored_versions.h"

#include "base/util.h"

void stw_stored_read(struct stw_json crd, struct stw_stored *ret)
{
    struct stw_json key, one;
    size_t len = 0;
    *ret = (struct stw_stored){0};
    stw_json_foreach (stw_json_path(crd, "spec.versions"), key, one)
        if (stw_json_bool(stw_json_get(one, "storage"), false))
            stw_json_cut(stw_json_get(one, "name"), ret->now, sizeof(ret->now));
    stw_json_foreach (stw_json_path(crd, "status.storedVersions"), key, one) {
        char name[64];
        stw_json_cut(one, name, sizeof(name));
        if (!*ret->now || stw_streq(name, ret->now) || len + strlen(name) + 3 > sizeof(ret->old))
            continue;
        stw_format(ret->old + len, sizeof(ret->old) - len, "%s%s", len ? ", " : "", name);
        len = strlen(ret->old);
    }
}
