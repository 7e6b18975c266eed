// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	cdevents "github.com/cdevents/sdk-go/pkg/api"
	cdeventsv05 "github.com/cdevents/sdk-go/pkg/api/v05"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/config/golden"
)

var (
	website = Rollout{Namespace: "shop", Name: "website", UID: "8d6f7c1e-2b7a-4f0e-9f4a-0c3f1d1f6a55", Service: "website"}
	at      = metav1.NewMicroTime(time.Date(2026, 3, 29, 3, 30, 0, 123456000, time.FixedZone("CEST", 7200)))

	kinds = []v1alpha1.NotificationKind{
		v1alpha1.NotifyStarted, v1alpha1.NotifyStepProgrammed, v1alpha1.NotifyWaiting,
		v1alpha1.NotifyPromoted, v1alpha1.NotifyRolledBack, v1alpha1.NotifySuperseded,
	}
	formats = []v1alpha1.NotificationFormat{v1alpha1.FormatCloudEvents, v1alpha1.FormatCDEvents, v1alpha1.FormatSlack}
)

func notification(kind v1alpha1.NotificationKind) v1alpha1.PendingNotification {
	return v1alpha1.PendingNotification{
		ID: "chat-6c8f9d7b5-" + strings.ToLower(string(kind)), Name: "chat", Kind: kind, Revision: "6c8f9d7b5",
		Step: "2/3", Weight: 50, Message: "the canary fails no more often than stable", Time: at,
	}
}

// checkJSON compares JSON, indented for the reader, with a file.
func checkJSON(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatalf("%v:\n%s", err, body)
	}
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	golden.Check(t, file, got.String())
}

func TestNotificationsLookLikeThis(t *testing.T) {
	for _, format := range formats {
		for _, kind := range kinds {
			name := strings.ToLower(string(format) + "-" + string(kind))
			t.Run(name, func(t *testing.T) {
				p, err := Notification(website, notification(kind), format)
				if err != nil {
					t.Fatal(err)
				}
				checkJSON(t, name, p.Body)
			})
		}
	}
}

func TestQuestionsLookLikeThis(t *testing.T) {
	step := &Step{Index: 1, Of: 3, Weight: 50}
	for name, q := range map[string]Question{
		"hook-beforerelease":   {ID: "tests-6c8f9d7b5", Hook: "tests", When: v1alpha1.HookBeforeRelease, Revision: "6c8f9d7b5"},
		"hook-beforestep":      {ID: "tests-6c8f9d7b5-1", Hook: "tests", When: v1alpha1.HookBeforeStep, Revision: "6c8f9d7b5", Step: step},
		"hook-gate":            {ID: "approval-6c8f9d7b5-1", Hook: "approval", When: v1alpha1.HookGate, Revision: "6c8f9d7b5", Step: step},
		"hook-beforepromotion": {ID: "tests-6c8f9d7b5", Hook: "tests", When: v1alpha1.HookBeforePromotion, Revision: "6c8f9d7b5"},
		"hook-afterrelease": {
			ID: "tidy-6c8f9d7b5", Hook: "tidy", When: v1alpha1.HookAfterRelease, Revision: "6c8f9d7b5",
			Outcome: "RolledBack", Message: "the canary fails 5.0 pp more often than stable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Hook(website, q)
			if err != nil {
				t.Fatal(err)
			}
			checkJSON(t, name, p.Body)
		})
	}
}

func TestContentTypes(t *testing.T) {
	for format, want := range map[v1alpha1.NotificationFormat]string{
		"":                         "application/cloudevents+json; charset=utf-8",
		v1alpha1.FormatCloudEvents: "application/cloudevents+json; charset=utf-8",
		v1alpha1.FormatCDEvents:    "application/cloudevents+json; charset=utf-8",
		v1alpha1.FormatSlack:       "application/json; charset=utf-8",
	} {
		p, err := Notification(website, notification(v1alpha1.NotifyStarted), format)
		if err != nil {
			t.Fatal(err)
		}
		if p.ContentType != want {
			t.Errorf("%q is %q", format, p.ContentType)
		}
	}
	if p, err := Hook(website, Question{}); err != nil || p.ContentType != "application/json; charset=utf-8" {
		t.Errorf("a hook's is %q, %v", p.ContentType, err)
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	_, err := Notification(website, notification(v1alpha1.NotifyStarted), "Morse")
	if err == nil || !strings.Contains(err.Error(), "CloudEvents, CDEvents or Slack") {
		t.Errorf("got %v", err)
	}
}

// What the specification's own library takes for valid is valid.
func checkCloudEvent(t *testing.T, body []byte, n v1alpha1.PendingNotification) cloudevents.Event {
	t.Helper()
	var e cloudevents.Event
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("%v:\n%s", err, body)
	}
	if err := e.Validate(); err != nil {
		t.Fatalf("%v:\n%s", err, body)
	}
	if e.ID() != n.ID || !e.Time().Equal(n.Time.Time) {
		t.Errorf("id %q at %v", e.ID(), e.Time())
	}
	return e
}

func checkCDEvent(t *testing.T, e cloudevents.Event) {
	t.Helper()
	c, err := cdeventsv05.NewFromJsonBytes(e.Data())
	if err != nil {
		t.Fatalf("%v:\n%s", err, e.Data())
	}
	if err := cdevents.Validate(c); err != nil {
		t.Fatalf("%v:\n%s", err, e.Data())
	}
	if c.GetId() != e.ID() || c.GetSource() != e.Source() || c.GetSubjectId() != e.Subject() || !c.GetTimestamp().Equal(e.Time()) {
		t.Errorf("the CloudEvent around it is about something else: %s", e)
	}
}

