// SPDX-License-Identifier: Apache-2.0

// What an API server says about definitions that are created: it reads one definition in JSON a line,
// defaults, converts and validates it as the server of this version does, with the estimated cost of
// its rules.  It answers each with one line, a list of errors in JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func main() {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(
		apiextensions.SchemeGroupVersion)
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot read a definition:", err)
			os.Exit(1)
		}
		if err := out.Encode(errorsOf(decoder, line)); err != nil {
			fmt.Fprintln(os.Stderr, "cannot write an answer:", err)
			os.Exit(1)
		}
	}
}

func errorsOf(decoder runtime.Decoder, definition []byte) []string {
	said := []string{}
	decoded, err := runtime.Decode(decoder, definition)
	if err != nil {
		return append(said, err.Error())
	}
	crd, ok := decoded.(*apiextensions.CustomResourceDefinition)
	if !ok {
		return append(said, "not a CustomResourceDefinition")
	}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), crd) {
		said = append(said, err.Error())
	}
	return said
}
