/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables of OpenTelemetry.  A variable for traces overrides the general one.  As
 * its specification asks, a value of the sampler or the resource that is not valid is logged and
 * ignored; what would send spans or credentials to a wrong place is an error. */
#include "base/hex.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "otlp/otlp.h"

#include <curl/curl.h>
#include <errno.h>
#include <strings.h>
#include <unistd.h>

#define URL_MAX_BYTES 2048
#define LIST_MAX_BYTES 8192 /* of headers or attributes */
#define LIST_MAX 64
#define RESOURCE_MAX_BYTES (64u << 10)
#define TRACES_PATH "/v1/traces"
#define TIMEOUT_MAX_MS 60000
#define DELAY_MAX_MS 60000

/* NULL: not set, or empty. */
static const char *read_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* OTEL_EXPORTER_OTLP_TRACES_<what>, else OTEL_EXPORTER_OTLP_<what>.  `ret_name` gets which. */
static const char *read_exporter_variable(const char *what, char *ret_name, size_t size)
{
    stw_format(ret_name, size, "OTEL_EXPORTER_OTLP_TRACES_%s", what);
    const char *value = read_variable(ret_name);
    if (value)
        return value;
    stw_format(ret_name, size, "OTEL_EXPORTER_OTLP_%s", what);
    return read_variable(ret_name);
}

static void warn_ignored(const char *name, const char *why)
{
    stw_log(STW_LOG_WARN, "an environment variable is not valid and ignored",
            STW_STR("variable", name), STW_STR("error", why));
}

/* --- lists: "key=value,key=value", percent-encoded */

static int decode_percent(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        int high = -1, low = -1;
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        high = stw_hex_digit(p[1]);
        low = high >= 0 ? stw_hex_digit(p[2]) : -1;
        if (low < 0 || high + low == 0)
            return -1;
        *to++ = (char)(high << 4 | low);
        p += 2;
    }
    *to = '\0';
    return 0;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    text[len] = '\0';
    return text;
}

struct setting {
    char *key, *value; /* within the copy of the list */
};

struct pairs {
    char *copy; /* may hold secrets */
    struct setting all[LIST_MAX];
    size_t count;
};

static void free_pairs(struct pairs *p)
{
    if (p->copy)
        stw_wipe(p->copy, LIST_MAX_BYTES);
    free(p->copy);
    *p = (struct pairs){0};
}

static int add_pair(struct pairs *p, char *entry)
{
    char *equals = strchr(entry, '=');
    if (*trim(entry) == '\0')
        return 0; /* a comma at the end */
    if (!equals || p->count == LIST_MAX)
        return -1;
    *equals = '\0';
    struct setting *one = &p->all[p->count++];
    one->key = trim(entry);
    one->value = trim(equals + 1);
    return *one->key && decode_percent(one->key) == 0 && decode_percent(one->value) == 0 &&
                   stw_utf8_valid(one->key, strlen(one->key)) &&
                   stw_utf8_valid(one->value, strlen(one->value))
               ? 0
               : -1;
}

/* -1: not such a list.  Never names a value. */
static int split_pairs(const char *text, struct pairs *ret)
{
    char *rest = NULL;
    *ret = (struct pairs){0};
    if (strnlen(text, LIST_MAX_BYTES) == LIST_MAX_BYTES || !(ret->copy = calloc(1, LIST_MAX_BYTES)))
        return -1;
    memcpy(ret->copy, text, strlen(text));
    for (char *one = strtok_r(ret->copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (add_pair(ret, one) != 0)
            return -1;
    return 0;
}

/* --- headers */

static bool is_header_name(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "!#$%&'*+-.^_`|~")] == '\0';
}

static bool is_header_value(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
            return false;
    return true;
}

static int take_headers(const struct pairs *p, struct stw_otlp_config *ret)
{
    ret->headers = calloc(p->count + 1, sizeof(*ret->headers));
    if (!ret->headers)
        return -1;
    for (size_t i = 0; i < p->count; i++) {
        size_t size = strlen(p->all[i].key) + strlen(p->all[i].value) + 3;
        if (!is_header_name(p->all[i].key) || !is_header_value(p->all[i].value) ||
            !(ret->headers[i] = malloc(size)))
            return -1;
        stw_format(ret->headers[i], size, "%s: %s", p->all[i].key, p->all[i].value);
    }
    return 0;
}

static int read_headers(struct stw_otlp_config *ret, struct stw_error *err)
{
    char name[64];
    struct pairs pairs;
    const char *text = read_exporter_variable("HEADERS", name, sizeof(name));
    if (!text)
        return 0;
    bool ok = split_pairs(text, &pairs) == 0 && take_headers(&pairs, ret) == 0;
    free_pairs(&pairs);
    return ok ? 0
              : stw_fail(err, STW_ERR_INVALID,
                         "%s is not a list of headers such as \"name=value,name2=value2\" with "
                         "percent-encoded values",
                         name);
}

