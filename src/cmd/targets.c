/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/targets.h"

#include "base/util.h"
#include "operator/main/names.h"

int stw_installed_targets(const struct stw_remote *r, const char *ns, struct dbu_target_file *ret,
                          struct stw_error *err)
{
    stw_autoanswer struct stw_answer map = {0};
    char key[STW_OWN_NAME_LEN], source[STW_OWN_NAME_LEN];
    stw_operator_text(r->op, STW_CONFIG_KEY, key);
    stw_operator_text(r->op, "configmap/" STW_CONFIG_MAP, source);
    if (stw_remote_get(r, &stw_res_configmap, ns, STW_CONFIG_MAP, &map, err) != 0)
        return -1;
    stw_autofree char *text = stw_json_strdup(stw_json_get(stw_json_get(map.root, "data"), key));
    return dbu_target_file_parse(source, text ? text : "", text ? strlen(text) : 0, ret, err);
}
