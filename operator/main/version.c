/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "operator/command.h"
#include "operator/extension.h"

#include <curl/curl.h>
#include <gnutls/gnutls.h>
#include <jansson.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <yaml.h>

#define LINES_MAX 24

struct line {
    const char *name, *value;
};

static void print_text(const struct stw_operator *op, const struct line *lines, size_t n)
{
    printf("%s %s\n", op->name, lines[0].value);
    for (size_t i = 1; i < n; i++)
        printf("  %-14s %s\n", lines[i].name, lines[i].value);
}

static void print_json(const struct line *lines, size_t n)
{
    json_auto_t *object = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(object, lines[i].name, json_string(lines[i].value));
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
}

static const char usage[] =
    "Usage: {operator} version [-o json]\n\n"
    "Prints the version of {operator} and of the libraries that it runs with.\n";

struct options {
    char *output;
};

static const struct stw_flag flags[] = {
    STW_FLAGS_OUTPUT(struct options),
    {0},
};

static int run_version(const struct stw_call *call, void *settings, int count, char **operands)
{
    const struct options *o = settings;
    const struct stw_extension *x = call->op->extension;
    const struct line base[] = {
        {"version", call->op->version},
        {x && x->commit ? "commit" : NULL, x ? x->commit : NULL},
        {"compiler", __VERSION__},
        {"libmicrohttpd", MHD_get_version()},
        {"libcurl", curl_version_info(CURLVERSION_NOW)->version},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"gnutls", gnutls_check_version(NULL)},
        {"jansson", jansson_version_str()},
        {"libyaml", yaml_get_version_string()},
    };
    struct line lines[LINES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < STW_COUNT(base); i++)
        if (base[i].name)
            lines[n++] = base[i];
    for (const struct stw_library *l = x ? x->libraries : NULL; l && l->name && n < LINES_MAX; l++)
        lines[n++] = (struct line){l->name, l->version()};
    bool json;
    (void)operands;
    if (count)
        return stw_usage_error("version", "it takes options only");
    if (stw_flags_output("version", o->output, &json) != 0)
        return STW_EXIT_USAGE;
    if (json)
        print_json(lines, n);
    else
        print_text(call->op, lines, n);
    return fflush(stdout) == 0 ? STW_EXIT_OK : STW_EXIT_REFUSED;
}

static int start_version(const struct stw_call *call)
{
    struct options options = {0};
    return stw_flags_run(call, &options, run_version);
}

const struct stw_command stw_command_version = {
    .name = "version",
    .summary = "version and libraries",
    .usage = usage,
    .flags = flags,
    .run = start_version,
};
