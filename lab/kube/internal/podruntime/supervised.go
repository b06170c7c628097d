package podruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/kube/internal/process"
	"sallyport.test/lab/shim/control"
	"sallyport.test/lab/shim/handshake"
	"sallyport.test/lab/shim/spec"
)

// killLimit bounds how long a process may take to go after SIGKILL.
const killLimit = 20 * time.Second

// supervised is a process and its monitor, as kept in a record.
type supervised struct {
	Monitor process.Ref `json:"monitor"`
	PID     int         `json:"pid"`

	dir  string
	done chan struct{} // closed when the monitor has ended
}

// supervise starts a monitor for m. Its own messages go to a file beside its
// socket: the kubelet's output may be gone long before the monitor.
func (r *Runtime) supervise(m spec.Monitor) (*supervised, error) {
	log, err := os.Create(filepath.Join(m.Dir, "monitor.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(r.Shim, "monitor")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	parent, err := handshake.Begin(cmd)
	if err != nil {
		return nil, err
	}
	// Asked now: a program that ends at once has ended, and its monitor with it, when the handshake is over.
	ref, findErr := process.Find(cmd.Process.Pid)
	report, err := parent.Finish(m)
	if err := errors.Join(err, findErr); err != nil {
		return nil, err
	}
	// From here on the monitor is watched by its pidfd, as after a restart.
	if err := cmd.Process.Release(); err != nil {
		return nil, err
	}
	return &supervised{Monitor: ref, PID: report.PID, dir: m.Dir}, nil
}

// watch calls ended, on a goroutine of its own, once the monitor has ended. The
// pidfd is opened before watch returns, so the pid cannot become another's meanwhile.
func (s *supervised) watch(ended func()) {
	s.done = make(chan struct{})
	hold, err := s.Monitor.Open()
	go func() {
		if err == nil {
			err = hold.Wait()
		}
		if err != nil && !errors.Is(err, process.ErrGone) {
			fmt.Fprintf(os.Stderr, "monitor of %s: %v\n", s.dir, err)
		}
		ended()
		close(s.done)
	}()
}

// alive says whether the monitor runs.
func (s *supervised) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// stop sends first, waits for grace, then kills. A process that has ended is fine.
func (s *supervised) stop(first syscall.Signal, grace time.Duration) error {
	var failed error
	if grace > 0 {
		failed = s.signal(first)
		select {
		case <-s.done:
			return nil
		case <-time.After(grace):
		}
	}
	failed = errors.Join(failed, s.signal(unix.SIGKILL))
	select {
	case <-s.done:
		return nil
	case <-time.After(killLimit):
		return errors.Join(fmt.Errorf("process %d is still there %v after SIGKILL", s.PID, killLimit), failed)
	}
}

func (s *supervised) signal(number syscall.Signal) error {
	if !s.alive() {
		return nil
	}
	return control.Call(s.dir, control.Request{Op: control.OpSignal, Signal: int(number)})
}

// namespace is the path of a namespace of the process.
func (s *supervised) namespace(kind string) string {
	return fmt.Sprintf("/proc/%d/ns/%s", s.PID, kind)
}

// result reads how the process ended. A monitor that was killed leaves none: its
// child was killed with it.
func (s *supervised) result() spec.Result {
	var result spec.Result
	text, err := os.ReadFile(filepath.Join(s.dir, spec.ResultFile))
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err != nil {
		return spec.Result{ExitCode: 128 + int(unix.SIGKILL), FinishedAt: time.Now().UnixNano()}
	}
	return result
}
