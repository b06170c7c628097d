package podruntime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"sallyport.test/lab/shim/control"
)

// dialLimit bounds a connection to a port of a pod.
const dialLimit = 10 * time.Second

// streamer serves the streams that Exec, Attach and PortForward have promised. It
// is a type of its own because the streaming package and the CRI use the same
// method names for different things.
type streamer struct{ runtime *Runtime }

// Exec runs a command with the client's streams.
func (s streamer) Exec(ctx context.Context, id string, args []string, in io.Reader, out, err io.WriteCloser, terminal bool, resize <-chan remotecommand.TerminalSize) error {
	return s.runtime.exec(ctx, id, session{args: args, in: in, out: writer(out), err: writer(err), terminal: terminal, resize: resize})
}

// writer keeps "no stream" a plain nil.
func writer(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

// Attach returns the address where the container's own streams can be had.
func (r *Runtime) Attach(_ context.Context, request *cri.AttachRequest) (*cri.AttachResponse, error) {
	if _, err := r.running(request.ContainerId); err != nil {
		return nil, err
	}
	return r.streams.GetAttach(request)
}

// Attach joins the client to the container's streams until either side ends.
func (s streamer) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := s.runtime.running(id)
	if err != nil {
		return err
	}
	conn, err := control.Dial(c.dir, control.Request{Op: control.OpAttach, Stdin: in != nil})
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if in != nil {
		go sendInput(conn, in)
	}
	go follow(resize, func(size control.Size) { control.WriteJSON(conn, control.KindResize, size) })
	return receiveOutput(conn, out, errOut)
}

func sendInput(conn net.Conn, in io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := in.Read(chunk)
		if n > 0 && control.Write(conn, control.KindStdin, chunk[:n]) != nil {
			return
		}
		if err != nil {
			control.Write(conn, control.KindStdinEnd, nil)
			return
		}
	}
}

func receiveOutput(conn net.Conn, out, errOut io.Writer) error {
	for {
		kind, payload, err := control.Read(conn)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		to := out
		switch kind {
		case control.KindDone:
			return nil
		case control.KindStderr:
			to = errOut
		}
		if to != nil {
			if _, err := to.Write(payload); err != nil {
				return err
			}
		}
	}
}

// PortForward returns the address where connections to the pod's ports can be had.
func (r *Runtime) PortForward(_ context.Context, request *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	return r.streams.GetPortForward(request)
}

// PortForward joins a client to a port on the pod's loopback.
func (s streamer) PortForward(ctx context.Context, id string, port int32, client io.ReadWriteCloser) error {
	s.runtime.mu.Lock()
	pod := s.runtime.sandboxes[id]
	s.runtime.mu.Unlock()
	if pod == nil {
		return notFound("sandbox", id)
	}
	namespace := ""
	if !pod.onNode() {
		namespace = pod.Process.namespace("net")
	}
	conn, err := dialLoopback(namespace, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	go func() {
		io.Copy(conn, client)
		conn.CloseWrite() // the client may still wait for an answer
	}()
	_, err = io.Copy(client, conn)
	return err
}

// dialLoopback connects to localhost inside a network namespace, IPv4 first.
func dialLoopback(namespace string, port int32) (*net.TCPConn, error) {
	type outcome struct {
		conn *net.TCPConn
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		// Not unlocked: the thread ends with the goroutine, so that nothing else
		// runs in the pod's namespace. The socket stays where it was made.
		runtime.LockOSThread()
		conn, err := dialHere(namespace, port)
		done <- outcome{conn, err}
	}()
	result := <-done
	return result.conn, result.err
}

func dialHere(namespace string, port int32) (*net.TCPConn, error) {
	if namespace != "" {
		fd, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("the pod's network namespace: %w", err)
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return nil, fmt.Errorf("the pod's network namespace: %w", err)
		}
	}
	var failed []error
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(port)), dialLimit)
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}
