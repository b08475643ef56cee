/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps DatabaseUsers: an account each on the server that the label `target` names, with the
 * password of a Secret and exactly the rights asked for, dropped when the object goes. */
#ifndef STW_CONTROLLER_DATABASEUSER_H
#define STW_CONTROLLER_DATABASEUSER_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_databaseuser;

#endif
