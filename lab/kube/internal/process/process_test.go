package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

func start(t *testing.T) (*exec.Cmd, Ref) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	ref, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, ref
}

func TestWaitEndsWithTheProcess(t *testing.T) {
	cmd, ref := start(t)
	watch, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- watch.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("ended before the process: %v", err)
	default:
	}
	cmd.Process.Kill()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := ref.Open(); !errors.Is(err, ErrGone) {
		t.Errorf("after the end: %v", err)
	}
}

func TestProcessOfAnotherParent(t *testing.T) {
	ref, err := Find(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	watch.Close()
}

func TestReusedPidIsGone(t *testing.T) {
	_, ref := start(t)
	ref.Start++ // the same pid, started at another time
	if _, err := ref.Open(); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestZombieIsGone(t *testing.T) {
	cmd, ref := start(t)
	cmd.Process.Kill()
	// Nobody waits for it: it stays a zombie, and is gone all the same.
	deadline := time.Now().Add(10 * time.Second)
	for found := ref; found == ref; found, _ = Find(ref.PID) {
		if time.Now().After(deadline) {
			t.Fatal("a killed process is still found")
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", ref.PID)); err != nil {
		t.Errorf("it was reaped, so this test has shown nothing: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	state, start, err := parseStat([]byte("12 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n"))
	if err != nil || start != 4711 || state != 'S' {
		t.Errorf("got %c %d, %v", state, start, err)
	}
	if _, _, err := parseStat([]byte("12 (sh) S 1")); err == nil {
		t.Error("a short line was accepted")
	}
}
