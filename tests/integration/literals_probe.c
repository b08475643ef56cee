/* SPDX-License-Identifier: Apache-2.0
 *
 * The small grammars of steward, for a test that compares them with those of Kubernetes and of container
 * runtimes.  Reads texts, each behind its length in a line of its own.  Answers each with one line of
 * JSON, which has a member for each grammar that accepts it. */
#include "base/clock.h"
#include "base/duration.h"
#include "base/util.h"
#include "kinds/common/ingress.h"
#include "registry/reference.h"
#include "schema/core.h"
#include "schema/field/semver.h"
#include "schema/names.h"

#include <jansson.h>
#include <stdio.h>

#define TEXT_MAX 8192
#define PODS 97

static const struct {
    const char *name;
    bool (*is)(const char *text); /* one of the two */
    const char *(*check)(const char *text);
} grammars[] = {
    {"dns1123Label", stw_is_dns1123_label, NULL},
    {"dns1123Subdomain", stw_is_dns1123_subdomain, NULL},
    {"dns1035Label", stw_is_dns1035_label, NULL},
    {"labelKey", stw_is_qualified_name, NULL},
    {"labelValue", stw_is_label_value, NULL},
    {"envName", NULL, stw_core_check_env_name},
    {"dataKey", NULL, stw_core_check_key},
    {"host", NULL, stw_ingress_check_host},
};

static void add(json_t *verdict, const char *name, json_t *value)
{
    if (json_object_set_new(verdict, name, value) != 0)
        abort();
}

/* The digits of a 128-bit integer. */
static json_t *integer(stw_quantity q)
{
    char digits[48];
    size_t at = sizeof(digits) - 1;
    unsigned __int128 n = (unsigned __int128)(q < 0 ? -q : q);
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n);
    if (q < 0)
        digits[--at] = '-';
    return json_string(digits + at);
}

static void judge_quantity(const char *text, json_t *verdict)
{
    stw_quantity q;
    stw_autobuf struct stw_buf canonical = STW_BUF_INIT(TEXT_MAX);
    if (stw_quantity_parse(text, &q) == 0 && stw_quantity_canonical(text, &canonical) == 0)
        add(verdict, "quantity", json_pack("[o,s]", integer(q), stw_buf_str(&canonical)));
}

static void judge_image(const char *text, json_t *verdict)
{
    struct stw_image image;
    char tag[STW_IMAGE_TAG_LEN];
    if (stw_image_parse(text, &image) != 0)
        return;
    stw_image_tag(text, tag, sizeof(tag));
    add(verdict, "image", json_pack("[s,s,s,b]", image.domain, image.path, tag, image.pinned));
}

static void judge_times(const char *text, json_t *verdict)
{
    int64_t us, ms;
    if (stw_time_parse(text, &us) == 0)
        add(verdict, "time", integer(us));
    if (stw_duration_parse(text, &ms) == 0)
        add(verdict, "duration", integer(ms));
}

static void judge_percent(const char *text, json_t *verdict)
{
    int64_t percent;
    if (stw_percent_parse(text, &percent) == 0)
        add(verdict, "percent",
            json_pack("[I,I]", (json_int_t)((PODS * percent + 99) / 100),
                      (json_int_t)(PODS * percent / 100)));
}

static json_t *judge(const char *text)
{
    json_t *verdict = json_object();
    struct stw_semver version;
    char written[STW_SEMVER_LEN];
    for (size_t i = 0; i < STW_COUNT(grammars); i++)
        if (grammars[i].is ? grammars[i].is(text) : !grammars[i].check(text))
            add(verdict, grammars[i].name, json_true());
    if (stw_semver_parse(text, &version) == 0) {
        stw_semver_text(version, written);
        add(verdict, "version", json_string(written));
    }
    judge_quantity(text, verdict);
    judge_image(text, verdict);
    judge_times(text, verdict);
    judge_percent(text, verdict);
    return verdict;
}

int main(void)
{
    static char text[TEXT_MAX + 1];
    char line[32];
    while (fgets(line, sizeof(line), stdin)) {
        int64_t len;
        line[strcspn(line, "\n")] = '\0';
        if (stw_parse_int(line, 0, TEXT_MAX, &len) != 0 ||
            fread(text, 1, (size_t)len, stdin) != (size_t)len)
            return 1;
        text[len] = '\0';
        json_t *verdict = judge(text);
        if (json_dumpf(verdict, stdout, JSON_COMPACT) != 0)
            return 1;
        (void)putchar('\n');
        json_decref(verdict);
    }
    return 0;
}
