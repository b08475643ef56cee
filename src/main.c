/* SPDX-License-Identifier: Apache-2.0
 *
 * The steward program. */
#include "cmd/steward.h"

int main(int argc, char **argv)
{
    return stw_steward_main(argc, argv);
}
