// Package monitor supervises one container or sandbox: it starts it, keeps its
// output, answers the control socket, and writes down how it ended.
//
// It is a process of its own so that containers do not depend on the kubelet: the
// kubelet may die and come back, while output is still written and exit codes are
// not lost. It stays in the node's network namespace, so that whoever looks for
// the node's processes finds the pods as its descendants. Read Run first.
package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport.test/lab/shim/control"
	"sallyport.test/lab/shim/handshake"
	"sallyport.test/lab/shim/internal/logfile"
	"sallyport.test/lab/shim/internal/namespace"
	"sallyport.test/lab/shim/spec"
)

// drainLimit bounds how long output is awaited after the last process has gone.
const drainLimit = 5 * time.Second

type monitor struct {
	spec   *spec.Monitor
	cmd    *exec.Cmd
	stdio  *stdio
	log    *logfile.File // nil without a log
	mounts *os.File      // the container's mount namespace, held until nobody is left in it
	fanout fanout

	mu     sync.Mutex // guards reaped: a signal must not go to a pid that is free again
	reaped bool
}

// Run starts what s describes, calls ready with its pid, and returns when it has
// ended and its result is on disk. The calling goroutine must be locked to the
// main thread: the child asks to die with the thread that started it.
func Run(s *spec.Monitor, ready func(pid int)) error {
	m := &monitor{spec: s}
	listener, err := control.Listen(s.Dir)
	if err != nil {
		return err
	}
	defer listener.Close()
	if s.Log != "" {
		if m.log, err = logfile.Open(s.Log, time.Now); err != nil {
			return fmt.Errorf("log: %w", err)
		}
		defer m.log.Close()
	}
	if err := m.start(); err != nil {
		return err
	}
	copied := m.stdio.copyOutput(m.output)
	go m.serve(listener)
	ready(m.cmd.Process.Pid)

	result := m.wait()
	if s.Container != nil {
		endOthers(m.mounts)
	}
	select {
	case <-copied:
	case <-time.After(drainLimit):
	}
	m.fanout.close()
	return writeResult(s.Dir, result)
}

// start runs the next stage in the right pid namespace and new mount namespace.
func (m *monitor) start() error {
	stage, flags, terminal, err := plan(m.spec)
	if err != nil {
		return err
	}
	m.cmd = exec.Command("/proc/self/exe", stage)
	m.cmd.Args[0] = "labshim"
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
	if m.stdio, err = newStdio(m.cmd, m.spec.Stdin, terminal); err != nil {
		return err
	}
	var what any = m.spec.Container
	if m.spec.Sandbox != nil {
		what = m.spec.Sandbox
	}
	parent, err := handshake.Begin(m.cmd)
	if err != nil {
		return err
	}
	// Asked now, because the program may have ended when the handshake is over.
	mounts, openErr := openMounts(m.cmd.Process.Pid)
	report, err := parent.Finish(what)
	m.mounts = mounts
	m.stdio.started(report.Terminal)
	return errors.Join(err, openErr)
}

// plan says which stage to run and in which new namespaces, and enters the pid
// namespace for children if an existing one is wanted.
func plan(s *spec.Monitor) (stage string, flags uintptr, terminal bool, err error) {
	if s.Sandbox != nil {
		flags = unix.CLONE_NEWUTS
		for flag, own := range map[uintptr]bool{unix.CLONE_NEWNET: s.Sandbox.OwnNet, unix.CLONE_NEWIPC: s.Sandbox.OwnIPC, unix.CLONE_NEWPID: s.Sandbox.OwnPID} {
			if own {
				flags |= flag
			}
		}
		return "pause", flags, false, nil
	}
	flags = unix.CLONE_NEWNS
	switch s.Container.PID {
	case "":
		flags |= unix.CLONE_NEWPID
	case spec.HostPID:
	default:
		err = namespace.Enter(s.Container.PID)
	}
	return "run", flags, s.Container.Terminal, err
}

// output keeps a chunk: in the log and at the attached clients. An error of the
// log must not stop the container, so it is only reported.
func (m *monitor) output(stream control.Kind, chunk []byte) {
	name := "stdout"
	if stream == control.KindStderr {
		name = "stderr"
	}
	if m.log != nil {
		if err := m.log.Write(name, chunk); err != nil {
			fmt.Fprintf(os.Stderr, "labshim: log: %v\n", err)
		}
	}
	m.fanout.send(stream, chunk)
}

// wait returns how the process ended.
func (m *monitor) wait() spec.Result {
	pid := m.cmd.Process.Pid
	// Wait without reaping first: until the pid is reaped it cannot be reused.
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reaped = true
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		if err != unix.EINTR {
			break
		}
	}
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return spec.Result{ExitCode: code, FinishedAt: time.Now().UnixNano()}
}

// signal sends number to the container's first process. It is no error if the
// process has ended.
func (m *monitor) signal(number int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reaped {
		return nil
	}
	return unix.Kill(m.cmd.Process.Pid, syscall.Signal(number))
}

func (m *monitor) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed: the container has ended
		}
		go m.answer(conn)
	}
}

func writeResult(dir string, result spec.Result) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, spec.ResultFile)
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
