// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// page is the state of reading docs/schedule.md: the last example, and what the
// rows of the present table say about it.
type page struct {
	*testing.T
	rollout v1alpha1.Rollout
	freezes []v1alpha1.Freeze
	row     func(p *page, cells []string)
	rows    int
}

// tables are what the rows under a heading are checked by.
var tables = map[string]func(p *page, cells []string){
	"| at | releases | since |":                  (*page).state,
	"| the step before ends | the step begins |": (*page).step,
	"| zone | clocks | a start at | begins |":    (*page).change,
	"| status | reason | the Freeze |":           (*page).inForce,
	// What is made of the state is the planner's, and tested there.
	"| | `Hold` (default) | `Finish` | within an operator's `Freeze` |": func(*page, []string) {},
}

func TestTheExamplesOfThePageAreTrue(t *testing.T) {
	content, err := os.ReadFile("../docs/schedule.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &page{T: t}
	var example []string
	inside := false
	for line := range strings.Lines(string(content)) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "```yaml":
			inside, example = true, nil
		case line == "```" && inside:
			inside = false
			p.read(strings.Join(example, "\n"))
		case inside:
			example = append(example, line)
		case strings.HasPrefix(line, "|"):
			p.table(line)
		default:
			p.row = nil
		}
	}
	if p.rows < 20 {
		t.Errorf("only %d rows were checked: the test looks at the wrong page", p.rows)
	}
}

// read takes an example: a Rollout or a Freeze, strictly.
func (p *page) read(example string) {
	p.Helper()
	p.rollout, p.freezes = v1alpha1.Rollout{}, nil
	if !strings.Contains(example, "kind: Freeze") {
		if err := yaml.UnmarshalStrict([]byte(example), &p.rollout); err != nil {
			p.Fatalf("%v\n%s", err, example)
		}
		return
	}
	f := v1alpha1.Freeze{}
	if err := yaml.UnmarshalStrict([]byte(example), &f); err != nil {
		p.Fatalf("%v\n%s", err, example)
	}
	p.freezes = []v1alpha1.Freeze{f}
}

// table takes a line of a table: its heading, the line below that, or a row.
func (p *page) table(line string) {
	p.Helper()
	if p.row == nil {
		if p.row = tables[line]; p.row == nil {
			p.Fatalf("nothing checks the table %q", line)
		}
		return
	}
	if strings.HasPrefix(line, "| ---") {
		return
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.Trim(cells[i], " `")
	}
	p.rows++
	p.row(p, cells)
}

// time reads a time of the page, whose zone has to be right.
func (p *page) time(c Calendar, text string) time.Time {
	p.Helper()
	at, err := time.ParseInLocation("Mon 2006-01-02 15:04 MST", text, c.place())
	if err != nil {
		p.Fatal(err)
	}
	if at = at.In(c.place()); c.show(at) != text {
		p.Errorf("%q is %q", text, c.show(at))
	}
	return at
}

func (p *page) state(cells []string) {
	p.Helper()
	c := parse(p, p.rollout.Spec.Schedule, p.freezes...)
	got := c.At(p.time(c, cells[0]))
	releases := "wait"
	if got.Open {
		releases = "may go on" + c.until(got.Until, "")
	}
	if releases != cells[1] || got.Reason != cells[2] {
		p.Errorf("at %s: %s: %s\nthe page says %s: %s", cells[0], releases, got.Reason, cells[1], cells[2])
	}
}

func (p *page) step(cells []string) {
	p.Helper()
	c := parse(p, p.rollout.Spec.Schedule)
	steps := p.rollout.Spec.Strategy.Steps
	got, ok, err := c.Next(steps[len(steps)-1].At, p.time(c, cells[0]))
	if err != nil || !ok || c.show(got) != cells[1] {
		p.Errorf("after %s: got %s (%v, %v), the page says %s", cells[0], c.show(got), ok, err, cells[1])
	}
}

func (p *page) change(cells []string) {
	p.Helper()
	c := parse(p, windows(cells[0]))
	start, err := time.Parse("Mon 2006-01-02 15:04", cells[2])
	if err != nil {
		p.Fatal(err)
	}
	expr := fmt.Sprintf("%d %d %d %d *", start.Minute(), start.Hour(), start.Day(), start.Month())
	begins, _, _ := strings.Cut(cells[3], ",")
	got, ok, err := c.Next(v1alpha1.CronExpression(expr), start.Add(-48*time.Hour))
	if err != nil || !ok || c.show(got) != begins {
		p.Errorf("%s in %s: got %s (%v, %v), the page says %s", cells[2], cells[0], c.show(got), ok, err, begins)
	}
}

// inForce compares a reason with what the status of a Freeze with it is.
func (p *page) inForce(cells []string) {
	p.Helper()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	earlier, later := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(time.Hour))
	for _, spec := range []v1alpha1.FreezeSpec{{}, {Until: &earlier}, {From: &later}, {From: &later, Until: &earlier}} {
		c := FreezeStatus(&v1alpha1.Freeze{Spec: spec}, now).Conditions[0]
		if cells[1] == c.Reason {
			if cells[0] != string(c.Status) {
				p.Errorf("the page says %s with the reason %s, and the status %s", cells[0], c.Reason, c.Status)
			}
			return
		}
	}
	p.Errorf("no Freeze has the reason %s", cells[1])
}
