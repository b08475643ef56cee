/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/notify.h"

#include "base/util.h"

#include <errno.h>
#include <sys/inotify.h>

/* Writes in place are reported when the file is closed. */
#define EVENTS                                                                                     \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |       \
     IN_MOVE_SELF | IN_ATTRIB)

/* Adding the same folder again changes nothing; adding a folder that replaced it moves the
 * watch. */
int stw_notify_folder(struct stw_notify *n, const char *path, struct stw_error *err)
{
    if (n->fd < 0)
        n->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (n->fd < 0 || inotify_add_watch(n->fd, path, EVENTS) < 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot watch %s: %s", path, strerrordesc_np(errno));
    return 0;
}

void stw_notify_drain(struct stw_notify *n)
{
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    while (n->fd >= 0 && read(n->fd, events, sizeof(events)) > 0)
        ;
}

void stw_notify_done(struct stw_notify *n)
{
    if (n->fd >= 0)
        (void)close(n->fd);
    n->fd = -1;
}
