/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch of Secrets that the kinds share.  The cache has the version of each Secret and no value:
 * a reconciler reads a Secret when it needs it.  A change wakes the objects whose index has the
 * Secret under "secret". */
#ifndef STW_CONTROLLER_SECRET_WATCH_H
#define STW_CONTROLLER_SECRET_WATCH_H

#include "controller/controller.h"

extern const struct stw_watch stw_watch_secrets;

#endif
