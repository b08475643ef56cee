/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/targets.h"

#include "base/util.h"
#include "operator/names.h"

int stw_installed_targets(const struct stw_remote *r, const char *ns, struct stw_target_file *ret,
                          struct stw_error *err)
{
    stw_autoanswer struct stw_answer map = {0};
    if (stw_remote_get(r, &stw_res_configmap, ns, STW_CONFIG_MAP, &map, err) != 0)
        return -1;
    stw_autofree char *text =
        stw_json_strdup(stw_json_get(stw_json_get(map.root, "data"), STW_CONFIG_KEY));
    return stw_target_file_parse("configmap/" STW_CONFIG_MAP, text ? text : "",
                                 text ? strlen(text) : 0, ret, err);
}
