// SPDX-License-Identifier: Apache-2.0

// What Kubernetes and container runtimes say of texts: names, keys, quantities, times, durations, versions and
// references of images.  Reads texts, each behind its length in a line of its own, and answers each with one
// line of JSON, which has a member for each grammar that accepts it.  With the argument --literals it prints
// the texts in the tests of these packages instead, each as JSON behind the package and a tab.
package main

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
)

// The tests of these packages are put into the folder `tests` before the build.
//
//oracle:tests k8s.io/apimachinery/pkg/api/resource
//oracle:tests k8s.io/apimachinery/pkg/api/validate/content
//oracle:tests k8s.io/apimachinery/pkg/api/validation
//oracle:tests k8s.io/apimachinery/pkg/apis/meta/v1
//oracle:tests k8s.io/apimachinery/pkg/apis/meta/v1/validation
//oracle:tests k8s.io/apimachinery/pkg/labels
//oracle:tests k8s.io/apimachinery/pkg/util/intstr
//oracle:tests k8s.io/apimachinery/pkg/util/validation
//oracle:tests k8s.io/apimachinery/pkg/util/version
//oracle:tests github.com/distribution/reference
//go:embed tests
var tests embed.FS

// --- the texts of their tests

const longest = 5000 // bytes of a text

// The text of an expression of constants; false if it is none.
func fold(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return fold(e.X)
	case *ast.BinaryExpr:
		left, leftOK := fold(e.X)
		right, rightOK := fold(e.Y)
		return left + right, leftOK && rightOK && e.Op == token.ADD
	case *ast.CallExpr:
		return foldRepeat(e)
	}
	return "", false
}

// strings.Repeat("a", 63)
func foldRepeat(call *ast.CallExpr) (string, bool) {
	name, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || name.Sel.Name != "Repeat" || len(call.Args) != 2 {
		return "", false
	}
	text, ok := fold(call.Args[0])
	count, isLiteral := call.Args[1].(*ast.BasicLit)
	if !ok || !isLiteral {
		return "", false
	}
	times, err := strconv.Atoi(count.Value)
	if err != nil || len(text)*times > longest {
		return "", false
	}
	return strings.Repeat(text, times), true
}

// The texts of a file: the largest expressions of constants, and those of which they consist.
func literals(name string, see func(string)) error {
	source, err := tests.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := fold(e); ok && len(text) <= longest && utf8.ValidString(text) {
				see(text)
			}
		}
		return true
	})
	return nil
}

func printLiterals(out *bufio.Writer) error {
	return fs.WalkDir(tests, "tests", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		home := strings.TrimPrefix(path.Dir(name), "tests/")
		return literals(name, func(text string) {
			encoded, _ := json.Marshal(text) // a valid text always has one
			fmt.Fprintf(out, "%s\t%s\n", home, encoded)
		})
	})
}

// --- the verdicts

// An exponent of more digits takes the library minutes.
var hugeExponent = regexp.MustCompile(`[eE][-+]?0*[1-9][0-9]{3,}$`)

// What is left after it was read and written twice, as an API server does with an object that is changed.
func canonical(q resource.Quantity) (string, error) {
	for range 2 {
		written, err := json.Marshal(q)
		if err != nil {
			return "", err
		}
		q = resource.Quantity{}
		if err := json.Unmarshal(written, &q); err != nil {
			return "", err
		}
	}
	return q.String(), nil
}

// In units of 10^-9.
func nano(q resource.Quantity) string {
	value := q.AsDec()
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(9-value.Scale())), nil)
	return new(big.Int).Mul(value.UnscaledBig(), power).String()
}

func judgeQuantity(text string, verdict map[string]any) {
	if hugeExponent.MatchString(text) {
		return
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return
	}
	if written, err := canonical(quantity); err == nil {
		verdict["quantity"] = []string{nano(quantity), written}
	}
}

// Domain, path and tag as a container runtime completes them, and whether there is a digest.
func judgeImage(text string, verdict map[string]any) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return
	}
	tag := ""
	if tagged, ok := named.(reference.Tagged); ok {
		tag = tagged.Tag()
	}
	_, pinned := named.(reference.Digested)
	verdict["image"] = []any{reference.Domain(named), reference.Path(named), tag, pinned}
}

func judgeTimes(text string, verdict map[string]any) {
	quoted, _ := json.Marshal(text)
	var t metav1.Time
	if err := t.UnmarshalJSON(quoted); err == nil {
		verdict["time"] = strconv.FormatInt(t.UnixMicro(), 10)
	}
	var d metav1.Duration
	if err := d.UnmarshalJSON(quoted); err == nil {
		verdict["duration"] = strconv.FormatInt(d.Nanoseconds(), 10)
	}
}

// The part of 97 pods that this percentage is, rounded up and down.
func judgePercent(text string, verdict map[string]any) {
	if len(utilvalidation.IsValidPercent(text)) > 0 {
		return
	}
	value := intstr.FromString(text)
	up, err := intstr.GetScaledValueFromIntOrPercent(&value, 97, true)
	down, errDown := intstr.GetScaledValueFromIntOrPercent(&value, 97, false)
	if err == nil && errDown == nil {
		verdict["percent"] = []int{up, down}
	}
}

var grammars = map[string]func(string) []string{
	"dns1123Label":     content.IsDNS1123Label,
	"dns1123Subdomain": content.IsDNS1123Subdomain,
	"dns1035Label":     utilvalidation.IsDNS1035Label,
	"labelKey":         content.IsLabelKey,
	"labelValue":       content.IsLabelValue,
	"envName":          utilvalidation.IsEnvVarName,
	"dataKey":          utilvalidation.IsConfigMapKey,
	"host": func(text string) []string {
		if strings.HasPrefix(text, "*") {
			return utilvalidation.IsWildcardDNS1123Subdomain(text)
		}
		return content.IsDNS1123Subdomain(text)
	},
}

func judge(text string) map[string]any {
	verdict := map[string]any{}
	for name, complain := range grammars {
		if len(complain(text)) == 0 {
			verdict[name] = true
		}
	}
	if v, err := version.ParseSemantic(text); err == nil {
		verdict["version"] = v.String()
	}
	judgeQuantity(text, verdict)
	judgeImage(text, verdict)
	judgeTimes(text, verdict)
	judgePercent(text, verdict)
	return verdict
}

func answerAll(in *bufio.Reader, out *bufio.Writer) error {
	encoder := json.NewEncoder(out)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		size, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return err
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		if err := encoder.Encode(judge(string(text))); err != nil {
			return err
		}
	}
}

func main() {
	var err error
	out := bufio.NewWriter(os.Stdout)
	if len(os.Args) > 1 && os.Args[1] == "--literals" {
		err = printLiterals(out)
	} else {
		err = answerAll(bufio.NewReader(os.Stdin), out)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "literals:", err)
		os.Exit(1)
	}
}
