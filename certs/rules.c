/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/certs.h"

/* RBAC cannot restrict a create to a name, as the name is not known at authorization. */
const struct stw_rule stw_certs_rules[] = {
    {.resource = &stw_res_secret, .verbs = "create", .own_namespace = true},
    {.resource = &stw_res_secret,
     .verbs = "get,list,watch,update",
     .name = STW_CERTS_SECRET,
     .own_namespace = true},
    {.resource = &stw_res_mutating, .verbs = "get,list,watch,patch", .name = STW_CERTS_MUTATING},
    {.resource = &stw_res_validating,
     .verbs = "get,list,watch,patch",
     .name = STW_CERTS_VALIDATING},
    {0},
};
