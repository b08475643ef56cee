/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the page of each kind: each YAML block is validated, and the text block that follows it
 * (if any, before the next YAML block) must be exactly the output.  A block with `targets` is
 * steward's configuration, and applies to the blocks after it.  The samples must not cause even a
 * warning. */
#include "base/yaml/yaml.h"
#include "kinds/common/product.h"
#include "kinds/kinds.h"
#include "sql/target/target.h"
#include "support/judge.h"

struct page {
    const char *path;
    struct stw_buf said; /* findings of one YAML block */
    unsigned blocks;
    struct stw_targets *targets; /* NULL: none were shown */
};

static struct stw_targets *shown_targets(void *ctx)
{
    const struct page *page = ctx;
    return stw_targets_ref(page->targets);
}

static void page_done(struct page *page)
{
    stw_buf_done(&page->said);
    stw_targets_unref(page->targets);
}

static void say(const struct stw_findings *f, struct stw_buf *out)
{
    for (size_t i = 0; i < f->error_count; i++) {
        stw_finding_text(&f->errors[i], out);
        stw_buf_addc(out, '\n');
    }
    for (size_t i = 0; i < f->warning_count; i++)
        stw_buf_addf(out, "Warning: %s\n", f->warnings[i]);
}

/* NULL for a built-in kind that is shown with ours, such as a Secret or a Deployment. */
static const struct stw_kind *kind_of(struct stw_json object)
{
    char version[256], kind[64];
    if (stw_json_is(stw_json_get(object, "apiVersion"), "v1") ||
        stw_json_is(stw_json_get(object, "apiVersion"), "apps/v1"))
        return NULL;
    assert_int_equal(stw_json_strcpy(stw_json_get(object, "apiVersion"), version, sizeof(version)),
                     0);
    assert_int_equal(stw_json_strcpy(stw_json_get(object, "kind"), kind, sizeof(kind)), 0);
    char *slash = strchr(version, '/');
    assert_non_null(slash);
    *slash = '\0';
    const struct stw_kind *k = stw_kind_find(version, slash + 1, kind);
    assert_non_null(k);
    return k;
}

static int judge(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct page *page = ctx;
    stw_autofindings struct stw_findings f = {0};
    const struct stw_product product = {.targets = page->targets ? shown_targets : NULL,
                                        .targets_ctx = page};
    const struct stw_env env = {.op = &stw_operator_steward, .product = &product};
    struct question q;
    (void)index, (void)line;
    ask(&q, NULL, stw_buf_str(json), NULL, &env);
    struct stw_json targets = stw_json_get(q.a.object, "targets");
    if (stw_json_there(targets)) {
        stw_targets_unref(page->targets);
        page->targets = NULL;
        (void)stw_targets_parse(targets, &page->targets, &f);
    } else if ((q.a.kind = kind_of(q.a.object))) {
        stw_kind_validate(&q.a, &f);
    }
    say(&f, &page->said);
    ask_done(&q);
    return 0;
}

static void judge_yaml(struct page *page, const char *text, size_t len)
{
    struct stw_error err = {0};
    stw_buf_clear(&page->said);
    if (stw_yaml_each(page->path, text, len, judge, page, &err) != 0)
        fail_msg("%s", err.text);
    page->blocks++;
}

static char *read_source(const char *name)
{
    char path[512];
    char *text = NULL;
    size_t len;
    struct stw_error err = {0};
    snprintf(path, sizeof(path), STW_SOURCE_ROOT "/%s", name);
    if (stw_read_file(path, 1 << 20, &text, &len, &err) != 0)
        fail_msg("%s", err.text);
    return text;
}

static void compare(const struct page *page, const char *text, size_t len)
{
    const char *said = stw_buf_str(&page->said);
    if (strlen(said) != len || memcmp(said, text, len) != 0)
        fail_msg("%s, YAML block %u\nshown <%.*s>\nsaid  <%s>", page->path, page->blocks, (int)len,
                 text, said);
}

