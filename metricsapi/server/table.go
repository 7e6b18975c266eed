// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// unknown stands for an unknown number.
const unknown = "-"

// tables turn answers into the tables of kubectl get.
type tables struct {
	// of are the columns behind the name and before the numbers.
	of []column
}

// column is one column of a table.
type column struct {
	metav1.TableColumnDefinition
	cell func(*metricsv1.TrafficMetrics) any
}

func textColumn(name, description string, cell func(*metricsv1.TrafficMetrics) any) column {
	return column{metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}, cell}
}

// backendColumns name the backend of each entry of a TrafficSplit.
var backendColumns = []column{
	textColumn("Backend", "The Service that gets the share", func(m *metricsv1.TrafficMetrics) any {
		if m.Backend == nil {
			return unknown
		}
		return m.Backend.Name
	}),
	textColumn("Weight", "The share of the backend, relative to the sum of all", func(m *metricsv1.TrafficMetrics) any {
		if m.Backend == nil {
			return unknown
		}
		return strconv.Itoa(int(m.Backend.Weight))
	}),
}

// edgeColumns name the two ends of each edge of a resource.
var edgeColumns = []column{
	textColumn("Direction", "to: the resource sends the requests; from: it receives them", func(m *metricsv1.TrafficMetrics) any { return string(m.Edge.Direction) }),
	textColumn("Side", "Where the requests were counted", func(m *metricsv1.TrafficMetrics) any { return string(m.Edge.Side) }),
	textColumn("Resource", "The other end", otherEnd),
}

// numberColumns are in every table.
var numberColumns = []column{
	textColumn("Success", "The share of the requests that succeeded", success),
	textColumn("RPS", "Requests per second", rate),
	textColumn("P50", "Half of the requests were answered within this time", latency(metricsv1.MetricP50Latency)),
	textColumn("P90", "90% of the requests were answered within this time", latency(metricsv1.MetricP90Latency)),
	textColumn("P99", "99% of the requests were answered within this time", latency(metricsv1.MetricP99Latency)),
}

// ConvertToTable returns the table of a TrafficMetrics or of a list of them.
func (t tables) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	columns := []column{{
		metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "The resource that sends or receives the requests"},
		func(m *metricsv1.TrafficMetrics) any { return m.Name },
	}}
	columns = append(append(columns, t.of...), numberColumns...)
	var items []metricsv1.TrafficMetrics
	switch o := object.(type) {
	case *metricsv1.TrafficMetricsList:
		items, table.ListMeta = o.Items, o.ListMeta
	case *metricsv1.TrafficMetrics:
		items = []metricsv1.TrafficMetrics{*o}
	default:
		return nil, fmt.Errorf("a %T has no table", object)
	}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		for _, c := range columns {
			table.ColumnDefinitions = append(table.ColumnDefinitions, c.TableColumnDefinition)
		}
	}
	table.Rows = make([]metav1.TableRow, 0, len(items))
	for i := range items {
		row := metav1.TableRow{Object: runtime.RawExtension{Object: &items[i]}}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.cell(&items[i]))
		}
		table.Rows = append(table.Rows, row)
	}
	return table, nil
}

// otherEnd is the other end of an edge, such as Deployment/shop/web.
func otherEnd(m *metricsv1.TrafficMetrics) any {
	other := m.Edge.Resource
	if other == nil || other.Name == "" {
		return unknown
	}
	if other.Namespace == "" {
		return other.Kind + "/" + other.Name
	}
	return other.Kind + "/" + other.Namespace + "/" + other.Name
}

// success is the share of requests that succeeded, such as 99.50%.
func success(m *metricsv1.TrafficMetrics) any {
	good, bad, known := counts(m)
	if !known || good+bad <= 0 {
		return unknown
	}
	return strconv.FormatFloat(100*good/(good+bad), 'f', 2, 64) + "%"
}

// rate is the number of requests per second, such as 1.8.
func rate(m *metricsv1.TrafficMetrics) any {
	good, bad, known := counts(m)
	if !known || m.Window.Duration <= 0 {
		return unknown
	}
	return strconv.FormatFloat((good+bad)/m.Window.Seconds(), 'f', 1, 64)
}

// latency is one of the latencies, such as 12ms.
func latency(name string) func(*metricsv1.TrafficMetrics) any {
	return func(m *metricsv1.TrafficMetrics) any {
		seconds, known := value(m, name)
		if !known {
			return unknown
		}
		d := time.Duration(seconds * float64(time.Second))
		if d < time.Millisecond {
			return d.Round(time.Microsecond).String()
		}
		return d.Round(time.Millisecond).String()
	}
}

// counts are the numbers of requests; known is false when one of them is not.
func counts(m *metricsv1.TrafficMetrics) (good, bad float64, known bool) {
	good, succeeded := value(m, metricsv1.MetricSuccessCount)
	bad, failed := value(m, metricsv1.MetricFailureCount)
	return good, bad, succeeded && failed
}

// value of a metric.
func value(m *metricsv1.TrafficMetrics, name string) (float64, bool) {
	for i := range m.Metrics {
		if m.Metrics[i].Name == name {
			return m.Metrics[i].Value.AsApproximateFloat64(), true
		}
	}
	return 0, false
}
