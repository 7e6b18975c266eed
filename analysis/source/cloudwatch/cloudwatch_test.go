// SPDX-License-Identifier: Apache-2.0

package cloudwatch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
)

var (
	now     = sourcetest.Now
	secrets = sourcetest.Secrets{"aws/accessKeyID": "AKIA", "aws/secretAccessKey": "secret", "aws/sessionToken": "session"}
)

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
	var asked *http.Request
	var body struct {
		MetricDataQueries []struct {
			Expression string
			Period     int
		}
	}
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		if err := cbor.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answers(t, 200, found)(w, r)
	})
	m, err := New(sourcetest.Caller(5*time.Second), secrets, query(address))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	if err != nil || s.Value != .5 || !s.At.Equal(ago(time.Minute)) {
		t.Errorf("got %+v, %v", s, err)
	}
	signed := asked.Header.Get("Authorization")
	if !strings.Contains(signed, "Credential=AKIA/") || !strings.Contains(signed, "/eu-central-1/monitoring/") || asked.Header.Get("X-Amz-Security-Token") != "session" ||
		!strings.HasSuffix(asked.URL.Path, "/operation/GetMetricData") {
		t.Errorf("asked %s %v", asked.URL, asked.Header)
	}
	if len(body.MetricDataQueries) != 1 || body.MetricDataQueries[0].Expression != "SEARCH('web-canary', 'Average')" || body.MetricDataQueries[0].Period != 60 {
		t.Errorf("asked for %+v", body)
	}
}

func TestAnswersWithoutANumber(t *testing.T) {
	one := []time.Time{now}
	for name, test := range map[string]struct {
		body any
		want source.Reason
	}{
		"nothing":           {object{}, source.NoData},
		"no points":         {object{"MetricDataResults": []object{series("Complete", nil)}}, source.NoData},
		"two series":        {object{"MetricDataResults": []object{series("Complete", one, 1), series("Complete", one, 1)}}, source.SeveralSeries},
		"partial data":      {object{"MetricDataResults": []object{series("PartialData", one, 1)}}, source.Partial},
		"an internal error": {object{"MetricDataResults": []object{series("InternalError", one, 1)}}, source.Partial},
		"more to come":      {object{"NextToken": sourcetest.Confidential, "MetricDataResults": []object{series("Complete", one, 1)}}, source.Partial},
		"a message":         {object{"Messages": []object{{"Code": "x", "Value": sourcetest.Confidential}}, "MetricDataResults": []object{series("Complete", one, 1)}}, source.Partial},
		"an old point":      {object{"MetricDataResults": []object{series("Complete", []time.Time{now.Add(-time.Hour)}, 1)}}, source.Stale},
		"a missing number":  {object{"MetricDataResults": []object{series("Complete", one)}}, source.Malformed},
		"another type":      {object{"MetricDataResults": sourcetest.Confidential}, source.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(sourcetest.Caller(5*time.Second), secrets, query(sourcetest.Serve(t, answers(t, 200, test.body))))
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.Measure(t.Context(), now)
			sourcetest.WantMissing(t, s, err, test.want)
		})
	}
}

func TestARefusalOfTheAPI(t *testing.T) {
	body := object{"__type": "com.amazonaws.cloudwatch#InvalidParameterValueException", "message": sourcetest.Confidential}
	m, err := New(sourcetest.Caller(5*time.Second), secrets, query(sourcetest.Serve(t, answers(t, 400, body))))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Measure(t.Context(), now)
	sourcetest.WantMissing(t, s, err, source.Rejected)
}

func TestAServerThatFails(t *testing.T) {
	sourcetest.Failures(t, func(t *testing.T, caller *fetch.Caller, address string) source.Measurer {
		t.Helper()
		m, err := New(caller, secrets, query(address))
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}

func TestWithoutACredentialNothingIsAsked(t *testing.T) {
	for _, lacking := range []sourcetest.Secrets{{}, {"aws/accessKeyID": "AKIA"}, {"aws/accessKeyID": "AKIA", "aws/secretAccessKey": "secret"}} {
		m, err := New(sourcetest.Caller(time.Second), lacking, query(sourcetest.Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") })))
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Measure(t.Context(), now)
		sourcetest.WantMissing(t, s, err, source.Credentials)
	}
}

func TestMistakesNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Query){
		"address: ":                      func(q *Query) { q.Address = "aws" },
		"region: missing":                func(q *Query) { q.Region = "" },
		"window: 10s; give 1m to":        func(q *Query) { q.Window = 10 * time.Second },
		"period: 10s; give 1m to":        func(q *Query) { q.Period = 10 * time.Second },
		"period: 1m30s; give a multiple": func(q *Query) { q.Period = 90 * time.Second },
		"period: 1h0m0s; give a":         func(q *Query) { q.Period = time.Hour },
		"expression: there is no":        func(q *Query) { q.Args = nil },
		"expression: argument service":   func(q *Query) { q.Args = map[string]string{"service": "') OR ('"} },
	} {
		q := query("")
		change(&q)
		if _, err := New(sourcetest.Caller(time.Second), secrets, q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
