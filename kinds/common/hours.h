/* SPDX-License-Identifier: Apache-2.0
 *
 * The times at which restarts may be made: excluded dates, and windows of the week, read by the
 * clock of a time zone.  No I/O. */
#ifndef STW_KINDS_COMMON_HOURS_H
#define STW_KINDS_COMMON_HOURS_H

#include "base/json.h"
#include "schema/calendar.h"
#include "schema/field.h"
#include "schema/finding.h"

#define STW_EXCLUDE_DATES_MAX 366
#define STW_WINDOWS_MAX 14

/* Lists of a spec; absent: no limit. */
struct stw_hours {
    struct stw_json exclude_dates, windows;
};

/* Their elements in a table of fields. */
extern const struct stw_field stw_hours_date_item, stw_hours_window_item;

enum stw_hours_verdict { STW_HOURS_ALLOWED, STW_HOURS_EXCLUDED, STW_HOURS_OUTSIDE };

/* Whether a restart may be made at `at` (seconds since the epoch).  Both lists have been checked. */
enum stw_hours_verdict stw_hours_at(const struct stw_hours *hours, const struct stw_zone *zone,
                                    int64_t at);

/* True if no minute of the schedule is in a window. */
bool stw_hours_never(const struct stw_hours *hours, const struct stw_cron *cron);

/* Refuses windows without length; `path` is that of the list.  True if all windows are valid. */
bool stw_check_windows(const char *path, struct stw_json windows, struct stw_findings *f);

#endif
