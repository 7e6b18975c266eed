// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostRows bound an update: a browser that reads many rows at once draws nothing meanwhile.
const mostRows = 500

// rowUpdate is what has changed since the last one.
type rowUpdate struct {
	Rows []json.RawMessage `json:"rows"`
	// Gone are the keys of rows that are no more.
	Gone []string `json:"gone"`
	// Complete is whether all rows have been sent by now, as they are known.
	Complete bool     `json:"complete"`
	Trouble  *trouble `json:"trouble,omitempty"`
}

// rowStore keeps the rows that the browser has, and which of them have changed.
type rowStore struct {
	mailbox
	make     makeRow
	rows     map[string]json.RawMessage
	pending  map[string]bool
	complete bool
	trouble  *trouble
	said     bool // whether the present trouble was sent
}

func newRowStore(row makeRow) *rowStore {
	return &rowStore{mailbox: newMailbox(), make: row, rows: map[string]json.RawMessage{}, pending: map[string]bool{}, said: true}
}

func (s *rowStore) report(t *trouble) {
	s.mu.Lock()
	same := t == nil && s.trouble == nil || t != nil && s.trouble != nil && *t == *s.trouble
	s.mu.Unlock()
	if !same {
		s.change(func() { s.trouble, s.said = t, false })
	}
}

// take returns some of what has changed, and whether anything has.
func (s *rowStore) take() (rowUpdate, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := rowUpdate{Rows: []json.RawMessage{}, Gone: []string{}, Trouble: s.trouble}
	some := len(s.pending) > 0 || !s.said
	for key := range s.pending {
		if len(u.Rows)+len(u.Gone) == mostRows {
			break
		}
		if row, known := s.rows[key]; known {
			u.Rows = append(u.Rows, row)
		} else {
			u.Gone = append(u.Gone, key)
		}
		delete(s.pending, key)
	}
	u.Complete = s.complete && len(s.pending) == 0
	s.said = true
	return u, some
}

// send sends what has changed, if anything has, in updates that a browser takes in quickly.
func (s *rowStore) send(out *stream) error {
	for {
		update, some := s.take()
		if !some {
			return nil
		}
		if err := out.send("rows", update); err != nil {
			return err
		}
	}
}

func (s *rowStore) Add(object any) error { return s.Update(object) }

func (s *rowStore) Update(object any) error {
	key, row, err := s.make(object)
	if err == nil {
		s.change(func() { s.put(key, row) })
	}
	return err
}

func (s *rowStore) Delete(object any) error {
	key, _, err := s.make(object)
	if err == nil {
		s.change(func() { s.drop(key) })
	}
	return err
}

// Replace takes a whole list, after which rows that are not in it are gone.
func (s *rowStore) Replace(list []any, _ string) error {
	fresh := make(map[string]json.RawMessage, len(list))
	for _, object := range list {
		key, row, err := s.make(object)
		if err != nil {
			return err
		}
		fresh[key] = row
	}
	s.change(func() {
		for key := range s.rows {
			if _, there := fresh[key]; !there {
				s.drop(key)
			}
		}
		for key, row := range fresh {
			s.put(key, row)
		}
		s.said = s.said && s.complete // an empty fleet is news too
		s.complete = true
	})
	return nil
}

func (s *rowStore) Resync() error { return nil }

func (s *rowStore) put(key string, row json.RawMessage) {
	if !bytes.Equal(s.rows[key], row) {
		s.rows[key], s.pending[key] = row, true
	}
}

func (s *rowStore) drop(key string) {
	delete(s.rows, key)
	s.pending[key] = true
}

// makeRow makes the row of what a Reflector hands over, and its key.
type makeRow func(object any) (key string, row json.RawMessage, err error)

// rowOf makes rows of objects of one kind.
func rowOf[T client.Object, R any](makeOne func(T) R) makeRow {
	return func(object any) (string, json.RawMessage, error) {
		o, ok := object.(T)
		if !ok {
			return "", nil, fmt.Errorf("%T is no %T", object, o)
		}
		row, err := json.Marshal(makeOne(o))
		return keyOf(o), row, err
	}
}

func keyOf(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// oneObject is a kind of object.
type oneObject interface {
	client.Object
	comparable
}

// oneStore keeps one object.
type oneStore[T oneObject] struct {
	mailbox
	object  T // nil when there is none
	listed  bool
	trouble *trouble
}

// known is what is known at present, and whether anything is.
func (s *oneStore[T]) known() (object T, wrong *trouble, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object, s.trouble, s.listed || s.trouble != nil
}

func (s *oneStore[T]) report(t *trouble) {
	s.change(func() { s.trouble = t })
}

func (s *oneStore[T]) Add(object any) error { return s.Update(object) }

func (s *oneStore[T]) Update(object any) error {
	o, ok := object.(T)
	if !ok {
		return fmt.Errorf("%T is no %T", object, o)
	}
	s.change(func() { s.object = o })
	return nil
}

func (s *oneStore[T]) Delete(any) error {
	var none T
	s.change(func() { s.object = none })
	return nil
}

// Replace takes a whole list, of one object or of none.
func (s *oneStore[T]) Replace(list []any, _ string) error {
	var listed T
	if len(list) > 0 {
		o, ok := list[0].(T)
		if !ok {
			return fmt.Errorf("%T is no %T", list[0], o)
		}
		listed = o
	}
	s.change(func() { s.object, s.listed = listed, true })
	return nil
}

func (s *oneStore[T]) Resync() error { return nil }
