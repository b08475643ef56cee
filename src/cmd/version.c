/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "cmd/build.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"

#include <curl/curl.h>
#include <expat.h>
#include <gnutls/gnutls.h>
#include <jansson.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <sodium.h>
#include <stdio.h>
#include <yaml.h>

struct line {
    const char *name, *value;
};

static void print_text(const struct line *lines, size_t n)
{
    printf("steward %s\n", lines[0].value);
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
    "Usage: steward version [-o json]\n\n"
    "Prints the version of steward and of the libraries that it runs with.\n";

struct options {
    char *output;
};

static const struct stw_flag flags[] = {
    STW_FLAGS_OUTPUT(struct options),
    {0},
};

static int run_version(void *settings, int count, char **operands)
{
    const struct options *o = settings;
    const struct line lines[] = {
        {"version", STW_VERSION},
        {"commit", STW_COMMIT},
        {"compiler", __VERSION__},
        {"libmicrohttpd", MHD_get_version()},
        {"libcurl", curl_version_info(CURLVERSION_NOW)->version},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"gnutls", gnutls_check_version(NULL)},
        {"jansson", jansson_version_str()},
        {"libyaml", yaml_get_version_string()},
        {"expat", strrchr(XML_ExpatVersion(), '_') + 1}, /* "expat_2.7.1" */
        {"libsodium", sodium_version_string()},
    };
    bool json;
    (void)operands;
    if (count)
        return stw_usage_error("version", "it takes options only");
    if (stw_flags_output("version", o->output, &json) != 0)
        return STW_EXIT_USAGE;
    if (json)
        print_json(lines, STW_COUNT(lines));
    else
        print_text(lines, STW_COUNT(lines));
    return fflush(stdout) == 0 ? STW_EXIT_OK : STW_EXIT_REFUSED;
}

static int start_version(int argc, char **argv)
{
    struct options options = {0};
    return stw_flags_run(flags, usage, &options, argc, argv, run_version);
}

const struct stw_command stw_command_version = {
    .name = "version",
    .summary = "version and libraries",
    .usage = usage,
    .flags = flags,
    .run = start_version,
};
