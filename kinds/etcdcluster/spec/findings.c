/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings below the spec of an EtcdCluster. */
#include "base/util.h"
#include "kinds/etcdcluster/spec/rules.h"

#include <stdarg.h>
#include <stdio.h>

struct ec_path ec_path(const struct ec_scene *s, const char *path)
{
    struct ec_path ret;
    stw_format(ret.text, sizeof(ret.text), "%s.%s", s->at, path);
    return ret;
}

__attribute__((format(printf, 5, 0))) static void
add_spec_error(const struct ec_scene *s, const char *path, enum stw_finding_code code,
               const char *json, const char *fmt, va_list ap)
{
    char text[512];
    stw_vformat(text, sizeof(text), fmt, ap);
    stw_findings_add(s->f, ec_path(s, path).text, code, json, "%s", text);
}

void ec_forbid(const struct ec_scene *s, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_spec_error(s, path, STW_FORBIDDEN, NULL, fmt, ap);
    va_end(ap);
}

void ec_require(const struct ec_scene *s, const char *path, const char *text)
{
    stw_findings_add(s->f, ec_path(s, path).text, STW_REQUIRED, NULL, "%s", text);
}

void ec_refuse_int(const struct ec_scene *s, const char *path, int64_t value, const char *fmt, ...)
{
    char json[24];
    va_list ap;
    stw_format(json, sizeof(json), "%lld", (long long)value);
    va_start(ap, fmt);
    add_spec_error(s, path, STW_INVALID, json, fmt, ap);
    va_end(ap);
}

void ec_refuse_text(const struct ec_scene *s, const char *path, const char *value, const char *fmt,
                    ...)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(1 << 20);
    va_list ap;
    stw_buf_json_strz(&json, value);
    va_start(ap, fmt);
    add_spec_error(s, path, STW_INVALID, stw_buf_str(&json), fmt, ap);
    va_end(ap);
}

void ec_refuse_node(const struct ec_scene *s, const char *path, struct stw_json value,
                    const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(text, sizeof(text), fmt, ap);
    va_end(ap);
    stw_findings_at(s->f, ec_path(s, path).text, STW_INVALID, value, "%s", text);
}
