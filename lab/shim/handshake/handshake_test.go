package handshake

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

type order struct {
	Do   string
	Bulk string
}

// TestMain lets this test program play the started stage, too.
func TestMain(m *testing.M) {
	if os.Getenv("HANDSHAKE_CHILD") == "" {
		os.Exit(m.Run())
	}
	var o order
	child, err := Receive(&o)
	if err != nil {
		os.Exit(9)
	}
	switch o.Do {
	case "ready":
		child.Ready(len(o.Bulk))
	case "fail":
		child.Fail(errors.New("no such program"))
	case "become":
		syscall.Exec("/bin/sh", []string{"sh", "-c", "read line"}, nil)
	case "file":
		file, _ := os.CreateTemp("", "")
		os.Remove(file.Name())
		file.WriteString("from the child")
		file.Seek(0, io.SeekStart)
		child.SendTerminal(file)
		child.Ready(0)
	}
	io.Copy(io.Discard, os.Stdin) // until the test lets go
}

// start begins a child that lives until the test ends.
func start(t *testing.T, o order) (Report, *exec.Cmd, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"HANDSHAKE_CHILD=yes"}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	report, err := Start(cmd, o)
	t.Cleanup(func() { hold.Close() })
	return report, cmd, err
}

func TestReadyCarriesAPid(t *testing.T) {
	// More than a socket holds at once: the spec of a pod with many variables.
	report, _, err := start(t, order{Do: "ready", Bulk: strings.Repeat("x", 1<<20)})
	if err != nil || report.PID != 1<<20 {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestFailureIsToldAndReaped(t *testing.T) {
	_, cmd, err := start(t, order{Do: "fail"})
	if err == nil || err.Error() != "no such program" {
		t.Errorf("got %v", err)
	}
	if cmd.ProcessState == nil {
		t.Error("the child was not reaped")
	}
}

// A child that becomes another program says nothing: the closing socket is the word.
func TestBecomingAProgramIsSuccess(t *testing.T) {
	report, cmd, err := start(t, order{Do: "become"})
	if err != nil || report.PID != 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
	if err != nil || strings.TrimSpace(string(name)) != "sh" {
		t.Errorf("the child is %q, %v", name, err)
	}
}

func TestDescriptorTravels(t *testing.T) {
	report, _, err := start(t, order{Do: "file"})
	if err != nil || report.Terminal == nil {
		t.Fatalf("got %+v, %v", report, err)
	}
	defer report.Terminal.Close()
	text, err := io.ReadAll(report.Terminal)
	if err != nil || string(text) != "from the child" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestMissingProgram(t *testing.T) {
	if _, err := Start(exec.Command("/nonexistent"), order{}); err == nil {
		t.Error("a missing program was started")
	}
}
