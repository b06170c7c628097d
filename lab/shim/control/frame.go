// Package control is the conversation between the kubelet's runtime and the
// monitor of one container, over a socket in the container's folder: attach,
// signal, reopen the log. It is frames of one type byte, a length and a payload.
// Read Request first.
package control

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Kind is the type of a frame.
type Kind byte

const (
	// KindRequest opens a conversation; the payload is a Request.
	KindRequest Kind = iota + 1
	// KindStdin carries input for the container.
	KindStdin
	// KindStdinEnd says that no more input follows.
	KindStdinEnd
	// KindResize carries a Size.
	KindResize
	// KindStdout and KindStderr carry output of the container.
	KindStdout
	KindStderr
	// KindDone ends a conversation; the payload is an error text or empty.
	KindDone
)

// maxPayload bounds a frame, so that a confused peer cannot ask for memory without end.
const maxPayload = 1 << 20

// Request is what a client wants from a monitor.
type Request struct {
	Op string `json:"op"`
	// Stdin says that the client of an attach will send input.
	Stdin bool `json:"stdin,omitempty"`
	// Signal is the number of the signal for OpSignal.
	Signal int `json:"signal,omitempty"`
}

// The values of Request.Op.
const (
	OpAttach = "attach"
	OpSignal = "signal"
	OpReopen = "reopen"
)

// Size is the size of a terminal in characters.
type Size struct {
	Width  uint16 `json:"width"`
	Height uint16 `json:"height"`
}

// Write sends one frame in a single write, so that frames of two writers do not mix.
func Write(w io.Writer, kind Kind, payload []byte) error {
	if len(payload) > maxPayload {
		return fmt.Errorf("frame of %d bytes is too long", len(payload))
	}
	frame := make([]byte, 5, 5+len(payload))
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	_, err := w.Write(append(frame, payload...))
	return err
}

// WriteJSON sends value as the payload of one frame.
func WriteJSON(w io.Writer, kind Kind, value any) error {
	payload, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return Write(w, kind, payload)
}

// Read receives one frame. At the end of the stream it returns io.EOF, in the
// middle of a frame io.ErrUnexpectedEOF.
func Read(r io.Reader) (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxPayload {
		return 0, nil, fmt.Errorf("frame of %d bytes is too long", size)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return Kind(head[0]), payload, nil
}
