/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/schedule.h"

#include "base/tzfile.h"
#include "base/util.h"
#include "kinds/common/product.h"
#include "schema/cron.h"
#include "schema/zones.h"

#define AHEAD_S 3600
#define OFTEN_MINUTES 5 /* shorter intervals get a warning */

static void add_error(struct stw_findings *f, const char *path, const char *value,
                      const char *message)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(64 * 1024);
    stw_buf_json_strz(&json, value);
    stw_findings_add(f, path, STW_INVALID, stw_buf_str(&json), "%s", message);
}

static void advise_on_schedule(const char *path, const struct stw_cron *c, const char *what,
                               struct stw_findings *f)
{
    for (int i = 0; i < STW_CRON_FIELDS; i++)
        if (c->wide_steps >> i & 1)
            stw_findings_warn(f, "%s: field %d (%s): the step is larger than the range", path,
                              i + 1, stw_cron_field_name((enum stw_cron_field)i));
    if (stw_cron_oftener(c, OFTEN_MINUTES))
        stw_findings_warn(f, "%s: %s more often than every %d minutes", path, what, OFTEN_MINUTES);
    if (!c->any_day && !c->any_weekday)
        stw_findings_warn(
            f, "%s: both day fields are restricted; it matches when either day field matches",
            path);
}

void stw_check_schedule(const char *path, const char *schedule, const char *what,
                        struct stw_findings *f)
{
    struct stw_cron c;
    struct stw_error err = {0};
    if (!schedule || !*schedule || strlen(schedule) > STW_CRON_MAX)
        return;
    if (stw_cron_parse(schedule, &c, &err) != 0)
        add_error(f, path, schedule, err.text);
    else if (stw_cron_never(&c))
        add_error(f, path, schedule, "never matches any date");
    else
        advise_on_schedule(path, &c, what, f);
}

void stw_check_time_zone(const struct stw_admission *a, const char *path, const char *zone,
                         struct stw_findings *f)
{
    struct stw_zones *zones = stw_product_zones(a->env);
    if (!zone || !*zone || strlen(zone) > STW_TIME_ZONE_MAX)
        return;
    if (!stw_zone_name_ok(zone) || (zones && !stw_zones_get(zones, zone)))
        add_error(f, path, zone,
                  zones && !stw_zones_get(zones, "Etc/GMT")
                      ? "unknown time zone: this program has no time zones but UTC, as there are "
                        "none in " STW_TZ_DIR " (Debian's package tzdata)"
                      : "unknown time zone");
}

bool stw_schedule_is_ahead(const struct stw_cron *cron, const struct stw_zone *zone,
                           int64_t recorded, int64_t now)
{
    int64_t next;
    return recorded > now && recorded - now > AHEAD_S &&
           stw_calendar_next(cron, zone, now, &next) == 0 && next < recorded;
}
