package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"sallyport.test/lab/shim/control"
)

// answer serves one client of the control socket to its end.
func (m *monitor) answer(conn net.Conn) {
	defer conn.Close()
	kind, payload, err := control.Read(conn)
	if err != nil || kind != control.KindRequest {
		return
	}
	var request control.Request
	if err := json.Unmarshal(payload, &request); err != nil {
		finish(conn, err)
		return
	}
	switch request.Op {
	case control.OpSignal:
		finish(conn, m.signal(request.Signal))
	case control.OpReopen:
		finish(conn, m.reopen())
	case control.OpAttach:
		m.attach(conn, request.Stdin)
	default:
		finish(conn, fmt.Errorf("unknown request %q", request.Op))
	}
}

func finish(conn net.Conn, err error) {
	var text []byte
	if err != nil {
		text = []byte(err.Error())
	}
	// A client that has gone does not need the answer.
	_ = control.Write(conn, control.KindDone, text)
}

func (m *monitor) reopen() error {
	if m.log == nil {
		return errors.New("this process has no log")
	}
	return m.log.Reopen()
}

// attach sends the output from now on and takes input until the client leaves or
// the container ends.
func (m *monitor) attach(conn net.Conn, stdin bool) {
	m.fanout.add(conn)
	defer m.fanout.remove(conn)
	if stdin && m.spec.StdinOnce {
		defer m.stdio.endInput()
	}
	for {
		kind, payload, err := control.Read(conn)
		if err != nil {
			return
		}
		switch kind {
		case control.KindStdin:
			if err := m.stdio.input(payload); err != nil {
				return
			}
		case control.KindStdinEnd:
			if m.spec.StdinOnce {
				m.stdio.endInput()
			}
		case control.KindResize:
			var size control.Size
			if json.Unmarshal(payload, &size) == nil {
				m.stdio.resize(size)
			}
		}
	}
}
