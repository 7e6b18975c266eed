// SPDX-License-Identifier: Apache-2.0

package fdstore

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// operation is what a message between agent and supervisor is about. Each message
// is one packet: the operation, the name of a file, and with keepFile the file.
type operation byte

const (
	keepFile  operation = 'K'
	dropFile  operation = 'D'
	thatIsAll operation = 'E'
)

// maxName bounds the name of a file.
const maxName = 256

type message struct {
	operation operation
	name      string
	// file is a descriptor, or -1.
	file int
}

// errHungUp is the error of receiving when the other side has ended.
var errHungUp = errors.New("the other side has ended")

func sendMessage(connection int, m message) error {
	var rights []byte
	if m.file >= 0 {
		rights = unix.UnixRights(m.file)
	}
	for {
		err := unix.Sendmsg(connection, append([]byte{byte(m.operation)}, m.name...), rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

func receiveMessage(connection int) (message, error) {
	data, rights := make([]byte, maxName+1), make([]byte, unix.CmsgSpace(4))
	var n, rn int
	for {
		var err error
		n, rn, _, _, err = unix.Recvmsg(connection, data, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return message{}, os.NewSyscallError("recvmsg", err)
		}
		break
	}
	if n == 0 {
		return message{}, errHungUp
	}
	m := message{operation: operation(data[0]), name: string(data[1:n]), file: -1}
	file, err := receivedFile(rights[:rn])
	if err != nil {
		return message{}, err
	}
	m.file = file
	if (m.operation == keepFile) != (file >= 0) {
		closeAll(file)
		return message{}, fmt.Errorf("a message %q about %q with the file %d", m.operation, m.name, file)
	}
	return m, nil
}

// receivedFile is the descriptor in a control message, or -1.
func receivedFile(rights []byte) (int, error) {
	if len(rights) == 0 {
		return -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return -1, err
	}
	for i := range messages {
		files, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return -1, err
		}
		if len(files) == 1 {
			return files[0], nil
		}
		closeAll(files...)
	}
	return -1, nil
}

// closeAll closes the files of a message that makes no sense.
func closeAll(files ...int) {
	for _, fd := range files {
		if fd >= 0 {
			Close(fd)
		}
	}
}

// client is the Store of an agent that has a Supervisor.
type client struct {
	connection int
	kept       map[string]int
}

// FromSupervisor is the Store of this process: its Supervisor, or none.
func FromSupervisor() (Store, error) {
	if !Supervised() {
		return None{}, nil
	}
	connection, err := strconv.Atoi(os.Getenv(storeVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", storeVariable, err)
	}
	unix.CloseOnExec(connection) // nginx must not hold it open
	c := &client{connection: connection, kept: map[string]int{}}
	for {
		m, err := receiveMessage(connection)
		if err != nil {
			return nil, fmt.Errorf("receive the files of the supervisor: %w", err)
		}
		if m.operation == thatIsAll {
			return c, nil
		}
		c.kept[m.name] = m.file
	}
}

// Kept is what the supervisor handed over at the start.
func (c *client) Kept() map[string]int { return c.kept }

// Keep sends a file to the supervisor. That it has arrived need not be awaited: it
// will be received even if this process ends right now.
func (c *client) Keep(name string, fd int) error {
	if len(name) > maxName {
		return fmt.Errorf("keep %.50q: the name is too long", name)
	}
	if err := sendMessage(c.connection, message{keepFile, name, fd}); err != nil {
		return fmt.Errorf("keep %q: %w", name, err)
	}
	return nil
}

// Drop has the supervisor close a file.
func (c *client) Drop(name string) error {
	if err := sendMessage(c.connection, message{operation: dropFile, name: name, file: -1}); err != nil {
		return fmt.Errorf("drop %q: %w", name, err)
	}
	return nil
}
