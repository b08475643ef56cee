/* SPDX-License-Identifier: Apache-2.0
 *
 * spec.maintenance: its rules. */
#include "base/util.h"
#include "kinds/common/schedule.h"
#include "kinds/etcdcluster/spec/rules.h"
#include "schema/names.h"

#include <ctype.h>

/* "0%" to "100%". */
const char *ec_check_percent(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    bool fine = digits >= 1 && digits <= 3 && stw_streq(text + digits, "%") &&
                (text[0] != '0' || digits == 1) && strtol(text, NULL, 10) <= 100;
    return fine ? NULL : "must be a percentage from 0% to 100%, such as 20%";
}

void ec_check_maintenance(const struct ec_scene *s)
{
    const struct ec_spec *c = s->now;
    const char *schedule = c->maintenance.defragmentation.schedule;
    struct ec_path at = ec_path(s, "maintenance.defragmentation.schedule");
    struct ec_path zone = ec_path(s, "maintenance.defragmentation.timeZone");
    struct ec_path windows = ec_path(s, "maintenance.defragmentation.windows");
    const struct stw_hours *hours = &c->maintenance.defragmentation.hours;
    struct stw_json least = c->maintenance.defragmentation.min_reclaimable_bytes;
    stw_quantity bytes;
    struct stw_cron cron;
    if (stw_json_there(least) && stw_quantity_of(least, &bytes) == 0 && bytes < 0)
        ec_refuse_node(s, "maintenance.defragmentation.minReclaimableBytes", least,
                       "must not be negative");
    stw_check_schedule(at.text, schedule, "defragmentations", s->f);
    stw_check_time_zone(s->a, zone.text, c->maintenance.defragmentation.time_zone, s->f);
    if (stw_check_windows(windows.text, hours->windows, s->f) && schedule &&
        stw_cron_parse(schedule, &cron, NULL) == 0 && !stw_cron_never(&cron) &&
        stw_hours_never(hours, &cron))
        stw_findings_warn(s->f,
                          "%s: no instant of the schedule is in a window; nothing is defragmented",
                          windows.text);
}
