// Package relay passes TCP connections from the machine's network namespace into
// another one, so that a plain kubectl reaches an API server that is not on the
// machine's network.
package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"sallyport.test/lab/shim/internal/namespace"
)

// dialLimit bounds one attempt to connect.
const dialLimit = 5 * time.Second

// Dialer connects to the far side.
type Dialer func(ctx context.Context) (*net.TCPConn, error)

// DialFrom dials address from within the network namespace at path.
func DialFrom(path, address string) Dialer {
	return func(ctx context.Context) (*net.TCPConn, error) {
		type outcome struct {
			conn *net.TCPConn
			err  error
		}
		done := make(chan outcome, 1)
		go func() {
			// Not unlocked: the thread ends with the goroutine and is never used in
			// the wrong namespace. The socket stays where it was made.
			runtime.LockOSThread()
			conn, err := dialHere(ctx, path, address)
			done <- outcome{conn, err}
		}()
		result := <-done
		return result.conn, result.err
	}
}

func dialHere(ctx context.Context, path, address string) (*net.TCPConn, error) {
	if err := namespace.Enter(path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// Serve passes every connection of listener on until ctx ends, then closes all.
func Serve(ctx context.Context, listener net.Listener, dial Dialer) error {
	var open sync.WaitGroup
	defer open.Wait()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		near, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				near.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		open.Go(func() { pass(ctx, near.(*net.TCPConn), dial) })
	}
}

// pass joins one connection with a new one to the far side.
func pass(ctx context.Context, near *net.TCPConn, dial Dialer) {
	defer near.Close()
	far, err := dial(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "labshim relay: %v\n", err)
		return
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() {
		near.Close()
		far.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { half(far, near) })
	both.Go(func() { half(near, far) })
	both.Wait()
}

// half copies one direction and hands on its end. A broken direction breaks the
// other too, so that a peer is not left waiting for an answer that cannot come.
func half(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.CloseWrite()
}
