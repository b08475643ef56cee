// SPDX-License-Identifier: Apache-2.0

// The reader with which kubectl reads manifests.  Reads texts, each behind its length in a line of its
// own.  Answers each with the documents as a list in one line, or with "!" and the error.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The size with which kubectl looks for the brace of JSON.
const lookAhead = 4096

// A document in the numbers of kubectl: 64 bits, or a float.
func canonical(raw []byte) (json.RawMessage, error) {
	var value interface{}
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// As kubectl's StreamVisitor.
func documents(text []byte) ([]json.RawMessage, error) {
	list := []json.RawMessage{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), lookAhead)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			if errors.Is(err, io.EOF) {
				return list, nil
			}
			return nil, err
		}
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		document, err := canonical(raw)
		if err != nil {
			return nil, err
		}
		list = append(list, document)
	}
}

// A text in which kubectl's reader itself fails is an error, too.
func answer(text []byte) (result string) {
	defer func() {
		if r := recover(); r != nil {
			result = fmt.Sprintf("!panic: %v", r)
		}
	}()
	list, err := documents(text)
	if err == nil {
		var out []byte
		if out, err = json.Marshal(list); err == nil {
			return string(out)
		}
	}
	return "!" + strings.ReplaceAll(err.Error(), "\n", " ")
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		size, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
		if err != nil {
			panic(err)
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(in, text); err != nil {
			panic(err)
		}
		fmt.Fprintln(out, answer(text))
	}
}
