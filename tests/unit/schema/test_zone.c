/* SPDX-License-Identifier: Apache-2.0
 *
 * Zone files built byte by byte, valid and invalid; names; and the cache over a reader. */
#include "schema/zones.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct file {
    unsigned char bytes[512];
    size_t len;
};

static void put(struct file *f, const void *bytes, size_t len)
{
    assert_true(f->len + len <= sizeof(f->bytes));
    memcpy(f->bytes + f->len, bytes, len);
    f->len += len;
}

static void put_number(struct file *f, int64_t v, int size)
{
    for (int i = size - 1; i >= 0; i--) {
        unsigned char b = 0;
        if (i < 8)
            b = (unsigned char)((uint64_t)v >> (8 * i));
        put(f, &b, 1);
    }
}

static void put_header(struct file *f, char version, uint32_t leaps, uint32_t times, uint32_t types)
{
    put(f, "TZif", 4);
    put(f, &version, 1);
    put(f, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    put_number(f, 0, 4);
    put_number(f, 0, 4);
    put_number(f, leaps, 4);
    put_number(f, times, 4);
    put_number(f, types, 4);
    put_number(f, 4, 4);
}

struct shape {
    int64_t times[2];
    unsigned char indexes[2];
    int32_t offset;
    uint32_t leaps;
    const char *footer;
};

static struct file make(const struct shape *s)
{
    struct file f = {0};
    put_header(&f, '2', 0, 0, 1); /* the version 1 block may be almost empty */
    put(&f, "\0\0\0\0\0\0LMT", 10);
    put_header(&f, '2', s->leaps, 2, 2);
    put_number(&f, s->times[0], 8);
    put_number(&f, s->times[1], 8);
    put(&f, s->indexes, 2);
    put_number(&f, 0, 4);
    put(&f, "\0\0", 2);
    put_number(&f, s->offset, 4);
    put(&f, "\1\0", 2);
    put(&f, "LMT", 4);
    for (uint32_t i = 0; i < s->leaps; i++)
        put_number(&f, 0, 12);
    put(&f, s->footer, strlen(s->footer));
    return f;
}

static const struct shape good = {{1000, 2000}, {1, 0}, 3600, 0, "\nXXX-5\n"};

static void test_zone_file_periods_are_read(void **state)
{
    struct file f = make(&good);
    struct stw_zone *z = NULL;
    struct stw_error err = {0};
    static const struct {
        int64_t at;
        struct stw_zone_period want;
    } cases[] = {
        {0, {INT64_MIN, 1000, 0}},
        {999, {INT64_MIN, 1000, 0}},
        {1000, {1000, 2000, 3600}},
        {1999, {1000, 2000, 3600}},
        {2000, {2000, INT64_MAX, 5 * 3600}}, /* by the rule */
        {INT64_C(4000000000), {2000, INT64_MAX, 5 * 3600}},
    };
    (void)state;
    if (stw_zone_parse(f.bytes, f.len, &z, &err) != 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_zone_period p;
        stw_zone_period(z, cases[i].at, &p);
        assert_int_equal(p.start, cases[i].want.start);
        assert_int_equal(p.end, cases[i].want.end);
        assert_int_equal(p.offset, cases[i].want.offset);
    }
    stw_zone_destroy(z);
}

static void test_every_truncated_zone_file_is_refused(void **state)
{
    struct file f = make(&good);
    (void)state;
    for (size_t len = 0; len < f.len; len++) {
        stw_autofree unsigned char *exact = malloc(len + 1);
        struct stw_zone *z = NULL;
        struct stw_error err = {0};
        memcpy(exact, f.bytes, len);
        assert_int_equal(stw_zone_parse(exact, len, &z, &err), -1);
        assert_null(z);
        assert_int_equal(err.code, STW_ERR_INVALID);
    }
}

static void test_invalid_zone_files_are_refused(void **state)
{
    static const struct {
        struct shape shape;
        const char *want;
    } cases[] = {
        {{{2000, 1000}, {1, 0}, 3600, 0, "\n\n"}, "its times are not in order"},
        {{{1000, 1000}, {1, 0}, 3600, 0, "\n\n"}, "its times are not in order"},
        {{{1000, 2000}, {2, 0}, 3600, 0, "\n\n"}, "no such local time type"},
        {{{1000, 2000}, {1, 0}, 27 * 3600, 0, "\n\n"}, "an offset is out of range"},
        {{{1000, 2000}, {1, 0}, INT32_MIN, 0, "\n\n"}, "an offset is out of range"},
        {{{1000, 2000}, {1, 0}, 3600, 1, "\n\n"}, "it counts leap seconds"},
        {{{1000, 2000}, {1, 0}, 3600, 0, ""}, "no footer"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\n"}, "no footer"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "xx\n"}, "no footer"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nX\n"}, "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX\n"}, "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX5YYY\n"}, "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX5YYY,M13.1.0,M1.1.0\n"},
         "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX5YYY,M3.6.0,M1.1.0\n"},
         "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX5YYY,M3.1.0/168,M1.1.0\n"},
         "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX5YYY,J0,J366\n"},
         "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\nXXX25\n"}, "the rule in its footer is not valid"},
        {{{1000, 2000}, {1, 0}, 3600, 0, "\n<+03>-3x\n"}, "the rule in its footer is not valid"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct file f = make(&cases[i].shape);
        struct stw_zone *z = NULL;
        struct stw_error err = {0};
        if (stw_zone_parse(f.bytes, f.len, &z, &err) == 0 || !strstr(err.text, cases[i].want))
            fail_msg("case %zu: %s", i, err.text);
    }
}

