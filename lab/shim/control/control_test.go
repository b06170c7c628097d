package control

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFramesRoundTrip(t *testing.T) {
	var wire bytes.Buffer
	payloads := [][]byte{nil, []byte("x"), bytes.Repeat([]byte{0, 255}, 40_000)}
	for i, p := range payloads {
		if err := Write(&wire, Kind(i+1), p); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range payloads {
		kind, got, err := Read(&wire)
		if err != nil || kind != Kind(i+1) || !bytes.Equal(got, want) {
			t.Errorf("frame %d: kind %d, %d bytes, %v", i, kind, len(got), err)
		}
	}
	if _, _, err := Read(&wire); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestReadRefusesBrokenFrames(t *testing.T) {
	if _, _, err := Read(bytes.NewReader([]byte{1, 0xff, 0, 0, 0})); err == nil {
		t.Error("a frame of 4 GB was accepted")
	}
	for _, cut := range [][]byte{{1, 0}, {1, 0, 0, 0, 2}, {1, 0, 0, 0, 2, 7}} {
		if _, _, err := Read(bytes.NewReader(cut)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v: got %v, want unexpected end", cut, err)
		}
	}
	if err := Write(io.Discard, KindStdin, make([]byte, maxPayload+1)); err == nil {
		t.Error("a frame over the limit was written")
	}
}

// A socket path of more than 108 bytes must work: labs live in deep folders.
func TestCallThroughLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 40))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answer(listener)
	if err := Call(dir, Request{Op: OpSignal, Signal: 15}); err != nil {
		t.Errorf("signal: %v", err)
	}
	if err := Call(dir, Request{Op: OpReopen}); err == nil || err.Error() != "no log" {
		t.Errorf("reopen: %v", err)
	}
	if err := Call(t.TempDir(), Request{Op: OpReopen}); err == nil {
		t.Error("a folder without a socket was accepted")
	}
}

// answer is a monitor that can signal but has no log.
func answer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, payload, _ := Read(conn)
		if bytes.Contains(payload, []byte(OpReopen)) {
			Write(conn, KindDone, []byte("no log"))
		} else {
			Write(conn, KindDone, nil)
		}
		conn.Close()
	}
}