/* A YAML block without a text block must have no findings. */
static void read_blocks(struct page *page, const char *text)
{
    bool open = false;
    for (const char *at = text, *end; (at = strstr(at, "\n```")); at = end + 4) {
        bool yaml = strncmp(at + 4, "yaml\n", 5) == 0, answer = strncmp(at + 4, "text\n", 5) == 0;
        const char *start = strchr(at + 4, '\n');
        end = start ? strstr(start, "\n```") : NULL;
        assert_non_null(end);
        if (yaml && open)
            compare(page, "", 0);
        if (yaml)
            judge_yaml(page, start + 1, (size_t)(end - start));
        if (answer)
            compare(page, start + 1, (size_t)(end - start));
        open = yaml || (open && !answer);
    }
    if (open)
        compare(page, "", 0);
}

/* EtcdRestore is documented on the page of EtcdBackup. */
static const char *page_of(const struct stw_kind *k)
{
    return stw_streq(k->singular, "etcdrestore") ? "etcdbackup" : k->singular;
}

static void test_yaml_blocks_of_pages_are_valid(void **state)
{
    (void)state;
    for (const struct stw_kind *const *k = stw_kinds; *k; k++) {
        char name[128];
        snprintf(name, sizeof(name), "docs/%s.md", page_of(*k));
        struct page page = {.path = name, .said = STW_BUF_INIT(65536)};
        stw_autofree char *text = read_source(name);
        read_blocks(&page, text);
        assert_true(page.blocks >= 2);
        page_done(&page);
    }
}

static void test_samples_are_valid(void **state)
{
    (void)state;
    for (const struct stw_kind *const *k = stw_kinds; *k; k++) {
        char name[256], group[64];
        snprintf(group, sizeof(group), "%.*s", (int)strcspn((*k)->group, "."), (*k)->group);
        snprintf(name, sizeof(name), "config/samples/%s_%s_%s.yaml", group, (*k)->version,
                 (*k)->singular);
        struct page page = {.path = name, .said = STW_BUF_INIT(65536)};
        stw_autofree char *text = read_source(name);
        judge_yaml(&page, text, strlen(text));
        compare(&page, "", 0);
        page_done(&page);
    }
}

/* The manifest of the article that MyWeb comes from. */
static void test_article_manifest_of_myweb_is_valid(void **state)
{
    static const char manifest[] = "apiVersion: operator.k8s-summit.org/v1\n"
                                   "kind: MyWeb\n"
                                   "metadata:\n"
                                   "  name: myweb\n"
                                   "  namespace: default\n"
                                   "spec:\n"
                                   "  image: nginx\n"
                                   "  nodePortNumber: 30100\n"
                                   "  pageContentHtml: |\n"
                                   "    <html>\n"
                                   "      <body>\n"
                                   "        <h1>Hello, World!</h1>\n"
                                   "      </body>\n"
                                   "    </html>\n";
    static const char want[] =
        "Warning: image has no tag or uses \":latest\"; rollouts are not reproducible\n"
        "Warning: node port 30100 may be given to a Service that asks for no specific port; "
        "30000-30085 are kept for ports chosen by hand\n";
    struct page page = {.path = "-", .said = STW_BUF_INIT(65536)};
    (void)state;
    judge_yaml(&page, manifest, strlen(manifest));
    compare(&page, want, strlen(want));
    page_done(&page);
}

/* All fields of the types in the article that App comes from. */
static void test_article_manifest_of_app_is_valid(void **state)
{
    static const char manifest[] = "apiVersion: mycompany.com/v1\n"
                                   "kind: App\n"
                                   "metadata:\n"
                                   "  name: my-app\n"
                                   "  namespace: default\n"
                                   "spec:\n"
                                   "  replicas: 3\n"
                                   "  image: nginx:1.25\n"
                                   "  port: 8080\n"
                                   "  config:\n"
                                   "    databaseUrl: postgres://db:5432/app\n"
                                   "    logLevel: info\n"
                                   "    environment:\n"
                                   "      ENV: production\n"
                                   "  resources:\n"
                                   "    requests:\n"
                                   "      cpu: 100m\n"
                                   "      memory: 128Mi\n"
                                   "    limits:\n"
                                   "      cpu: 500m\n"
                                   "      memory: 512Mi\n";
    struct page page = {.path = "-", .said = STW_BUF_INIT(65536)};
    (void)state;
    judge_yaml(&page, manifest, strlen(manifest));
    compare(&page, "", 0);
    stw_buf_done(&page.said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_blocks_of_pages_are_valid),
        cmocka_unit_test(test_samples_are_valid),
        cmocka_unit_test(test_article_manifest_of_myweb_is_valid),
        cmocka_unit_test(test_article_manifest_of_app_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