func TestEventsAreValidByTheSpecificationsOwnLibraries(t *testing.T) {
	for _, kind := range kinds {
		n := notification(kind)
		p, err := Notification(website, n, v1alpha1.FormatCDEvents)
		if err != nil {
			t.Fatal(err)
		}
		checkCDEvent(t, checkCloudEvent(t, p.Body, n))
		if p, err = Notification(website, n, v1alpha1.FormatCloudEvents); err != nil {
			t.Fatal(err)
		}
		checkCloudEvent(t, p.Body, n)
	}
}

func TestTheSameEventIsAlwaysTheSameBytes(t *testing.T) {
	for _, format := range formats {
		local, utc := notification(v1alpha1.NotifyPromoted), notification(v1alpha1.NotifyPromoted)
		utc.Time = metav1.NewMicroTime(at.UTC()) // as another process reads it
		a, errA := Notification(website, local, format)
		b, errB := Notification(website, utc, format)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if diff := cmp.Diff(string(a.Body), string(b.Body)); diff != "" {
			t.Errorf("%s:\n%s", format, diff)
		}
	}
}

func TestTextsForChats(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain text stays":                       {"rolled back: 5 % fail", "rolled back: 5 % fail"},
		"what Slack gives a meaning is escaped":  {"a<b && c>d", "a&lt;b &amp;&amp; c&gt;d"},
		"what is escaped is escaped once more":   {"&lt;", "&amp;lt;"},
		"no user is mentioned in Slack":          {"<!channel> <@U123>", "&lt;!channel&gt; &lt;@\u200bU123&gt;"},
		"no user is mentioned in other chats":    {"@channel @all", "@\u200bchannel @\u200ball"},
		"links do not hide where they lead":      {"[ok](http://x)", "[ok]\u200b(http://x)"},
		"a message is one line":                  {"a\n\n\tb\r\nc", "a b c"},
		"control characters are left out":        {"a\x00\x1b[31mb", "a[31mb"},
		"the direction of writing can't change":  {"a\u202egpj", "agpj"},
		"what is no text is shown as such":       {"a\xffb", "a\uFFFDb"},
		"what is too long ends with an ellipsis": {strings.Repeat("x", 60), strings.Repeat("x", 49) + "…"},
		"no escape is cut in two":                {strings.Repeat("x", 47) + "&&", strings.Repeat("x", 47) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, chatText(test.text, 50)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNamesInURIsAreEscaped(t *testing.T) {
	if got := escape("a/b?c d.e-f_g~é"); got != "a%2Fb%3Fc%20d.e-f_g~%C3%A9" {
		t.Error(got)
	}
}

// checkChat fails when a text could mention a user or be taken for markup.
func checkChat(t *testing.T, text string, limit int) {
	t.Helper()
	if units := len(utf16.Encode([]rune(text))); units > limit {
		t.Errorf("%d units: %q", units, text)
	}
	if strings.ContainsAny(text, "<>\n\r\x00\x1b") {
		t.Errorf("not escaped: %q", text)
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "@")
		if !found {
			break
		}
		if !strings.HasPrefix(after, invisible) {
			t.Errorf("a mention: %q", text)
		}
		rest = after
	}
	unescaped := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(text)
	if strings.Contains(unescaped, "&") {
		t.Errorf("an ampersand is not escaped: %q", text)
	}
}

func FuzzRenderers(f *testing.F) {
	f.Add("website", "6c8f9d7b5", "2/3", "fine", int32(50), uint8(0))
	f.Add("a/b?c", "<!here>", "@all", "\xff<@U1>\u202e&lt;[a](javascript:x)\n\"}", int32(-1), uint8(4))
	f.Add("", "", "", strings.Repeat("&", 5000), int32(0), uint8(9))
	f.Fuzz(func(t *testing.T, name, revision, step, message string, weight int32, kind uint8) {
		ro := Rollout{Namespace: "a" + name, Name: "b" + name, UID: types.UID(name), Service: "c" + name} // never empty
		n := notification(kinds[int(kind)%len(kinds)])
		n.Revision, n.Step, n.Message, n.Weight = "d"+revision, step, message, weight
		for _, format := range formats {
			p, err := Notification(ro, n, format)
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if !json.Valid(p.Body) {
				t.Fatalf("%s: no JSON: %s", format, p.Body)
			}
			checkRendered(t, format, p.Body, n)
		}
		p, err := Hook(ro, Question{ID: name, Hook: name, Revision: revision, Outcome: step, Message: message})
		if err != nil || !json.Valid(p.Body) {
			t.Fatalf("no JSON: %v %s", err, p.Body)
		}
	})
}

func checkRendered(t *testing.T, format v1alpha1.NotificationFormat, body []byte, n v1alpha1.PendingNotification) {
	t.Helper()
	if format != v1alpha1.FormatSlack {
		if e := checkCloudEvent(t, body, n); format == v1alpha1.FormatCDEvents {
			checkCDEvent(t, e)
		}
		return
	}
	var m slackMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	checkChat(t, m.Text, maxText)
	for _, b := range m.Blocks {
		texts := b.Elements
		if b.Text != nil {
			texts = append(texts, *b.Text)
		}
		for _, text := range texts {
			limit := maxText
			if b.Type == "header" {
				limit = maxHeader
			}
			checkChat(t, text.Text, limit)
			if text.Type != "plain_text" || text.Text == "" {
				t.Errorf("block %s: %+v", b.Type, text)
			}
		}
	}
}
