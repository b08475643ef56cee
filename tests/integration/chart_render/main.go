// SPDX-License-Identifier: Apache-2.0

// Renders a Helm chart as helm does, for tests where there is no helm: the same template engine, the
// same library of functions (sprig) and the same YAML library, from Debian's packages
// golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev, built in GOPATH mode.
//
//	chart_render CHART < {"values": {...}, "name": "...", "namespace": "...", "kubeVersion": "v1.20.2"}
//
// prints {"FILE": "TEXT", ...} of all templates, NOTES.txt among them.  Left out: subcharts, hooks'
// order, lookup (answers as `helm template` does), and helm's release records.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type question struct {
	Values                       map[string]interface{}
	Name, Namespace, KubeVersion string
}

type metadata struct {
	Name, Version, AppVersion, KubeVersion, Description, Type string
}

// .Files

type files map[string][]byte

func (f files) GetBytes(name string) []byte { return f[name] }
func (f files) Get(name string) string      { return string(f[name]) }
func (f files) Glob(pattern string) files {
	found := files{}
	for name, data := range f {
		if ok, _ := path.Match(pattern, name); ok {
			found[name] = data
		}
	}
	return found
}

// .Capabilities

type kubeVersion struct{ Version, Major, Minor string }

func (v kubeVersion) String() string     { return v.Version }
func (v kubeVersion) GitVersion() string { return v.Version }

type apiVersions []string

func (a apiVersions) Has(name string) bool {
	for _, v := range a {
		if v == name {
			return true
		}
	}
	return false
}

type capabilities struct {
	KubeVersion kubeVersion
	APIVersions apiVersions
}

func versionOf(text string) kubeVersion {
	parts := strings.SplitN(strings.TrimPrefix(text, "v"), ".", 3)
	if len(parts) != 3 {
		fail(fmt.Errorf("%q is not a version such as v1.20.2", text))
	}
	return kubeVersion{text, parts[0], parts[1]}
}

// Values given by the user over those of the chart; null takes one away.
func coalesce(over, base map[string]interface{}) map[string]interface{} {
	for key, value := range base {
		given, there := over[key]
		below, isTable := value.(map[string]interface{})
		table, givenTable := given.(map[string]interface{})
		switch {
		case !there:
			over[key] = value
		case given == nil:
			delete(over, key)
		case isTable && givenTable:
			over[key] = coalesce(table, below)
		}
	}
	return over
}

func toYAML(value interface{}) string {
	data, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

func fromYAML(text string) map[string]interface{} {
	value := map[string]interface{}{}
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		value["Error"] = err.Error()
	}
	return value
}

func fromYAMLArray(text string) []interface{} {
	value := []interface{}{}
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		value = []interface{}{err.Error()}
	}
	return value
}

func required(message string, value interface{}) (interface{}, error) {
	if value == nil || value == "" {
		return value, errors.New(message)
	}
	return value, nil
}

func functions(t *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	depth := 0
	all["toYaml"], all["fromYaml"], all["fromYamlArray"] = toYAML, fromYAML, fromYAMLArray
	all["required"] = required
	all["lookup"] = func(string, string, string, string) map[string]interface{} {
		return map[string]interface{}{}
	}
	all["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		if depth++; depth > 1000 {
			return "", errors.New("templates include each other without end")
		}
		err := t.ExecuteTemplate(&out, name, data)
		depth--
		return out.String(), err
	}
	return all
}

func read(chart string) (templates map[string]string, others files) {
	templates, others = map[string]string{}, files{}
	fail(filepath.Walk(chart, func(full string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(full)
		name, _ := filepath.Rel(chart, full)
		if strings.HasPrefix(name, "templates/") {
			templates[name] = string(data)
		} else if name != "Chart.yaml" && name != "values.yaml" && name != "values.schema.json" {
			others[name] = data
		}
		return err
	}))
	return
}

func load(chart, name string, value interface{}) {
	data, err := os.ReadFile(filepath.Join(chart, name))
	fail(err)
	fail(yaml.Unmarshal(data, value))
}

func world(chart string, q question, others files) map[string]interface{} {
	var about metadata
	values := map[string]interface{}{}
	load(chart, "Chart.yaml", &about)
	load(chart, "values.yaml", &values)
	if q.Values == nil {
		q.Values = map[string]interface{}{}
	}
	return map[string]interface{}{
		"Chart":  about,
		"Values": coalesce(q.Values, values),
		"Files":  others,
		"Release": map[string]interface{}{"Name": q.Name, "Namespace": q.Namespace, "Revision": 1,
			"IsInstall": true, "IsUpgrade": false, "Service": "Helm"},
		"Capabilities": capabilities{KubeVersion: versionOf(q.KubeVersion)},
	}
}

func render(chart string, q question) map[string]string {
	templates, others := read(chart)
	t := template.New("chart").Option("missingkey=zero")
	t.Funcs(functions(t))
	names := []string{}
	for name, text := range templates {
		_, err := t.New(name).Parse(text)
		fail(err)
		names = append(names, name)
	}
	sort.Strings(names)
	rendered := map[string]string{}
	data := world(chart, q, others)
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		var out strings.Builder
		data["Template"] = map[string]interface{}{"Name": name, "BasePath": "templates"}
		fail(t.ExecuteTemplate(&out, name, data))
		rendered[name] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	return rendered
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var q question
	text, err := io.ReadAll(os.Stdin)
	fail(err)
	fail(json.Unmarshal(text, &q))
	fail(json.NewEncoder(os.Stdout).Encode(render(os.Args[1], q)))
}
