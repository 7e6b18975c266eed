// SPDX-License-Identifier: Apache-2.0

package nginxproc

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/serin-dev/serin/proxy/fdstore"
)

// Names under which the ends of the error log's pipe are kept.
const (
	errorLogRead  = "error log read"
	errorLogWrite = "error log write"
)

// errorLog is the pipe that every nginx writes its error log to. A worker never
// waits for it to be read: what does not fit is lost.
type errorLog struct {
	writer *errorWriter
	// write is nginx's end.
	write int
	read  *os.File
	// done is closed when the reading has ended.
	done chan struct{}
}

// openErrorLog adopts the pipe of a previous agent or makes one, and passes on
// what comes out of it until close.
func openErrorLog(store fdstore.Store, e *errorWriter) (*errorLog, error) {
	read, write, err := errorPipe(store)
	if err != nil {
		return nil, err
	}
	l := &errorLog{writer: e, write: write, read: os.NewFile(uintptr(read), errorLogRead), done: make(chan struct{})}
	go l.pass()
	return l, nil
}

func errorPipe(store fdstore.Store) (read, write int, err error) {
	kept := store.Kept()
	read, rok := kept[errorLogRead]
	write, wok := kept[errorLogWrite]
	if rok && wok {
		return read, write, nil
	}
	var ends [2]int
	syscall.ForkLock.RLock() // a child must not inherit them before they are marked
	err = unix.Pipe(ends[:])
	if err == nil {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, 0, os.NewSyscallError("pipe", err)
	}
	for name, fd := range map[string]int{errorLogRead: ends[0], errorLogWrite: ends[1]} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return 0, 0, os.NewSyscallError("fcntl", err)
		}
		if err := store.Keep(name, fd); err != nil {
			return 0, 0, err
		}
	}
	return ends[0], ends[1], nil
}

// pass reads until the file is closed or its deadline has passed.
func (l *errorLog) pass() {
	defer close(l.done)
	// The log is for users; that it can't be passed on must not stop anything.
	_, _ = io.CopyBuffer(struct{ io.Writer }{l.writer}, struct{ io.Reader }{l.read}, make([]byte, 64<<10))
}

// drain passes on what was written so far.
func (l *errorLog) drain() {
	_ = l.read.SetReadDeadline(time.Unix(1, 0)) // ends the reading
	<-l.done
	l.rest()
	_ = l.read.SetReadDeadline(time.Time{})
	l.done = make(chan struct{})
	go l.pass()
}

// rest passes on what is there, without waiting for more.
func (l *errorLog) rest() {
	raw, err := l.read.SyscallConn()
	if err != nil {
		return
	}
	buffer := make([]byte, 64<<10)
	for {
		var n int
		if err := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buffer) }); err != nil {
			return
		}
		if n > 0 {
			_, _ = l.writer.Write(buffer[:n])
		}
		if n <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// close passes on what there is, and ends. Every nginx has ended before.
func (l *errorLog) close() {
	_ = l.read.SetReadDeadline(time.Unix(1, 0))
	<-l.done
	l.rest()
	_ = l.read.Close()
	fdstore.Close(l.write)
}
