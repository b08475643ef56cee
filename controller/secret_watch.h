/* SPDX-License-Identifier: Apache-2.0
 *
 * The watches of Secrets and of all ConfigMaps that the kinds share.  The caches have the version of
 * each object and no value: a reconciler reads an object when it needs it.  A change wakes the
 * objects whose index has the object under "secret" or "configmap". */
#ifndef STW_CONTROLLER_SECRET_WATCH_H
#define STW_CONTROLLER_SECRET_WATCH_H

#include "controller/controller.h"

/* Also for admission (struct stw_lookup). */
extern const struct stw_watch stw_watch_secrets;
/* All ConfigMaps, not only the operator's. */
extern const struct stw_watch stw_watch_configmap_versions;

#endif
