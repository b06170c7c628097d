// Package handshake starts a stage of the shim and waits until it stands.
//
// Parent and child share one socket, the child's descriptor 3. The parent writes
// a spec and closes its side; the child reads it, does its work, and either says
// something (an error, a pid, a terminal) or nothing. The end of the socket is
// the signal: it closes by itself when the child becomes the user's program, so
// "closed without a word" means success, without a race.
package handshake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// childFD is the child's end of the socket: the first of exec.Cmd.ExtraFiles.
const childFD = 3

// limit bounds the time a stage may take to stand. Mounts and lookups take
// milliseconds; a loaded machine takes seconds.
const limit = 60 * time.Second

// Report is what the child said.
type Report struct {
	// PID is the process that the child started, if it started one.
	PID int
	// Terminal is the master end of the child's pseudo terminal, if it opened one.
	Terminal *os.File
}

type message struct {
	Error string `json:"error,omitempty"`
	PID   int    `json:"pid,omitempty"`
}

// Start runs cmd, hands it the spec and waits for its report. On an error the
// child is dead and reaped. On success the caller waits for the child.
func Start(cmd *exec.Cmd, spec any) (Report, error) {
	p, err := Begin(cmd)
	if err != nil {
		return Report{}, err
	}
	return p.Finish(spec)
}

// Parent is the starting side between Begin and Finish.
type Parent struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
}

// Begin runs cmd. The child lives and waits for its spec, so the caller can look
// at it (for example at its namespaces) before it becomes another program.
// Finish must follow.
func Begin(cmd *exec.Cmd) (*Parent, error) {
	conn, child, err := pair()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{child}
	err = cmd.Start()
	child.Close()
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Parent{cmd, conn}, nil
}

// Finish hands over the spec and waits for the report. On an error the child is
// dead and reaped.
func (p *Parent) Finish(spec any) (Report, error) {
	defer p.conn.Close()
	report, err := talk(p.conn, spec)
	if err != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	return report, err
}

func talk(parent *net.UnixConn, spec any) (Report, error) {
	parent.SetDeadline(time.Now().Add(limit))
	writeErr := json.NewEncoder(parent).Encode(spec)
	if writeErr == nil {
		writeErr = parent.CloseWrite()
	}
	// Read even if the write failed: the child may have said why.
	text, terminal, err := readAll(parent)
	var said message
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		err = json.Unmarshal(text, &said)
	}
	if err == nil && said.Error != "" {
		err = errors.New(said.Error)
	}
	if err == nil {
		err = writeErr
	}
	if err != nil {
		if terminal != nil {
			terminal.Close()
		}
		return Report{}, err
	}
	return Report{PID: said.PID, Terminal: terminal}, nil
}

// readAll reads to the end and keeps a descriptor that came along.
func readAll(conn *net.UnixConn) (text []byte, received *os.File, err error) {
	data, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, controlLen, _, _, err := conn.ReadMsgUnix(data, control)
		text = append(text, data[:n]...)
		if controlLen > 0 {
			messages, err := unix.ParseSocketControlMessage(control[:controlLen])
			if err != nil {
				return text, received, err
			}
			for _, m := range messages {
				if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
					unix.CloseOnExec(fds[0])
					// So that a Close ends a Read that waits.
					unix.SetNonblock(fds[0], true)
					received = os.NewFile(uintptr(fds[0]), "terminal")
				}
			}
		}
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return text, received, nil
		}
		if err != nil {
			return text, received, err
		}
	}
}

func pair() (parent *net.UnixConn, child *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "handshake")
	defer file.Close() // FileConn makes its own copy
	child = os.NewFile(uintptr(fds[1]), "handshake")
	conn, err := net.FileConn(file)
	if err != nil {
		child.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), child, nil
}

// Child is the started stage's side.
type Child struct{ file *os.File }

// Receive reads the spec into value. It must be called once, before anything is
// started: it makes sure that the user's program inherits neither the socket nor
// a descriptor that somebody left open in the kubelet.
func Receive(value any) (*Child, error) {
	if err := unix.CloseRange(childFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("close on exec: %w", err)
	}
	file := os.NewFile(childFD, "handshake")
	if file == nil {
		return nil, errors.New("descriptor 3 is not open: this command is started by the lab's kubelet only")
	}
	if err := json.NewDecoder(file).Decode(value); err != nil {
		return nil, fmt.Errorf("read spec: %w", err)
	}
	return &Child{file}, nil
}

// Fail reports err and ends the handshake.
func (c *Child) Fail(err error) { c.end(message{Error: err.Error()}) }

// Ready ends the handshake with success; pid may be 0.
func (c *Child) Ready(pid int) { c.end(message{PID: pid}) }

func (c *Child) end(m message) {
	// Nobody to tell if the parent has gone: the error would be about the report, not about the work.
	_ = json.NewEncoder(c.file).Encode(m)
	c.file.Close()
}

// SendTerminal hands the master end of a terminal to the parent.
func (c *Child) SendTerminal(master *os.File) error {
	rights := unix.UnixRights(int(master.Fd()))
	// One blank goes along, because a descriptor cannot travel alone; JSON ignores it.
	return unix.Sendmsg(int(c.file.Fd()), []byte(" "), rights, nil, 0)
}
