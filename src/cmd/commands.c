/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stddef.h>

const char stw_about[] =
    "steward defaults and validates custom resources in an admission webhook, and reconciles\n"
    "what was admitted.\n";

const struct stw_command *const stw_commands[] = {
    &stw_command_run,
    &stw_command_webhook,
    &stw_command_validate,
    &stw_command_doctor,
    &stw_command_audit,
    &stw_command_uninstall,
    &stw_command_snapshot,
    &stw_command_print,
    &stw_command_completion,
    &stw_command_version,
    NULL,
};

const struct stw_flag *stw_command_flags(const struct stw_command *c)
{
    return c->make_flags ? c->make_flags() : c->flags;
}