/* --- the endpoint */

static int check_part(CURLU *url, CURLUPart part)
{
    char *value = NULL;
    bool there = curl_url_get(url, part, &value, 0) == CURLUE_OK;
    curl_free(value);
    return there ? -1 : 0;
}

static char *copy_part(CURLU *url, CURLUPart part)
{
    char *value = NULL;
    char *copy = curl_url_get(url, part, &value, 0) == CURLUE_OK ? strdup(value) : NULL;
    curl_free(value);
    return copy;
}

/* Appends the path of traces: always to a base, and to an option that has no path. */
static int set_path(CURLU *url, bool base, bool option)
{
    char longer[URL_MAX_BYTES + sizeof(TRACES_PATH)];
    stw_autofree char *path = copy_part(url, CURLUPART_PATH);
    if (!path)
        return -1;
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    if (!base && !(option && len == 0))
        return 0;
    path[len] = '\0';
    return stw_format_whole(longer, sizeof(longer), "%s" TRACES_PATH, path) == 0 &&
                   curl_url_set(url, CURLUPART_PATH, longer, 0) == CURLUE_OK
               ? 0
               : -1;
}

static int take_url(CURLU *url, struct stw_otlp_config *ret)
{
    stw_autofree char *scheme = copy_part(url, CURLUPART_SCHEME);
    stw_autofree char *host = copy_part(url, CURLUPART_HOST);
    stw_autofree char *port = copy_part(url, CURLUPART_PORT);
    char name[512];
    if (!scheme || !host || (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0) ||
        stw_format_whole(name, sizeof(name), "%s://%s%s%s", scheme, host, port ? ":" : "",
                         port ? port : "") != 0)
        return -1;
    ret->name = strdup(name);
    ret->endpoint = copy_part(url, CURLUPART_URL);
    return ret->name && ret->endpoint ? 0 : -1;
}

static int parse_endpoint(const char *text, bool base, bool option, struct stw_otlp_config *ret)
{
    if (strnlen(text, URL_MAX_BYTES) == URL_MAX_BYTES)
        return -1;
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return -1;
    const char *host = strstr(text, "://"); /* libcurl takes "c:4318" and "http:///c", too */
    if (!host || strcspn(host + 3, "/?#") == 0)
        return -1;
    CURLU *url = curl_url();
    bool ok = url &&
              curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
              check_part(url, CURLUPART_USER) == 0 && check_part(url, CURLUPART_PASSWORD) == 0 &&
              check_part(url, CURLUPART_FRAGMENT) == 0 && set_path(url, base, option) == 0 &&
              take_url(url, ret) == 0;
    curl_url_cleanup(url);
    return ok ? 0 : -1;
}

