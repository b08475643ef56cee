/* SPDX-License-Identifier: Apache-2.0
 *
 * Unit tests of an operator without a cluster: link with libsteward-test. */
#ifndef STEWARD_TEST_H
#define STEWARD_TEST_H

#include "testing/server.h"
#include "testing/test.h"

#endif
