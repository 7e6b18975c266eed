// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/resolve"
)

func TestStickyCookie(t *testing.T) {
	for name, test := range map[string]struct {
		cookie splitv1.StickyCookie
		want   *traffic.Sticky
		says   string
	}{
		"for the client's session":     {cookie: splitv1.StickyCookie{Name: "version"}, want: &traffic.Sticky{Cookie: "version"}},
		"for an hour and a half":       {cookie: splitv1.StickyCookie{Name: "Shop_v2", MaxAge: "1h30m"}, want: &traffic.Sticky{Cookie: "Shop_v2", MaxAge: 5400}},
		"no name":                      {cookie: splitv1.StickyCookie{Name: "", MaxAge: "1h"}, says: "is not the name of a cookie"},
		"nothing":                      {cookie: splitv1.StickyCookie{Name: ""}, says: "is not the name of a cookie"},
		"a name that ends the header":  {cookie: splitv1.StickyCookie{Name: "a;b"}, says: "is not the name of a cookie"},
		"a name with a variable":       {cookie: splitv1.StickyCookie{Name: "a$host"}, says: "is not the name of a cookie"},
		"a name that nginx can't know": {cookie: splitv1.StickyCookie{Name: "a-b"}, says: "is not the name of a cookie"},
		"a name with a new line":       {cookie: splitv1.StickyCookie{Name: "a\nb"}, says: "is not the name of a cookie"},
		"a name that is too long":      {cookie: splitv1.StickyCookie{Name: strings.Repeat("a", 65)}, says: "is not the name of a cookie"},
		"an age that is none":          {cookie: splitv1.StickyCookie{Name: "a", MaxAge: "soon"}, says: "is not the age of a cookie"},
		"an age below a second":        {cookie: splitv1.StickyCookie{Name: "a", MaxAge: "500ms"}, says: "is not the age of a cookie"},
		"an age with half a second":    {cookie: splitv1.StickyCookie{Name: "a", MaxAge: "1500ms"}, says: "is not the age of a cookie"},
		"an age above a year":          {cookie: splitv1.StickyCookie{Name: "a", MaxAge: "8761h"}, says: "is not the age of a cookie"},
		"an age before it was set":     {cookie: splitv1.StickyCookie{Name: "a", MaxAge: "-1h"}, says: "is not the age of a cookie"},
	} {
		t.Run(name, func(t *testing.T) {
			split := birdSplit("birds", blueGreen()...)
			splitv1.SetRouting(split, splitv1.Routing{StickyCookie: &test.cookie})
			got, problems := resolve.Split(split, resolve.Known{Services: birds()})
			if test.says == "" {
				if diff := cmp.Diff(test.want, got.Sticky); diff != "" || len(problems) > 0 {
					t.Errorf("%v (-want +got):\n%s", problems, diff)
				}
				return
			}
			if len(problems) != 1 || problems[0].Reason != splitv1.ReasonInvalid || !strings.Contains(problems[0].Message, test.says) ||
				!strings.HasPrefix(problems[0].Message, "metadata.annotations[serin.dev/routing].stickyCookie.") {
				t.Errorf("problems %v, want one with %q", problems, test.says)
			}
		})
	}
}

func TestOnlyRequestsHaveCookies(t *testing.T) {
	services := birds()
	services["birds"].Spec.Ports[1].Protocol = corev1.ProtocolUDP
	split := birdSplit("birds", blueGreen()...)
	splitv1.SetRouting(split, splitv1.Routing{StickyCookie: &splitv1.StickyCookie{Name: "version"}})
	_, problems := resolve.Split(split, resolve.Known{Services: services})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "so it has no cookies") {
		t.Errorf("problems: %v", problems)
	}
}

func TestARouterThatCantHaveClientsComeBackRefuses(t *testing.T) {
	split := traffic.Split{Sticky: &traffic.Sticky{Cookie: "version"}}
	problems := traffic.Lacking(split, "other", traffic.AbilityMatch)
	if len(problems) != 1 || !traffic.Refused(problems) || !strings.Contains(problems[0].Message, "serin.dev/routing].stickyCookie") {
		t.Errorf("problems: %v", problems)
	}
	if problems := traffic.Lacking(split, "nginx", traffic.AbilitySticky); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestTheDigestTellsStickySplitsApart(t *testing.T) {
	digests := map[string]bool{}
	for _, s := range []*traffic.Sticky{nil, {Cookie: "a"}, {Cookie: "b"}, {Cookie: "a", MaxAge: 1}} {
		digests[traffic.Split{Sticky: s}.Digest()] = true
	}
	if len(digests) != 4 {
		t.Errorf("%d digests, want 4", len(digests))
	}
}