static int read_endpoint(const char *option, struct stw_otlp_config *ret, struct stw_error *err)
{
    static const char traces[] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    static const char general[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
    bool given = option && *option;
    const char *own = given ? option : read_variable(traces);
    const char *text = own ? own : read_variable(general);
    if (!text || parse_endpoint(text, !own, given, ret) == 0)
        return 0;
    return stw_fail(err, STW_ERR_INVALID,
                    "%s is not a URL of a collector such as http://collector:4318%s (http or "
                    "https, without user, password and fragment; headers are in "
                    "OTEL_EXPORTER_OTLP_HEADERS)",
                    given ? "--traces-endpoint"
                    : own ? traces
                          : general,
                    own && !given ? TRACES_PATH : "");
}

/* --- the resource */

static void add_to_resource(struct stw_otlp_config *c, const char *key, const char *value)
{
    stw_buf_adds(&c->resource, c->resource.len > 0 ? "," : "");
    stw_otlp_encode_text(key, value, &c->resource);
}

static bool has_key(const struct pairs *p, const char *key)
{
    for (size_t i = 0; i < p->count; i++)
        if (stw_streq(p->all[i].key, key))
            return true;
    return false;
}

static void read_resource(const char *service, const char *version, struct stw_otlp_config *ret)
{
    static const char variable[] = "OTEL_RESOURCE_ATTRIBUTES";
    char host[256] = "";
    struct pairs pairs = {0};
    const char *text = read_variable(variable), *name = read_variable("OTEL_SERVICE_NAME");
    if (text && split_pairs(text, &pairs) != 0) {
        warn_ignored(variable, "not a list such as \"key=value,key2=value2\"");
        free_pairs(&pairs);
    }
    (void)gethostname(host, sizeof(host) - 1);
    const struct setting defaults[] = {
        {(char[]){"service.name"}, (char *)(uintptr_t)(name ? name : service)},
        {(char[]){"service.version"}, (char *)(uintptr_t)version},
        {(char[]){"service.instance.id"}, host},
    };
    ret->resource = STW_BUF_INIT(RESOURCE_MAX_BYTES);
    for (size_t i = 0; i < STW_COUNT(defaults); i++) {
        bool wins = i == 0 && name;
        if ((wins || !has_key(&pairs, defaults[i].key)) &&
            stw_utf8_valid(defaults[i].value, strlen(defaults[i].value)))
            add_to_resource(ret, defaults[i].key, defaults[i].value);
    }
    for (size_t i = 0; i < pairs.count; i++)
        if (!(name && stw_streq(pairs.all[i].key, "service.name")))
            add_to_resource(ret, pairs.all[i].key, pairs.all[i].value);
    free_pairs(&pairs);
}

/* --- the rest */

static uint32_t read_ms(const char *name, const char *value, int64_t max, uint32_t otherwise)
{
    int64_t ms;
    if (!value)
        return otherwise;
    if (stw_parse_int(value, 1, max, &ms) == 0)
        return (uint32_t)ms;
    warn_ignored(name, "not a number of milliseconds up to 60000");
    return otherwise;
}

static int read_ca(struct stw_otlp_config *ret, struct stw_error *err)
{
    char name[64];
    const char *path = read_exporter_variable("CERTIFICATE", name, sizeof(name));
    if (!path)
        return 0;
    if (access(path, R_OK) != 0)
        return stw_fail(err, STW_ERR_INVALID, "%s: cannot read %s: %s", name, path,
                        strerrordesc_np(errno));
    ret->ca_file = strdup(path);
    return ret->ca_file ? 0 : stw_fail_memory(err);
}

static int check_protocol(struct stw_error *err)
{
    char name[64];
    const char *protocol = read_exporter_variable("PROTOCOL", name, sizeof(name));
    if (!protocol || strncmp(protocol, "http/", 5) == 0)
        return 0; /* a collector takes both encodings on the same port */
    return stw_fail(err, STW_ERR_INVALID,
                    "%s: traces are sent by http/json, and the endpoint of another protocol does "
                    "not take them; set it to http/json, and the endpoint to that of OTLP/HTTP",
                    name);
}

static bool is_turned_off(void)
{
    const char *disabled = read_variable("OTEL_SDK_DISABLED");
    const char *exporter = read_variable("OTEL_TRACES_EXPORTER");
    return (disabled && strcasecmp(disabled, "true") == 0) ||
           (exporter && stw_streq(exporter, "none"));
}

static int read_all(const char *service, const char *version, struct stw_otlp_config *ret,
                    struct stw_error *err)
{
    static const char delay[] = "OTEL_BSP_SCHEDULE_DELAY";
    char name[64];
    if (check_protocol(err) != 0 || read_headers(ret, err) != 0 || read_ca(ret, err) != 0)
        return -1;
    const char *timeout = read_exporter_variable("TIMEOUT", name, sizeof(name));
    ret->timeout_ms = read_ms(name, timeout, TIMEOUT_MAX_MS, STW_OTLP_TIMEOUT_MS);
    ret->delay_ms = read_ms(delay, read_variable(delay), DELAY_MAX_MS, STW_OTLP_DELAY_MS);
    ret->batch_ms = STW_OTLP_BATCH_MS;
    if (stw_sampler_parse(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG"),
                          &ret->sampler) != 0)
        warn_ignored("OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG",
                     "not a sampler such as parentbased_traceidratio with an argument from 0 to 1");
    read_resource(service, version, ret);
    stw_format(ret->scope, sizeof(ret->scope), "%s", service);
    stw_format(ret->version, sizeof(ret->version), "%s", version);
    return ret->resource.failed ? stw_fail_memory(err) : 0;
}

int stw_otlp_config_read(const char *endpoint, const char *service, const char *version,
                         struct stw_otlp_config *ret, struct stw_error *err)
{
    *ret = (struct stw_otlp_config){0};
    if (is_turned_off())
        return 0;
    if (read_endpoint(endpoint, ret, err) != 0)
        return -1;
    return ret->endpoint ? read_all(service, version, ret, err) : 0;
}

void stw_otlp_config_done(struct stw_otlp_config *c)
{
    for (char **h = c->headers; h && *h; h++)
        stw_wipe_free(*h);
    free(c->headers);
    free(c->endpoint);
    free(c->name);
    free(c->ca_file);
    stw_buf_done(&c->resource);
    *c = (struct stw_otlp_config){0};
}
