/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of controllers: one row for each kind. */
#include "controller/controllers.h"

#include "controller/app.h"
#include "controller/databaseuser.h"
#include "controller/eru.h"
#include "controller/etcdbackup.h"
#include "controller/etcdcluster.h"
#include "controller/etcdrestore.h"
#include "controller/myweb.h"

const struct stw_controller *const stw_controllers[] = {
    &stw_controller_databaseuser, &stw_controller_myweb,
    &stw_controller_app,          &stw_controller_eru,
    &stw_controller_etcdcluster,  &stw_controller_etcdbackup,
    &stw_controller_etcdrestore,  NULL,
};
