// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/serin-dev/serin/e2e/demo/story"
)

// Live shows the story on a terminal, in place.
type Live struct {
	program *tea.Program
	ended   chan error
}

// StartLive takes the terminal until Stop. Interrupt is called when the person
// presses Ctrl-C or q.
func StartLive(ctx context.Context, in io.Reader, out io.Writer, interrupt func()) *Live {
	return start(model{interrupt: interrupt, width: maxWidth},
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
}

func start(m model, options ...tea.ProgramOption) *Live {
	program := tea.NewProgram(m, options...)
	l := &Live{program: program, ended: make(chan error, 1)}
	go func() {
		_, err := program.Run()
		l.ended <- err
	}()
	return l
}

// Show implements story.View.
func (l *Live) Show(frame story.Frame) { l.program.Send(describe(frame)) }

// Say implements story.View.
//
// Unlike the program's own Println, Send does not block after the end.
func (l *Live) Say(line string) { l.program.Send(tea.Println(clean(line))()) }

// Stop leaves the last picture where it is and gives the terminal back.
func (l *Live) Stop() error {
	l.program.Quit()
	if err := <-l.ended; err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return fmt.Errorf("show the demo: %w", err)
	}
	return nil
}

// model is the state of the picture.
type model struct {
	screen    screen
	width     int
	interrupt func()
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case screen:
		m.screen = message
	case tea.WindowSizeMsg:
		m.width = message.Width - 2 // the padding of the picture
	case tea.KeyPressMsg:
		if key := message.String(); key == "ctrl+c" || key == "q" {
			m.interrupt()
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m model) View() tea.View { return tea.NewView(m.screen.render(m.width) + "\n") }
