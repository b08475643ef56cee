/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes what the replicas reported as tables of text. */
#include "operator/top/top.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "base/util.h"
#include "base/visible.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#define CELL_MAX 400
#define COLUMNS_MAX 10
#define GAP 2

/* --- text */

/* Columns of a character: two for those of East Asia and pictures, one for all others. */
static unsigned count_columns(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } wide[] = {{0x1100, 0x115F}, {0x2E80, 0xD7A3}, {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
                {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F000, 0x3FFFD}};
    for (size_t i = 0; i < STW_COUNT(wide) && code >= wide[i].first; i++)
        if (code <= wide[i].last)
            return 2;
    return 1;
}

size_t stw_top_cut(const char *text, size_t len, size_t columns, size_t *ret_columns)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + len;
    size_t used = 0;
    while (at < end) {
        size_t n = STW_MAX(stw_utf8_len(at, end), 1U);
        unsigned more = count_columns(stw_utf8_code(at, n));
        if (used + more > columns)
            break;
        used += more;
        at += n;
    }
    if (ret_columns)
        *ret_columns = used;
    return (size_t)((const char *)at - text);
}

void stw_top_duration(double seconds, char out[16])
{
    static const struct {
        double seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};
    seconds = seconds > 0 && seconds < 1e10 ? seconds : 0;
    if (seconds < 9.95) {
        stw_format(out, 16, "%.1fs", seconds);
        return;
    }
    for (size_t i = 0; i < STW_COUNT(units); i++)
        if (seconds >= 2 * units[i].seconds) {
            stw_format(out, 16, "%.0f%c", floor(seconds / units[i].seconds), units[i].unit);
            return;
        }
    stw_format(out, 16, "%.0fs", floor(seconds));
}

static void format_bytes(double bytes, char out[16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < STW_COUNT(units); i++)
        bytes /= 1024;
    stw_format(out, 16, i ? "%.1f %s" : "%.0f %s", STW_MIN(bytes, 1e6), units[i]);
}

/* --- tables: rows are added first, because their widths decide about the columns */

struct top_table {
    const char *const *titles; /* ended by NULL; '<' before it: aligned left */
    struct stw_buf cells;      /* each with a NUL */
    size_t width[COLUMNS_MAX];
    unsigned columns, filled;
};

