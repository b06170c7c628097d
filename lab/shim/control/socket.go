package control

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// socketName is the socket's name in the container's folder.
const socketName = "control"

// answerLimit bounds how long a monitor may take to answer a short request.
const answerLimit = 10 * time.Second

// Listen opens the control socket in dir.
func Listen(dir string) (net.Listener, error) {
	var listener net.Listener
	err := through(dir, func(path string) (err error) {
		listener, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// The listener would remove the path it was given, which by then may name another folder.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	return listener, nil
}

// Dial connects to the monitor of dir and sends the request.
func Dial(dir string, request Request) (*net.UnixConn, error) {
	var conn net.Conn
	err := through(dir, func(path string) (err error) {
		conn, err = net.DialTimeout("unix", path, answerLimit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := WriteJSON(conn, KindRequest, request); err != nil {
		conn.Close()
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// Call sends a request that has a short answer and returns the monitor's error, if any.
func Call(dir string, request Request) error {
	conn, err := Dial(dir, request)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerLimit))
	kind, payload, err := Read(conn)
	switch {
	case err == io.EOF:
		return errors.New("the monitor ended without an answer")
	case err != nil:
		return err
	case kind != KindDone:
		return fmt.Errorf("unexpected frame %d", kind)
	case len(payload) > 0:
		return errors.New(string(payload))
	}
	return nil
}

// through calls use with a short path of the socket. A socket address holds 108
// bytes (unix(7)), less than a folder of a lab may need, so the path goes through
// an open descriptor of the folder.
func through(dir string, use func(path string) error) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName))
}
