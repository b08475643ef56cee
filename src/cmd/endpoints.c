/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/endpoints.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/util.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#define LIST_MAX_BYTES (64u << 10)

/* Excludes all addresses of the host. */
static void exclude_host(const char *host, struct stw_buf *list)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &all);
    if (rc != 0)
        stw_log(STW_LOG_WARN, "the API server's address is not excluded from --store-endpoints",
                STW_STR("host", host), STW_STR("error", gai_strerror(rc)));
    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        char text[NI_MAXHOST];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) !=
            0)
            continue;
        text[strcspn(text, "%")] = '\0'; /* fe80::1%eth0 */
        stw_buf_addf(list, "%s!%s", list->len > 0 ? "," : "", text);
    }
    if (all)
        freeaddrinfo(all);
}

static void host_of(const char *url, char out[256])
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    bool bracket = *host == '[';
    host += bracket;
    stw_format(out, 256, "%.*s", (int)strcspn(host, bracket ? "]" : ":/"), host);
}

int stw_endpoints_allow(const char *list, const char *server, struct stw_reach **ret,
                        struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(LIST_MAX_BYTES);
    const char *service = getenv("KUBERNETES_SERVICE_HOST");
    char host[256];
    stw_buf_adds(&text, list ? list : "");
    host_of(server, host);
    exclude_host(host, &text);
    if (service && *service && !stw_streq(service, host))
        exclude_host(service, &text);
    if (text.failed)
        return stw_fail(err, STW_ERR_INVALID, "--store-endpoints is too long");
    if (stw_reach_parse(stw_buf_str(&text), ret, err) != 0)
        return stw_error_wrap(err, "--store-endpoints");
    return 0;
}
