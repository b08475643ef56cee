/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/steward.h"

#include "kinds/kinds.h"
#include "operator/main.h"

int stw_steward_main(int argc, char **argv)
{
    static const struct stw_command *const commands[] = {&stw_command_snapshot, &stw_command_new,
                                                         NULL};
    struct stw_operator op = stw_operator_steward;
    op.commands = commands;
    op.extension = &stw_steward_extension;
    return stw_operator_main(&op, argc, argv);
}
