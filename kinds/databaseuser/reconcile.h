/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller of DatabaseUsers: each has an account on the server that the label `target` names,
 * with the password from a Secret and exactly the requested privileges.  The account is dropped
 * when the object is deleted. */
#ifndef STW_KINDS_DATABASEUSER_RECONCILE_H
#define STW_KINDS_DATABASEUSER_RECONCILE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_databaseuser;

#endif
