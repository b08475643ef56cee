/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/steward.h"

#include "cmd/build.h"
#include "kinds/kinds.h"

static const struct stw_command *const commands[] = {&stw_command_snapshot, &stw_command_new, NULL};

const struct stw_operator stw_steward = {
    .name = "steward",
    .domain = "steward.dev",
    .metric_prefix = "steward",
    .version = STW_VERSION,
    .about =
        "steward defaults and validates custom resources in an admission webhook, and reconciles\n"
        "what was admitted.\n",
    .kinds = stw_kinds,
    .controllers = stw_controllers,
    .commands = commands,
    .extension = &stw_steward_extension,
};
