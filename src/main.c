/* SPDX-License-Identifier: Apache-2.0
 *
 * The steward program. */
#include "operator/main.h"
#include "cmd/steward.h"

int main(int argc, char **argv)
{
    return stw_operator_main(&stw_steward, argc, argv);
}