static void add_cell(struct top_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void add_cell(struct top_table *t, const char *fmt, ...)
{
    char text[CELL_MAX];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t at = t->cells.len, width;
    stw_visible_add_line(&t->cells, text, strlen(text));
    (void)stw_top_cut(stw_buf_str(&t->cells) + at, t->cells.len - at, SIZE_MAX, &width);
    stw_buf_addc(&t->cells, '\0');
    unsigned column = t->filled++ % t->columns;
    t->width[column] = STW_MAX(t->width[column], width);
}

static void begin_table(struct top_table *t, const char *const *titles)
{
    *t = (struct top_table){.titles = titles, .cells = STW_BUF_INIT(1u << 20)};
    for (; titles[t->columns]; t->columns++)
        t->width[t->columns] = strlen(titles[t->columns] + (titles[t->columns][0] == '<'));
}

static void add_column(const struct top_table *t, unsigned column, const char *text,
                       struct stw_buf *out)
{
    bool left = t->titles[column][0] == '<', last = column + 1 == t->columns;
    size_t len = strlen(text), width;
    (void)stw_top_cut(text, len, SIZE_MAX, &width);
    size_t pad = t->width[column] - STW_MIN(width, t->width[column]);
    for (size_t i = 0; !left && i < pad; i++)
        stw_buf_addc(out, ' ');
    stw_buf_add(out, text, len);
    for (size_t i = 0; !last && i < GAP + (left ? pad : 0); i++)
        stw_buf_addc(out, ' ');
    if (last)
        stw_buf_addc(out, '\n');
}

/* Writes the table with a line before it, unless it is empty. */
static void end_table(struct top_table *t, struct stw_buf *out)
{
    const char *cell = stw_buf_str(&t->cells);
    assert(t->columns > 0);
    if (t->filled && !t->cells.failed) {
        stw_buf_addc(out, '\n');
        for (unsigned c = 0; c < t->columns; c++)
            add_column(t, c, t->titles[c] + (t->titles[c][0] == '<'), out);
        for (unsigned i = 0; i < t->filled; i++, cell += strlen(cell) + 1)
            add_column(t, i % t->columns, cell, out);
    }
    stw_buf_done(&t->cells);
}

/* --- values of a report.  It is the text of another program: anything may be missing */

struct text {
    char s[CELL_MAX];
};

static struct text text_at(struct stw_json object, const char *member)
{
    struct text t;
    stw_json_cut(stw_json_get(object, member), t.s, sizeof(t.s));
    if (!t.s[0])
        stw_format(t.s, sizeof(t.s), "-");
    return t;
}

/* -1: not there. */
static double number_at(struct stw_json object, const char *member)
{
    size_t len = 0;
    char copy[40];
    struct stw_json v = stw_json_get(object, member);
    enum stw_json_type type = stw_json_type(v);
    if (type != STW_JSON_INT && type != STW_JSON_REAL)
        return -1;
    const char *raw = stw_json_raw(v, &len);
    stw_format(copy, sizeof(copy), "%.*s", (int)STW_MIN(len, sizeof(copy) - 1), raw);
    double value = strtod(copy, NULL);
    return value >= 0 && value < 1e18 ? value : -1;
}

static void add_count(struct top_table *t, double value)
{
    if (value < 0)
        add_cell(t, "-");
    else
        add_cell(t, "%.0f", value);
}

static void add_duration(struct top_table *t, double seconds)
{
    char text[16] = "-";
    if (seconds >= 0)
        stw_top_duration(seconds, text);
    add_cell(t, "%s", text);
}

static bool flag_at(struct stw_json object, const char *member)
{
    return stw_json_bool(stw_json_get(object, member), false);
}

/* Seconds from a time in the report to the time of the report: the clock is the replica's.  -1:
 * unknown. */
static double age_at(struct stw_json root, struct stw_json object, const char *member)
{
    int64_t now = 0, then = 0;
    struct text at = text_at(object, member), time = text_at(root, "time");
    if (stw_time_parse(at.s, &then) != 0 || stw_time_parse(time.s, &now) != 0)
        return -1;
    return (double)STW_MAX(now - then, 0) / 1e6;
}

/* --- rates */

/* The earlier look at a replica, if it is still the same process; or NULL. */
static const struct stw_top_replica *find_before(const struct stw_top_look *before,
                                                 const struct stw_top_replica *now)
{
    for (uint32_t i = 0; before && i < before->count; i++) {
        const struct stw_top_replica *r = &before->replicas[i];
        struct text was = text_at(r->state.root, "started"),
                    is = text_at(now->state.root, "started");
        if (stw_streq(r->name, now->name) && stw_json_there(r->state.root) &&
            stw_streq(was.s, is.s) && r->at_ms < now->at_ms)
            return r;
    }
    return NULL;
}

/* Per second; -1: unknown.  A negative `was`: not counted before. */
static double rate_of(const struct stw_top_replica *before, const struct stw_top_replica *now,
                      double was, double is)
{
    double seconds = before && was >= 0 ? (double)(now->at_ms - before->at_ms) / 1000
                                        : number_at(now->state.root, "uptimeSeconds");
    double base = before && was >= 0 ? was : 0;
    return is < base || seconds <= 0 ? -1 : (is - base) / seconds;
}

static void add_rate(struct top_table *t, double rate)
{
    if (rate < 0)
        add_cell(t, "-");
    else
        add_cell(t, rate < 99.95 ? "%.1f" : "%.0f", rate);
}

static struct stw_json find_queue(const struct stw_top_replica *r, const char *kind)
{
    struct stw_json key, queue;
    if (r)
        stw_json_foreach (stw_json_get(r->state.root, "queues"), key, queue)
            if (stw_json_is(stw_json_get(queue, "kind"), kind))
                return queue;
    return STW_JSON_NONE;
}

/* The sum of a member over a list of the report; -1: no list. */
static double sum_of(const struct stw_top_replica *r, const char *list, const char *member)
{
    struct stw_json key, one, all = r ? stw_json_get(r->state.root, list) : STW_JSON_NONE;
    double sum = stw_json_type(all) == STW_JSON_ARRAY ? 0 : -1;
    stw_json_foreach (all, key, one)
        sum += STW_MAX(number_at(one, member), 0.0);
    return sum;
}

static double rate_of_list(const struct stw_top_replica *before, const struct stw_top_replica *now,
                           const char *member)
{
    return rate_of(before, now, sum_of(before, "queues", member), sum_of(now, "queues", member));
}

/* --- replicas */

static const char *const replica_titles[] = {
    "#",        "<REPLICA", "<VERSION", "UP",     "<ROLE", "RECONCILES/s",
    "ERRORS/s", "WRITES/s", "CACHED",   "<STATE", NULL,
};

/* The first problem of its checks, or "ok". */
static struct text problem_of(struct stw_json root)
{
    struct stw_json key, check;
    stw_json_foreach (stw_json_get(root, "checks"), key, check)
        if (!flag_at(check, "ok"))
            return text_at(check, "problem");
    return (struct text){"ok"};
}

static const char *role_of(struct stw_json root)
{
    struct stw_json leases = stw_json_get(root, "leases");
    if (flag_at(stw_json_at(leases, 0), "held"))
        return "leader";
    if (flag_at(root, "reconciles"))
        return "reconciles";
    return stw_json_size(leases) ? "stands by" : "admission";
}

static void add_replica(struct top_table *t, unsigned number, const struct stw_top_replica *before,
                        const struct stw_top_replica *r)
{
    struct stw_json root = r->state.root;
    char bytes[16] = "-";
    double cached = sum_of(r, "caches", "bytes");
    struct text version = text_at(stw_json_get(root, "build"), "version"),
                problem = problem_of(root);
    if (cached >= 0)
        format_bytes(cached, bytes);
    add_cell(t, "%u", number);
    add_cell(t, "%s", r->name);
    add_cell(t, "%.40s", version.s);
    add_duration(t, number_at(root, "uptimeSeconds"));
    add_cell(t, "%s", role_of(root));
    add_rate(t, rate_of_list(before, r, "runs"));
    add_rate(t, rate_of_list(before, r, "failedRuns"));
    add_rate(t, r->counts_writes
                    ? rate_of(before, r, before && before->counts_writes ? before->writes : -1,
                              r->writes)
                    : -1);
    add_cell(t, "%s", bytes);
    add_cell(t, "%s", problem.s);
}

static void add_unread(struct top_table *t, unsigned number, const struct stw_top_replica *r)
{
    add_cell(t, "%u", number);
    add_cell(t, "%s", r->name);
    for (unsigned i = 2; i + 1 < t->columns; i++)
        add_cell(t, "-");
    add_cell(t, "cannot be read: %s", r->err.text);
}

static void add_replicas(const struct stw_top_look *before, const struct stw_top_look *now,
                         struct stw_buf *out)
{
    struct top_table t;
    begin_table(&t, replica_titles);
    for (uint32_t i = 0; i < now->count; i++) {
        const struct stw_top_replica *r = &now->replicas[i];
        if (stw_json_there(r->state.root))
            add_replica(&t, i + 1, find_before(before, r), r);
        else
            add_unread(&t, i + 1, r);
    }
    end_table(&t, out);
    if (now->more)
        stw_buf_addf(out, "%u more replicas are not shown\n", now->more);
}

/* --- objects that are not ready */

static const char *const object_titles[] = {
    "#", "<KIND", "<OBJECT", "<STATE", "<REASON", "SINCE", "NEXT RUN", "<MESSAGE", NULL,
};

static void add_name(struct top_table *t, struct stw_json object)
{
    struct text ns = text_at(object, "namespace"), name = text_at(object, "name");
    bool clustered = stw_streq(ns.s, "-");
    add_cell(t, "%s%s%s", clustered ? "" : ns.s, clustered ? "" : "/", name.s);
}

static void add_object(struct top_table *t, unsigned number, struct stw_json root,
                       struct stw_json o)
{
    struct text kind = text_at(o, "kind"), state = text_at(o, "state"),
                reason = text_at(o, "reason"), message = text_at(o, "message");
    add_cell(t, "%u", number);
    add_cell(t, "%.63s", kind.s);
    add_name(t, o);
    add_cell(t, "%.20s", state.s);
    add_cell(t, "%.40s", reason.s);
    add_duration(t, age_at(root, o, "since"));
    add_duration(t, number_at(o, "nextRunInSeconds"));
    add_cell(t, "%s", message.s);
}

static bool is_same_object(struct stw_json a, struct stw_json b)
{
    static const char *const parts[] = {"kind", "namespace", "name"};
    for (size_t i = 0; i < STW_COUNT(parts); i++)
        if (stw_json_compare(stw_json_get(a, parts[i]), stw_json_get(b, parts[i])) != 0)
            return false;
    return true;
}

/* A run that failed and could not say so in the status of its object. */
static void add_failure(struct top_table *t, unsigned number, struct stw_json root,
                        struct stw_json e)
{
    struct stw_json key, one;
    struct text kind = text_at(e, "kind"), reason = text_at(e, "reason"),
                error = text_at(e, "error");
    stw_json_foreach (stw_json_get(root, "notReady"), key, one)
        if (is_same_object(one, e))
            return;
    add_cell(t, "%u", number);
    add_cell(t, "%.63s", kind.s);
    add_name(t, e);
    add_cell(t, flag_at(e, "stalled") ? "Stalled" : "Failing");
    add_cell(t, "%.40s", reason.s);
    add_duration(t, age_at(root, e, stw_json_there(stw_json_get(e, "since")) ? "since" : "time"));
    add_duration(t, number_at(e, "nextRunInSeconds"));
    add_cell(t, "%s", error.s);
}

/* --- queues */

static const char *const queue_titles[] = {
    "#",       "<QUEUE",  "DEPTH",  "OLDEST",   "RUNNING", "LONGEST",
    "RETRIES", "DELAYED", "RUNS/s", "ERRORS/s", NULL,
};

static double longest_work(struct stw_json queue)
{
    struct stw_json key, work;
    double longest = -1;
    stw_json_foreach (stw_json_get(queue, "inWork"), key, work)
        longest = STW_MAX(longest, number_at(work, "seconds"));
    return longest;
}

static void add_queue(struct top_table *t, unsigned number, const struct stw_top_replica *before,
                      const struct stw_top_replica *now, struct stw_json q)
{
    struct text kind = text_at(q, "kind");
    struct stw_json was = find_queue(before, kind.s);
    double depth = number_at(q, "depth"), max = number_at(q, "workersMax");
    add_cell(t, "%u", number);
    add_cell(t, "%.63s", kind.s);
    add_count(t, depth);
    add_duration(t, depth > 0 ? number_at(q, "oldestSeconds") : -1);
    add_cell(t, "%u of %.0f", stw_json_size(stw_json_get(q, "inWork")), STW_MAX(max, 0.0));
    add_duration(t, longest_work(q));
    add_count(t, number_at(q, "failing"));
    add_count(t, number_at(q, "delayed"));
    add_rate(t, rate_of(before, now, number_at(was, "runs"), number_at(q, "runs")));
    add_rate(t, rate_of(before, now, number_at(was, "failedRuns"), number_at(q, "failedRuns")));
}

/* --- caches */

static const char *const cache_titles[] = {
    "#", "<CACHE", "OBJECTS", "BYTES", "LAST EVENT", "LISTS", "FAILURES", "<STATE", NULL,
};

static bool is_watched_twice(struct stw_json root, struct stw_json cache)
{
    struct stw_json key, one;
    unsigned same = 0;
    stw_json_foreach (stw_json_get(root, "caches"), key, one)
        same +=
            stw_json_compare(stw_json_get(one, "resource"), stw_json_get(cache, "resource")) == 0 &&
            stw_json_compare(stw_json_get(one, "group"), stw_json_get(cache, "group")) == 0;
    return same > 1;
}

/* " (App, MyWeb)": the kinds that read it. */
static void list_readers(struct stw_json cache, char *out, size_t size)
{
    struct stw_json key, kind;
    size_t len = 0;
    stw_json_foreach (stw_json_get(cache, "kinds"), key, kind) {
        char name[64];
        stw_json_cut(kind, name, sizeof(name));
        stw_format(out + len, size - len, "%s%s", len ? ", " : " (", name);
        len = strlen(out);
    }
    if (len)
        stw_format(out + len, size - len, ")");
}

static void add_cache(struct top_table *t, unsigned number, struct stw_json root, struct stw_json c)
{
    char bytes[16], readers[160] = "";
    struct text resource = text_at(c, "resource"), group = text_at(c, "group"),
                problem = text_at(c, "problem");
    bool core = stw_streq(group.s, "-");
    if (is_watched_twice(root, c))
        list_readers(c, readers, sizeof(readers));
    format_bytes(STW_MAX(number_at(c, "bytes"), 0.0), bytes);
    add_cell(t, "%u", number);
    add_cell(t, "%.63s%s%.100s%s", resource.s, core ? "" : ".", core ? "" : group.s, readers);
    add_count(t, number_at(c, "objects"));
    add_cell(t, "%s", bytes);
    add_duration(t, age_at(root, c, "lastEvent"));
    add_count(t, number_at(c, "lists"));
    add_count(t, number_at(c, "failures"));
    add_cell(t, "%s",
             !stw_streq(problem.s, "-") ? problem.s
             : flag_at(c, "synced")     ? "synced"
                                        : "listing");
}

/* --- objects that cannot be read */

static const char *const unreadable_titles[] = {
    "#", "<UNREADABLE", "<OBJECT", "<REASON", NULL,
};

static void add_unreadable(struct top_table *t, unsigned number, struct stw_json u)
{
    struct text resource = text_at(u, "resource"), name = text_at(u, "name"),
                place = text_at(u, "place"), why = text_at(u, "reason");
    add_cell(t, "%u", number);
    add_cell(t, "%s", resource.s);
    if (!stw_streq(name.s, "-"))
        add_name(t, u);
    else
        add_cell(t, "%s", place.s);
    add_cell(t, "%s", why.s);
}

/* --- the page */

enum part { OBJECTS, FAILURES, UNREADABLE, QUEUES, CACHES, PARTS };

static const struct {
    const char *list, *left_out; /* members of a report */
    const char *const *titles;   /* NULL: rows of the table before it */
    bool of_work;                /* only of replicas that reconcile */
    unsigned rows;
} parts[] = {
    [OBJECTS] = {"notReady", "notReadyLeftOut", object_titles, true, STW_TOP_OBJECTS_MAX},
    [FAILURES] = {"errors", "errorsDropped", NULL, true, STW_TOP_ROWS_MAX},
    [UNREADABLE] = {"unreadable", "unreadableLeftOut", unreadable_titles, false, STW_TOP_ROWS_MAX},
    [QUEUES] = {"queues", NULL, queue_titles, true, STW_TOP_ROWS_MAX},
    [CACHES] = {"caches", NULL, cache_titles, false, STW_TOP_ROWS_MAX},
};
static_assert(STW_COUNT(parts) == PARTS, "one row for each part");

static void add_row(struct top_table *t, enum part part, unsigned number,
                    const struct stw_top_replica *before, const struct stw_top_replica *r,
                    struct stw_json row)
{
    if (part == OBJECTS)
        add_object(t, number, r->state.root, row);
    else if (part == FAILURES)
        add_failure(t, number, r->state.root, row);
    else if (part == UNREADABLE)
        add_unreadable(t, number, row);
    else if (part == QUEUES)
        add_queue(t, number, before, r, row);
    else
        add_cache(t, number, r->state.root, row);
}

/* Adds the rows of all replicas; returns how many were left out.  A former leader has the queues and
 * the failures of its time, which are over. */
static unsigned add_rows(struct top_table *t, enum part part, const struct stw_top_look *before,
                         const struct stw_top_look *now)
{
    unsigned left_out = 0;
    for (uint32_t i = 0; i < now->count; i++) {
        const struct stw_top_replica *r = &now->replicas[i];
        struct stw_json key, row;
        unsigned rows = 0;
        if (parts[part].of_work && !flag_at(r->state.root, "reconciles"))
            continue;
        stw_json_foreach (stw_json_get(r->state.root, parts[part].list), key, row)
            if (rows++ < parts[part].rows)
                add_row(t, part, i + 1, find_before(before, r), r, row);
            else
                left_out++;
        if (parts[part].left_out)
            left_out += (unsigned)STW_MIN(
                STW_MAX(number_at(r->state.root, parts[part].left_out), 0.0), 1e9);
    }
    return left_out;
}

void stw_top_page(const struct stw_top_look *before, const struct stw_top_look *now,
                  struct stw_buf *out)
{
    add_replicas(before, now, out);
    for (enum part part = OBJECTS; part < PARTS; part++) {
        struct top_table t;
        begin_table(&t, parts[part].titles);
        unsigned left_out = add_rows(&t, part, before, now), dropped = 0;
        if (part == OBJECTS)
            dropped = add_rows(&t, ++part, before, now);
        end_table(&t, out);
        if (left_out)
            stw_buf_addf(out, "%u more are not shown\n", left_out);
        if (dropped)
            stw_buf_addf(out, "%u more failures were not shown\n", dropped);
    }
}
