/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "cmd/build.h"
#include "cmd/cmd.h"

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

int stw_cmd_version(int argc, char **argv)
{
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
    if (argc == 1) {
        print_text(lines, STW_COUNT(lines));
        return STW_EXIT_OK;
    }
    if ((argc == 3 && stw_streq(argv[1], "-o") && stw_streq(argv[2], "json")) ||
        (argc == 2 && (stw_streq(argv[1], "-ojson") || stw_streq(argv[1], "--output=json")))) {
        print_json(lines, STW_COUNT(lines));
        return STW_EXIT_OK;
    }
    bool help = argc == 2 && (stw_streq(argv[1], "--help") || stw_streq(argv[1], "-h"));
    fputs("Usage: steward version [-o json]\n", help ? stdout : stderr);
    return help ? STW_EXIT_OK : STW_EXIT_USAGE;
}
