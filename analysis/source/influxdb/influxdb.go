// SPDX-License-Identifier: Apache-2.0

package influxdb

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/args"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Query is one metric.
type Query struct {
	// Address of the server.
	Address string
	// Organization of the server.
	Organization string
	// Flux gives one table; its arguments must be names.
	Flux string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// MaxAge is how old the newest row may be.
	MaxAge time.Duration
	// Token is the credential.
	Token source.SecretKey
}

// New makes what measures a Query. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (source.Measurer, error) {
	if err := fetch.First(fetch.CheckAddress(q.Address), fetch.CheckWindow("maxAge", q.MaxAge)); err != nil {
		return nil, err
	}
	if q.Organization == "" {
		return nil, errors.New("organization: missing; give its name")
	}
	flux, err := args.Expand(q.Flux, q.Args, args.Plain)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	body, err := json.Marshal(map[string]any{
		"query": flux, "type": "flux", "dialect": map[string]any{"header": true, "annotations": []string{}},
	})
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return &fetch.Measurer{
		Caller: caller, Secrets: secrets, Address: q.Address, Keys: []source.SecretKey{q.Token},
		Request: func(_ time.Time, tokens []string) (fetch.Request, error) {
			return fetch.Request{
				Method: http.MethodPost, Body: body,
				URL:    strings.TrimRight(q.Address, "/") + "/api/v2/query?" + url.Values{"org": {q.Organization}}.Encode(),
				Header: http.Header{"Authorization": {"Token " + tokens[0]}, "Accept": {"application/csv"}},
			}, nil
		},
		Read: func(answer []byte, at time.Time) (source.Sample, error) {
			tables, err := parse(answer)
			if err != nil {
				return source.Sample{}, err
			}
			return source.Latest(tables, at, q.MaxAge)
		},
	}, nil
}

// parse reads CSV with a header. A second header begins another table, and so does
// another number in the column table; both are several series.
func parse(answer []byte) ([][]source.Point, error) {
	reader := csv.NewReader(bytes.NewReader(answer))
	reader.FieldsPerRecord = -1
	var columns columns
	tables := map[string][]source.Point{}
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, source.Wrong("is not CSV")
		}
		if slices.Contains(row, "_value") && slices.Contains(row, "_time") {
			columns = header(row, columns.tables+1)
			continue
		}
		name, point, err := columns.point(row)
		if err != nil {
			return nil, err
		}
		tables[name] = append(tables[name], point)
	}
	list := make([][]source.Point, 0, len(tables))
	for _, points := range tables {
		list = append(list, points)
	}
	return list, nil
}

// columns are the indices of those that are needed.
type columns struct{ tables, time, value, table int }

func header(row []string, tables int) columns {
	return columns{tables: tables, time: slices.Index(row, "_time"), value: slices.Index(row, "_value"), table: slices.Index(row, "table")}
}

func (c columns) point(row []string) (table string, p source.Point, err error) {
	if c.tables == 0 || len(row) <= max(c.time, c.value, c.table) {
		return "", p, source.Wrong("has no columns _time and _value; end the query so that it keeps them")
	}
	if p.At, err = time.Parse(time.RFC3339Nano, row[c.time]); err != nil {
		return "", p, source.Wrong("has a _time that is not a time")
	}
	table = strconv.Itoa(c.tables)
	if c.table >= 0 {
		table += "/" + row[c.table]
	}
	if row[c.value] == "" { // null
		return table, p, nil
	}
	value, err := strconv.ParseFloat(row[c.value], 64)
	if err != nil {
		return "", p, &source.MissingError{Reason: source.NotANumber, Message: "the answer has a _value that is not a number"}
	}
	p.Value = &value
	return table, p, nil
}
