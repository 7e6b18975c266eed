// SPDX-License-Identifier: Apache-2.0

package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	cw "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/args"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// Query is one metric.
type Query struct {
	// Region, such as eu-central-1.
	Region string
	// Address of the API; "" for the region's own.
	Address string
	// Expression that gives one series; its arguments must be names.
	Expression string
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// Period of a point, a multiple of a minute.
	Period time.Duration
	// Window is how far back the expression looks, and how old its newest point may be.
	Window time.Duration
	// AccessKeyID and the others are the credentials. The session token may be zero.
	AccessKeyID, SecretAccessKey, SessionToken source.SecretKey
}

// measurer measures one Query.
type measurer struct {
	caller  *fetch.Caller
	secrets source.Secrets
	query   Query
	// seconds of a period.
	seconds int32
}

// New makes what measures a Query. Its error names the field of the Query and the fix.
func New(caller *fetch.Caller, secrets source.Secrets, q Query) (source.Measurer, error) {
	checks := []error{fetch.CheckWindow("window", q.Window), fetch.CheckWindow("period", q.Period)}
	if q.Address != "" {
		checks = append(checks, fetch.CheckAddress(q.Address))
	}
	if err := fetch.First(checks...); err != nil {
		return nil, err
	}
	switch {
	case q.Region == "":
		return nil, errors.New("region: missing; give one such as eu-central-1")
	case q.Period%time.Minute != 0 || q.Period > q.Window:
		return nil, fmt.Errorf("period: %s; give a multiple of 1m, at most the window", q.Period)
	}
	var err error
	if q.Expression, err = args.Expand(q.Expression, q.Args, args.Plain); err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	if q.Address == "" {
		if q.Address, err = regional(q.Region); err != nil {
			return nil, err
		}
	}
	// The period is at most six hours.
	return &measurer{caller: caller, secrets: secrets, query: q, seconds: int32(q.Period / time.Second)}, nil //nolint:gosec // it is bounded
}

// regional is the address of a region's own API.
func regional(region string) (string, error) {
	endpoint, err := cw.NewDefaultEndpointResolverV2().ResolveEndpoint(context.Background(), cw.EndpointParameters{Region: aws.String(region)}) //nolint:forbidigo // the library looks it up in its own table
	if err != nil {
		return "", fmt.Errorf("region: %q has no known address; correct it, or give address", region)
	}
	return endpoint.URI.String(), nil
}

// Measure asks the API.
func (m *measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := m.caller.Limit(ctx)
	defer cancel()
	keys, err := source.ReadAll(ctx, m.secrets, m.query.Address, m.query.AccessKeyID, m.query.SecretAccessKey, m.query.SessionToken)
	if err != nil {
		return source.Sample{}, err
	}
	client, done := m.caller.Client()
	defer done()
	got, err := m.api(client, aws.Credentials{AccessKeyID: keys[0], SecretAccessKey: keys[1], SessionToken: keys[2]}).GetMetricData(ctx, &cw.GetMetricDataInput{
		StartTime: aws.Time(at.Add(-m.query.Window)), EndTime: aws.Time(at), ScanBy: types.ScanByTimestampDescending,
		MetricDataQueries: []types.MetricDataQuery{{
			Id: aws.String("q"), Expression: aws.String(m.query.Expression), Period: aws.Int32(m.seconds),
		}},
	})
	if err != nil {
		return source.Sample{}, m.missing(err)
	}
	return m.sample(got, at)
}

func (m *measurer) sample(got *cw.GetMetricDataOutput, at time.Time) (source.Sample, error) {
	if got.NextToken != nil || len(got.Messages) > 0 {
		return source.Sample{}, incomplete()
	}
	series := make([][]source.Point, len(got.MetricDataResults))
	for i, result := range got.MetricDataResults {
		if result.StatusCode != types.StatusCodeComplete || len(result.Messages) > 0 {
			return source.Sample{}, incomplete()
		}
		if len(result.Timestamps) != len(result.Values) {
			return source.Sample{}, source.Wrong("has times without numbers")
		}
		for j := range result.Values {
			series[i] = append(series[i], source.Point{At: result.Timestamps[j], Value: &result.Values[j]})
		}
	}
	return source.Latest(series, at, m.query.Window)
}

func incomplete() error {
	return &source.MissingError{Reason: source.Partial, Message: "CloudWatch says that its answer is incomplete; shorten the window or simplify the expression"}
}

// api goes through the safe transport, tries once, since the next measurement is the
// next try, and asks no other source for credentials or a region.
func (m *measurer) api(client *http.Client, credentials aws.Credentials) *cw.Client {
	return cw.New(cw.Options{
		Region: m.query.Region, BaseEndpoint: aws.String(m.query.Address), HTTPClient: client, Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 }),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil }),
	})
}

// missing leaves out what the API said.
func (m *measurer) missing(err error) error {
	if errors.Is(err, egress.ErrTooLong) {
		return m.caller.Missing(err)
	}
	// Without an answer the status is 0.
	var status *smithyhttp.ResponseError
	if errors.As(err, &status) && status.HTTPStatusCode() != 0 {
		if err := fetch.Status(status.HTTPStatusCode()); err != nil {
			return err
		}
	}
	if _, ok := errors.AsType[smithy.APIError](err); ok {
		return fetch.Status(http.StatusBadRequest)
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return source.Wrong("is not in the format of CloudWatch")
	}
	return m.caller.Missing(err)
}
