/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: its names and its kinds.  The commands (run, validate, print, ...) come with them. */
#include <steward/operator.h>

extern const struct stw_kind stw_kind_externalthing;
extern const struct stw_controller stw_controller_externalthing;

static const struct stw_kind *const kinds[] = {&stw_kind_externalthing, NULL};
static const struct stw_controller *const controllers[] = {&stw_controller_externalthing, NULL};

static const struct stw_operator externalthing = {
    .name = "externalthing",
    .domain = "externalthing.example.org",
    .metric_prefix = "externalthing",
    .version = "0.1.0",
    .about = "externalthing keeps records of an external service.\n",
    .kinds = kinds,
    .controllers = controllers,
};

int main(int argc, char **argv)
{
    return stw_operator_main(&externalthing, argc, argv);
}
