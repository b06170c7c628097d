package podruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	criclient "k8s.io/cri-client/pkg"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"sallyport.test/lab/shim/control"
	"sallyport.test/lab/shim/handshake"
	"sallyport.test/lab/shim/spec"
)

// outputDelay bounds how long output is awaited after a command has ended: a
// child it left behind may keep its output open for ever.
const outputDelay = 2 * time.Second

// session is one exec: what to run and what it is connected to. Streams may be nil.
type session struct {
	args     []string
	in       io.Reader
	out, err io.Writer
	terminal bool
	resize   <-chan remotecommand.TerminalSize
}

// ExecSync runs a command for a probe or a hook. A limit of 0 is none.
func (r *Runtime) ExecSync(ctx context.Context, id string, args []string, limit time.Duration) ([]byte, []byte, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var out, errOut bytes.Buffer
	err := r.exec(ctx, id, session{args: args, out: &out, err: &errOut})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The prober knows this error and counts a failure, not a problem of the node.
		err = fmt.Errorf("%w: %q timed out after %s", criclient.ErrCommandTimedOut, strings.Join(args, " "), limit)
	}
	return out.Bytes(), errOut.Bytes(), err
}

// Exec returns the address where the command's streams can be had.
func (r *Runtime) Exec(_ context.Context, request *cri.ExecRequest) (*cri.ExecResponse, error) {
	if _, err := r.running(request.ContainerId); err != nil {
		return nil, err
	}
	return r.streams.GetExec(request)
}

// exec runs a session to its end. A command that ends with another code than 0
// gives a CodeExitError.
func (r *Runtime) exec(ctx context.Context, id string, s session) error {
	c, err := r.running(id)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, r.Shim, "exec")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the shim kills the command
	cmd.WaitDelay = outputDelay
	order := spec.Exec{Process: c.Spec.Process, Target: c.Process.PID}
	order.Args, order.Terminal = s.args, s.terminal
	if s.terminal {
		return s.runTerminal(cmd, order)
	}
	return s.runPipes(cmd, order)
}

func (s session) runPipes(cmd *exec.Cmd, order spec.Exec) error {
	if s.out != nil {
		cmd.Stdout = s.out
	}
	if s.err != nil {
		cmd.Stderr = s.err
	}
	if s.in != nil {
		// A pipe of our own: with cmd.Stdin, Wait would wait for a client that
		// keeps its input open.
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err
		}
		cmd.Stdin = theirs
		defer theirs.Close()
		go func() {
			io.Copy(ours, s.in)
			ours.Close()
		}()
	}
	if _, err := handshake.Start(cmd, order); err != nil {
		return err
	}
	return exitError(cmd.Wait())
}

func (s session) runTerminal(cmd *exec.Cmd, order spec.Exec) error {
	report, err := handshake.Start(cmd, order)
	if err != nil {
		return err
	}
	master := report.Terminal
	defer master.Close()
	if s.in != nil {
		go io.Copy(master, s.in)
	}
	go follow(s.resize, func(size control.Size) { size.Apply(master) })
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if s.out != nil {
			io.Copy(s.out, master) // ends with EIO when the last user of the terminal has gone
		}
	}()
	err = cmd.Wait()
	select {
	case <-copied:
	case <-time.After(outputDelay):
	}
	return exitError(err)
}

// follow passes sizes on until the channel is closed.
func follow(sizes <-chan remotecommand.TerminalSize, apply func(control.Size)) {
	if sizes == nil {
		return
	}
	for size := range sizes {
		apply(control.Size{Width: size.Width, Height: size.Height})
	}
}

func exitError(err error) error {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return err
	}
	code := failed.ExitCode()
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("command exited with %d", code), Code: code}
}