/* The offset at an instant, from a rule alone. */
static void test_zone_footer_rules_are_applied(void **state)
{
    static const struct {
        const char *footer;
        int64_t at;
        int32_t want;
    } cases[] = {
        {"\n<-03>3\n", INT64_C(1767225600), -3 * 3600},
        {"\n<+0545>-5:45\n", INT64_C(1767225600), 5 * 3600 + 45 * 60},
        {"\nAAA-1:02:03\n", INT64_C(1767225600), 3600 + 123},
        /* 29 March 2026, 1:00 UTC */
        {"\nCET-1CEST,M3.5.0,M10.5.0/3\n", INT64_C(1774745999), 3600},
        {"\nCET-1CEST,M3.5.0,M10.5.0/3\n", INT64_C(1774746000), 7200},
        /* southern hemisphere: DST over the new year */
        {"\nAEST-10AEDT,M10.1.0,M4.1.0/3\n", INT64_C(1767225600), 11 * 3600},
        {"\nAEST-10AEDT,M10.1.0,M4.1.0/3\n", INT64_C(1782864000), 10 * 3600},
        /* its winter time is the daylight-saving one, at -1 h */
        {"\nIST-1GMT0,M10.5.0,M3.5.0/1\n", INT64_C(1767225600), 0},
        {"\nIST-1GMT0,M10.5.0,M3.5.0/1\n", INT64_C(1782864000), 3600},
        /* hours beyond the day and before it */
        {"\n<-02>2<-01>,M3.5.0/-1,M10.5.0/0\n", INT64_C(1774745999), -2 * 3600},
        {"\n<-02>2<-01>,M3.5.0/-1,M10.5.0/0\n", INT64_C(1774746000), -3600},
        /* Julian days: J60 is 1 March in every year, 59 is 29 February in a leap year */
        {"\nAAA0BBB,J60/0,J300/0\n", INT64_C(1835481599), 0},    /* 2028-02-29T23:59:59Z */
        {"\nAAA0BBB,J60/0,J300/0\n", INT64_C(1835481600), 3600}, /* 2028-03-01 */
        {"\nAAA0BBB,59/0,300/0\n", INT64_C(1835395200), 3600},   /* 2028-02-29 */
        {"\nAAA0BBB,59/0,300/0\n", INT64_C(1835395199), 0},
        /* daylight-saving time all the year (RFC 8536, 3.3.1) */
        {"\nXXX3EDT4,0/0,J365/23\n", INT64_C(1767225600), -4 * 3600},
        {"\nXXX3EDT4,0/0,J365/23\n", INT64_C(1767236400), -4 * 3600},
        {"\nXXX3EDT4,0/0,J365/23\n", INT64_C(1782864000), -4 * 3600},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct shape s = good;
        struct stw_zone *z = NULL;
        struct stw_error err = {0};
        struct stw_zone_period p;
        s.footer = cases[i].footer;
        struct file f = make(&s);
        if (stw_zone_parse(f.bytes, f.len, &z, &err) != 0)
            fail_msg("%s: %s", cases[i].footer, err.text);
        stw_zone_period(z, cases[i].at, &p);
        if (p.offset != cases[i].want || p.start > cases[i].at || p.end <= cases[i].at)
            fail_msg("case %zu: %d", i, p.offset);
        stw_zone_destroy(z);
    }
}

static void test_zone_names_are_validated(void **state)
{
    static const struct {
        const char *name;
        bool ok;
    } cases[] = {
        {"Etc/UTC", true},
        {"America/Argentina/Ushuaia", true},
        {"Etc/GMT+5", true},
        {"America/Port-au-Prince", true},
        {"", false},
        {"/etc/passwd", false},
        {"../passwd", false},
        {"Europe/../../etc", false},
        {"Europe/", false},
        {"Europe//Berlin", false},
        {"Local", false},
        {"localtime", false},
        {"posixrules", false},
        {"right/Europe/Berlin", false},
        {"posix/Europe/Berlin", false},
        {"zone.tab", false},
        {"Europe/Ber lin", false},
        {"Europe/B\xc3\xa9rlin", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        if (stw_zone_name_ok(cases[i].name) != cases[i].ok)
            fail_msg("%s", cases[i].name);
}

static unsigned reads;

static int read_fake(const char *name, size_t max, char **ret, size_t *ret_len,
                     struct stw_error *err)
{
    struct file f = make(&good);
    reads++;
    if (!stw_streq(name, "Test/Zone"))
        return stw_fail(err, STW_ERR_NOT_FOUND, "no such file");
    assert_true(max >= f.len);
    *ret = malloc(f.len);
    memcpy(*ret, f.bytes, f.len);
    *ret_len = f.len;
    return 0;
}

static void test_zone_is_read_once(void **state)
{
    struct stw_zones *z = stw_zones_create(read_fake);
    (void)state;
    reads = 0;
    const struct stw_zone *first = stw_zones_get(z, "Test/Zone");
    assert_non_null(first);
    assert_ptr_equal(stw_zones_get(z, "Test/Zone"), first);
    assert_int_equal(reads, 1);
    assert_null(stw_zones_get(z, "No/Zone"));
    assert_int_equal(reads, 2);
    assert_null(stw_zones_get(z, "../../etc/passwd"));
    assert_ptr_equal(stw_zones_get(z, "Etc/UTC"), &stw_zone_utc);
    assert_ptr_equal(stw_zones_get(z, "UTC"), &stw_zone_utc);
    assert_int_equal(reads, 2);
    stw_zones_destroy(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zone_file_periods_are_read),
        cmocka_unit_test(test_every_truncated_zone_file_is_refused),
        cmocka_unit_test(test_invalid_zone_files_are_refused),
        cmocka_unit_test(test_zone_footer_rules_are_applied),
        cmocka_unit_test(test_zone_names_are_validated),
        cmocka_unit_test(test_zone_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
