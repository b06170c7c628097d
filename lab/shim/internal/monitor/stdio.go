package monitor

import (
	"os"
	"os/exec"
	"sync"

	"sallyport.test/lab/shim/control"
)

// chunkSize is how much output is taken at once: the capacity of a pipe.
const chunkSize = 64 << 10

// stdio is the monitor's side of a container's standard input and output: three
// pipes, or one terminal. Every field may be nil.
type stdio struct {
	mu       sync.Mutex // guards stdin, which two clients may close
	stdin    *os.File
	stdout   *os.File
	stderr   *os.File
	terminal *os.File
	// theirs are the container's ends; they must be closed here once it runs, or
	// the end of the output would never be seen.
	theirs []*os.File
}

// newStdio connects cmd, which has not been started. With a terminal the started
// process opens it by itself and sends it back.
func newStdio(cmd *exec.Cmd, stdin, terminal bool) (*stdio, error) {
	s := &stdio{}
	if terminal {
		return s, nil
	}
	if stdin {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		s.stdin, cmd.Stdin = ours, theirs
		s.theirs = append(s.theirs, theirs)
	}
	for _, out := range []struct {
		ours   **os.File
		attach func(*os.File)
	}{
		{&s.stdout, func(f *os.File) { cmd.Stdout = f }},
		{&s.stderr, func(f *os.File) { cmd.Stderr = f }},
	} {
		ours, theirs, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*out.ours = ours
		out.attach(theirs)
		s.theirs = append(s.theirs, theirs)
	}
	return s, nil
}

// started gives up the container's ends and takes its terminal, if it has one.
func (s *stdio) started(terminal *os.File) {
	for _, file := range s.theirs {
		file.Close()
	}
	s.terminal = terminal
}

// copyOutput hands every chunk to keep and closes the returned channel at the end
// of all output.
func (s *stdio) copyOutput(keep func(control.Kind, []byte)) <-chan struct{} {
	var running sync.WaitGroup
	read := func(from *os.File, kind control.Kind) {
		if from == nil {
			return
		}
		running.Go(func() {
			chunk := make([]byte, chunkSize)
			for {
				n, err := from.Read(chunk)
				if n > 0 {
					keep(kind, chunk[:n])
				}
				if err != nil { // a terminal ends with EIO, a pipe with EOF
					return
				}
			}
		})
	}
	read(s.stdout, control.KindStdout)
	read(s.stderr, control.KindStderr)
	read(s.terminal, control.KindStdout)
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	return done
}

// input passes data on. Input after the end, or to a container that has none, is dropped.
func (s *stdio) input(data []byte) error {
	s.mu.Lock()
	to := s.stdin
	s.mu.Unlock()
	if s.terminal != nil {
		to = s.terminal
	}
	if to == nil {
		return nil
	}
	_, err := to.Write(data)
	return err
}

// endInput closes the container's standard input. It may be called twice. A
// terminal has no end of input.
func (s *stdio) endInput() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		s.stdin.Close()
		s.stdin = nil
	}
}

// resize sets the size of the terminal, if there is one.
func (s *stdio) resize(size control.Size) {
	if s.terminal != nil {
		// The terminal may be closing; a size is not worth an error.
		_ = size.Apply(s.terminal)
	}
}
