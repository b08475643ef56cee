/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: its names and its kinds.  The commands (run, validate, print, ...) come with them. */
#include <steward/operator.h>

extern const struct stw_kind stw_kind_cronjob;
extern const struct stw_controller stw_controller_cronjob;

static const struct stw_kind *const kinds[] = {&stw_kind_cronjob, NULL};
static const struct stw_controller *const controllers[] = {&stw_controller_cronjob, NULL};

static const struct stw_operator cronjob_lite = {
    .name = "cronjob-lite",
    .domain = "cronjob-lite.example.org",
    .metric_prefix = "cronjob_lite",
    .version = "0.1.0",
    .about = "cronjob-lite creates Jobs on a schedule.\n",
    .kinds = kinds,
    .controllers = controllers,
};

int main(int argc, char **argv)
{
    return stw_operator_main(&cronjob_lite, argc, argv);
}
