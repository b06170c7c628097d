package relay

import (
	"context"
	"io"
	"net"
	"testing"
)

// listen opens a listener on loopback.
func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.(*net.TCPListener)
}

// start runs a relay in the test's own namespace and returns its address and its end.
func start(t *testing.T, far string) (address string, stop func() error) {
	t.Helper()
	listener := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, DialFrom("", far)) }()
	t.Cleanup(cancel)
	return listener.Addr().String(), func() error { cancel(); return <-done }
}

// The far side answers only after it has seen the end of the request: a relay
// that does not pass a half-close on would wait for ever.
func TestHalfClosePasses(t *testing.T) {
	server := listen(t)
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, _ := io.ReadAll(conn)
		conn.Write(append([]byte("got "), request...))
	}()
	address, stop := start(t, server.Addr().String())
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte("all"))
	conn.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(conn)
	if err != nil || string(answer) != "got all" {
		t.Errorf("got %q, %v", answer, err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestStopEndsOpenConnections(t *testing.T) {
	server := listen(t)
	address, stop := start(t, server.Addr().String())
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := server.Accept() // the relay has joined both sides
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}

func TestNobodyListens(t *testing.T) {
	gone := listen(t)
	gone.Close()
	address, _ := start(t, gone.Addr().String())
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from nobody", n)
	}
}
