// SPDX-License-Identifier: Apache-2.0

package v1alpha4

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestWeightsOfEveryVersionAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		weight  string
		want    int32
		invalid string
	}{
		"a whole number":                          {weight: `10`, want: 10},
		"a number that another encoder wrote":     {weight: `10.0`, want: 10},
		"a number with an exponent":               {weight: `1e2`, want: 100},
		"the largest":                             {weight: `2147483647`, want: 2147483647},
		"a quantity":                              {weight: `"10"`, want: 10},
		"a quantity with a unit":                  {weight: `"1k"`, want: 1000},
		"a quantity in thousandths that is whole": {weight: `"2000m"`, want: 2},
		"zero":                                {weight: `0`},
		"none":                                {weight: `null`},
		"a negative number is refused later":  {weight: `-1`, want: -1},
		"half of one, as v1alpha1 writes it":  {weight: `"500m"`, invalid: `the weight "500m" of "web" is not whole`},
		"a fraction":                          {weight: `1.5`, invalid: `the weight "1.5" of "web" is not whole`},
		"more than fits":                      {weight: `2147483648`, invalid: "is too large"},
		"far more than fits":                  {weight: `1e300`, invalid: "is too large"},
		"a number beyond all":                 {weight: `1e999`, invalid: "spec.backends"},
		"a word":                              {weight: `"much"`, invalid: `the weight "much" of "web" is not a number`},
		"a quantity that would take for ever": {weight: `"1e999999999"`, invalid: `the weight "1e999999999" of "web" has an exponent that is too large`},
		"one in upper case":                   {weight: `"1E+999999999"`, invalid: "has an exponent that is too large"},
		"one that is nearly nothing":          {weight: `"1e-999999999"`, invalid: "has an exponent that is too large"},
		"a number with such an exponent":      {weight: `1e999999999`, invalid: `the weight "1e999999999" of "web" has an exponent that is too large`},
		"a quantity with many digits":         {weight: `"000000000000000000010"`, invalid: "is too long"},
		"a number with many digits":           {weight: `10.000000000000000000`, invalid: "is too long"},
		"an exponent that is long enough":     {weight: `"1e09"`, want: 1000000000},
		"the largest exponent that is read":   {weight: `"1e99"`, invalid: "is too large"},
		"the smallest one":                    {weight: `"1e-99"`, invalid: "is not whole"},
		"an empty text":                       {weight: `""`, invalid: "is not a number"},
		"a list":                              {weight: `[1]`, invalid: "is not a number"},
		"an object with a long name":          {weight: `{"percentage of all requests":1}`, invalid: "is too long"},
		"an object":                           {weight: `{"value":1}`, invalid: "is not a number"},
		"a truth":                             {weight: `true`, invalid: "is not a number"},
	} {
		t.Run(name, func(t *testing.T) {
			var b Backend
			if err := json.Unmarshal([]byte(`{"service":"web","weight":`+test.weight+`}`), &b); err != nil {
				t.Fatal(err)
			}
			if b.Weight != test.want || (b.Invalid == "") != (test.invalid == "") || !strings.Contains(b.Invalid, test.invalid) {
				t.Errorf("read as %+v", b)
			}
			if b.Invalid != "" && !strings.HasPrefix(b.Invalid, "spec.backends: ") {
				t.Errorf("the message does not begin with the field: %s", b.Invalid)
			}
		})
	}
}

func TestAServiceThatIsNoTextIsTold(t *testing.T) {
	var b Backend
	if err := json.Unmarshal([]byte(`{"service":5,"weight":1}`), &b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.Invalid, `the service "5" is not a string`) {
		t.Errorf("read as %+v", b)
	}
}

// A list is decoded as a whole: one bad object must not hide the others.
func TestOneBadSplitDoesNotHideTheOthers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	text := `{"apiVersion":"split.smi-spec.io/v1alpha4","kind":"TrafficSplitList","items":[
		{"metadata":{"name":"bad"},"spec":{"service":"a","backends":[{"service":"b","weight":"500m"},7,{"service":"c","weight":2}]}},
		{"metadata":{"name":"good"},"spec":{"service":"a","backends":[{"service":"b","weight":1}]}}]}`
	object, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, ok := object.(*TrafficSplitList)
	if !ok || len(list.Items) != 2 {
		t.Fatalf("read as %#v", object)
	}
	bad := list.Items[0].Spec.Backends
	if bad[0].Invalid == "" || bad[1].Invalid == "" || bad[2] != (Backend{Service: "c", Weight: 2}) {
		t.Errorf("the bad one is read as %+v", bad)
	}
	if good := list.Items[1].Spec.Backends; good[0] != (Backend{Service: "b", Weight: 1}) {
		t.Errorf("the good one is read as %+v", good)
	}
}

func FuzzBackend(f *testing.F) {
	for _, seed := range []string{
		`{"service":"a","weight":1}`, `{"service":"a","weight":"500m"}`, `{"service":"a","weight":1.5}`,
		`{"weight":{}}`, `[]`, `null`, `"x"`, `{"service":[],"weight":-1e9}`, `{"weight":"1e-400"}`,
		`{"weight":"1e999999999"}`, `{"weight":1e999999999}`, `{"weight":"1E-99"}`, `{"weight":"00000000000000000000001"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		var b Backend
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if b.Invalid != "" {
			if b.Weight != 0 {
				t.Errorf("%s: a weight of %d although it is invalid", text, b.Weight)
			}
			return
		}
		written, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var again Backend
		if err := json.Unmarshal(written, &again); err != nil || again != b {
			t.Errorf("%s is read as %+v, written as %s and read as %+v (%v)", text, b, written, again, err)
		}
	})
}
