// SPDX-License-Identifier: Apache-2.0

package cloudwatch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var now = sourcetest.Now

func query(address string) Query {
	return Query{
		Region: "eu-central-1", Address: address, Expression: `SEARCH('{{args.service}}', 'Average')`, Args: map[string]string{"service": "web-canary"},
		Period: time.Minute, Window: 10 * time.Minute,
		AccessKeyID: source.SecretKey{Name: "aws", Key: "accessKeyID"}, SecretAccessKey: source.SecretKey{Name: "aws", Key: "secretAccessKey"},
		SessionToken: source.SecretKey{Name: "aws", Key: "sessionToken"},
	}
}

type object = map[string]any

// series is one result, as the API gives it.
func series(status string, times []time.Time, values ...float64) object {
	stamps := make([]any, 0, len(times))
	for _, t := range times {
		stamps = append(stamps, cbor.Tag{Number: 1, Content: float64(t.Unix())})
	}
	return object{"Id": "q", "Label": sourcetest.Confidential, "StatusCode": status, "Timestamps": stamps, "Values": values}
}

func answers(t *testing.T, code int, body any) http.HandlerFunc {
	t.Helper()
	encoded, err := cbor.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/cbor")
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		w.WriteHeader(code)
		if _, err := w.Write(encoded); err != nil {
			t.Error(err)
		}
	}
}

func TestTheNewestPoint(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	found := object{"MetricDataResults": []object{series("Complete", []time.Time{ago(time.Minute), ago(2 * time.Minute)}, .5, 1)}}
	var called *http.Request
	var body struct {
		MetricDataQueries []struct {
			Expression string
			Period     int
		}
	}
	s, err := conformance(t).Measure(t, func(w http.ResponseWriter, r *http.Request) {
		called = r
		if err := cbor.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answers(t, 200, found)(w, r)
	})
	if err != nil || s.Value != .5 || !s.At.Equal(ago(time.Minute)) {
		t.Errorf("got %+v, %v", s, err)
	}
	signed := called.Header.Get("Authorization")
	if !strings.Contains(signed, "Credential=AKIA/") || !strings.Contains(signed, "/eu-central-1/monitoring/") || called.Header.Get("X-Amz-Security-Token") != "session" ||
		!strings.HasSuffix(called.URL.Path, "/operation/GetMetricData") {
		t.Errorf("called %s %v", called.URL, called.Header)
	}
	if len(body.MetricDataQueries) != 1 || body.MetricDataQueries[0].Expression != "SEARCH('web-canary', 'Average')" || body.MetricDataQueries[0].Period != 60 {
		t.Errorf("called with %+v", body)
	}
}

// conformance is a function, since its answers are encoded.
func conformance(t *testing.T) sourcetest.Conformance[Query] {
	t.Helper()
	one := []time.Time{now}
	return sourcetest.Conformance[Query]{
		New: New, Query: query, Secrets: sourcetest.Secrets{"aws/accessKeyID": "AKIA", "aws/secretAccessKey": "secret", "aws/sessionToken": "session"},
		Answers: map[string]sourcetest.Answer{
			"a refusal":         {Handler: answers(t, 400, object{"__type": "com.amazonaws.cloudwatch#InvalidParameterValueException", "message": sourcetest.Confidential}), Want: source.Rejected},
			"nothing":           {Handler: answers(t, 200, object{}), Want: source.NoData},
			"no points":         {Handler: answers(t, 200, object{"MetricDataResults": []object{series("Complete", nil)}}), Want: source.NoData},
			"two series":        {Handler: answers(t, 200, object{"MetricDataResults": []object{series("Complete", one, 1), series("Complete", one, 1)}}), Want: source.SeveralSeries},
			"partial data":      {Handler: answers(t, 200, object{"MetricDataResults": []object{series("PartialData", one, 1)}}), Want: source.Partial},
			"an internal error": {Handler: answers(t, 200, object{"MetricDataResults": []object{series("InternalError", one, 1)}}), Want: source.Partial},
			"more to come":      {Handler: answers(t, 200, object{"NextToken": sourcetest.Confidential, "MetricDataResults": []object{series("Complete", one, 1)}}), Want: source.Partial},
			"a message":         {Handler: answers(t, 200, object{"Messages": []object{{"Code": "x", "Value": sourcetest.Confidential}}, "MetricDataResults": []object{series("Complete", one, 1)}}), Want: source.Partial},
			"an old point":      {Handler: answers(t, 200, object{"MetricDataResults": []object{series("Complete", []time.Time{now.Add(-time.Hour)}, 1)}}), Want: source.Stale},
			"a missing number":  {Handler: answers(t, 200, object{"MetricDataResults": []object{series("Complete", one)}}), Want: source.Malformed},
			"another type":      {Handler: answers(t, 200, object{"MetricDataResults": sourcetest.Confidential}), Want: source.Malformed},
		},
		Mistakes: map[string]func(*Query){
			"address: ":                      func(q *Query) { q.Address = "aws" },
			"region: missing":                func(q *Query) { q.Region = "" },
			"window: 10s; give 1m to":        func(q *Query) { q.Window = 10 * time.Second },
			"period: 10s; give 1m to":        func(q *Query) { q.Period = 10 * time.Second },
			"period: 1m30s; give a multiple": func(q *Query) { q.Period = 90 * time.Second },
			"period: 1h0m0s; give a":         func(q *Query) { q.Period = time.Hour },
			"expression: there is no":        func(q *Query) { q.Args = nil },
			"expression: argument service":   func(q *Query) { q.Args = map[string]string{"service": "') OR ('"} },
		},
	}
}

func TestConformance(t *testing.T) { conformance(t).Test(t) }
